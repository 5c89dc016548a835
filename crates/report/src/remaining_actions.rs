//! Which actions of a preemption remain. The scheduler sends them and `plan -o wide` shows them; each describes the state of the pods as it
//! knows it.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::NamespacedName;
use reprieve_engine::between_decisions::placement_still_fits;
use reprieve_engine::fit::{Placement, Preemptor};
use reprieve_engine::snapshot::{DisruptionMode, Pod, Snapshot};
use reprieve_engine::{NodeId, PodId, Policy};
use reprieve_loader::Loaded;

use crate::planned_actions::{PlannedAction, evict, victims};
use crate::unit_ref::UnitRef;

/// The reason for evicting a marked pod although its preemptor no longer needs that.
const BROKEN_GROUP: &str = "its group is evicted as a whole, and part of it is already evicted";

/// The state of the pods, from which it follows which actions remain.
pub trait PodStates {
    /// The pods that are marked as victims of a unit.
    fn marked(&self, unit: &UnitRef) -> Vec<NamespacedName>;

    /// The unit that a pod is marked as a victim of.
    fn marked_for(&self, pod: &NamespacedName) -> Option<UnitRef>;

    /// Whether a pod is evicted or gone.
    fn is_evicted(&self, pod: &NamespacedName) -> bool;

    /// The pending pods of a unit with their nominated nodes.
    fn nominations(&self, unit: &UnitRef) -> Vec<(NamespacedName, Option<String>)>;

    /// Whether a unit is scheduled before another one.
    fn is_before(&self, unit: &UnitRef, other: &UnitRef) -> bool;
}

/// Finds the remaining actions of the preemption for one unit.
pub struct Remaining<'a, S> {
    /// The cluster.
    pub loaded: &'a Loaded,
    /// The policy of the preemption.
    pub policy: &'a Policy,
    /// The preemptor.
    pub unit: &'a UnitRef,
    /// The state of the pods.
    pub states: &'a S,
}

/// The remaining actions of a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RemainingOfPlan {
    /// Nominations, marks and their removal: the API must have them before the scheduler sends `evictions`. An eviction among them finishes
    /// a broken group.
    pub preparations: Vec<PlannedAction>,
    /// The unit that a victim is marked for, if it is scheduled first. A victim is evicted only for the unit in its mark.
    pub contested_by: Option<UnitRef>,
    /// The evictions of the victims; none while a victim is contested.
    pub evictions: Vec<PlannedAction>,
}

/// Victims of an earlier decision that terminate or that another operator deletes, and the nodes that the preemptor is nominated to.
pub struct TerminatingVictims {
    placement: Placement,
    victims: Vec<PodId>,
}

impl TerminatingVictims {
    /// Whether the preemptor fits on its nominated nodes once these victims are gone: it waits for them instead of taking others.
    pub fn make_room_for(&self, preemptor: &Preemptor, snapshot: &mut Snapshot) -> bool {
        placement_still_fits(snapshot, preemptor, &self.placement, &self.victims)
    }
}

impl<S: PodStates> Remaining<'_, S> {
    /// The actions that a plan still needs, given all of its actions.
    pub fn of_plan(&self, planned: &[PlannedAction]) -> RemainingOfPlan {
        let mut preparations = self.nominate(planned);
        let mut contested_by = None;
        for action in planned {
            let PlannedAction::Mark { pod, .. } = action else { continue };
            if self.states.is_evicted(pod) {
                continue;
            }
            match self.states.marked_for(pod) {
                Some(other) if other == *self.unit => {}
                Some(other) if self.states.is_before(&other, self.unit) => contested_by = Some(other),
                Some(_) | None => preparations.push(action.clone()),
            }
        }
        let victims: BTreeSet<&NamespacedName> = victims(planned).collect();
        let marked = self.states.marked(self.unit);
        preparations.extend(self.unmark(marked.into_iter().filter(|pod| !victims.contains(pod)).collect()));
        let evictions = planned.iter().filter(|action| match action {
            PlannedAction::Evict { pod, .. } => contested_by.is_none() && !self.states.is_evicted(pod),
            _ => false,
        });
        RemainingOfPlan { preparations, evictions: evictions.cloned().collect(), contested_by }
    }

    /// Sets the nominated node of each pending pod of the unit to that of the plan, or to none.
    pub fn nominate(&self, planned: &[PlannedAction]) -> Vec<PlannedAction> {
        let places = planned.iter().filter_map(|action| match action {
            PlannedAction::Nominate { pod, node } => Some((pod, node)),
            _ => None,
        });
        let places: BTreeMap<&NamespacedName, &Option<String>> = places.collect();
        let nominations = self.states.nominations(self.unit).into_iter().filter_map(|(pod, nominated)| {
            let node = places.get(&pod).and_then(|node| (*node).clone());
            (nominated != node).then_some(PlannedAction::Nominate { pod, node })
        });
        nominations.collect()
    }

    /// The actions when the unit needs none of its victims: their marks are removed, but those in a broken group are evicted.
    pub fn without_victims(&self) -> Vec<PlannedAction> {
        self.unmark(self.states.marked(self.unit))
    }

    /// Evicts the victims in a broken group: a group that is evicted as a whole, and part of which is evicted already.
    pub fn of_broken_groups(&self) -> Vec<PlannedAction> {
        let marked = self.states.marked(self.unit).into_iter();
        let is_broken = |victim: &NamespacedName| {
            self.is_of_broken_group(victim) || is_of_broken_job(self.loaded, self.policy, victim)
        };
        self.evict_broken(marked.filter(is_broken).collect())
    }

    /// The earlier victims that the unit may wait for, if one of them, or a pod on a nominated node, is evicted and the unit has enough
    /// nominated nodes.
    pub fn terminating_victims(&self, preemptor: &Preemptor) -> Option<TerminatingVictims> {
        let Loaded { snapshot, names, .. } = self.loaded;
        // Pods of a Koordinator job beyond its minimum are no reason for a second preemption.
        let job = preemptor.members.first().and_then(|&pod| snapshot.pod(pod).job).map(|job| snapshot.job(job));
        let needed = job.map_or(preemptor.needed, |job| {
            let bound = job.members.iter().filter(|&&pod| snapshot.pod(pod).node.is_some()).count();
            preemptor.needed.min(job.min_member.saturating_sub(bound)).max(1)
        });
        let nominated = preemptor.members.iter().filter_map(|&pod| Some((pod, snapshot.pod(pod).nominated?)));
        let placement: Placement = nominated.collect();
        if placement.len() < needed {
            return None;
        }
        let nodes: BTreeSet<NodeId> = placement.iter().map(|(_, node)| *node).collect();
        let on_nodes = nodes.iter().flat_map(|node| snapshot.pods_on(*node));
        let evicted: Vec<PodId> = on_nodes.filter(|pod| self.states.is_evicted(names.pod(*pod))).collect();
        let marked = self.states.marked(self.unit);
        // Under policy Kubernetes victims on other nodes are those of a placement that was given up (docs/rules/kubernetes-groups.md#g25).
        let is_by_node = matches!(self.policy, Policy::Kubernetes(_));
        if evicted.is_empty() && (is_by_node || !marked.iter().any(|victim| self.states.is_evicted(victim))) {
            return None;
        }
        let victims = marked.iter().filter_map(|pod| names.pod_id(pod)).chain(evicted);
        let victims = Vec::from_iter(victims.collect::<BTreeSet<PodId>>());
        Some(TerminatingVictims { placement, victims })
    }

    fn unmark(&self, marked: Vec<NamespacedName>) -> Vec<PlannedAction> {
        let (broken, spared): (Vec<NamespacedName>, Vec<NamespacedName>) = marked
            .into_iter()
            .partition(|victim| self.is_of_broken_group(victim) || is_of_broken_job(self.loaded, self.policy, victim));
        let spared = spared.into_iter().filter(|pod| !self.states.is_evicted(pod));
        let unmark = spared.map(|pod| PlannedAction::Unmark { pod });
        self.evict_broken(broken).into_iter().chain(unmark).collect()
    }

    fn evict_broken(&self, pods: Vec<NamespacedName>) -> Vec<PlannedAction> {
        let pods = pods.into_iter().filter(|pod| !self.states.is_evicted(pod));
        pods.map(|pod| evict(self.unit, self.policy, pod, BROKEN_GROUP.to_owned())).collect()
    }

    /// Whether the pod runs, and its group is evicted as a whole, and part of the group is evicted or gone.
    fn is_of_broken_group(&self, pod: &NamespacedName) -> bool {
        let Loaded { snapshot, names, .. } = self.loaded;
        let pod = names.pod_id(pod).map(|pod| snapshot.pod(pod)).filter(|pod| pod.node.is_some());
        pod.and_then(|pod| pod.group).is_some_and(|group| {
            let group = snapshot.group(group);
            let members = || group.members.iter().map(|pod| snapshot.pod(*pod));
            let running = members().filter(|pod| pod.node.is_some() && pod.terminating.is_none()).count();
            let evicted = members().any(|pod| pod.terminating.is_some_and(|terminating| terminating.by_preemption));
            let is_below_minimum = running < group.min_count;
            match group.mode {
                DisruptionMode::All => evicted || is_below_minimum,
                DisruptionMode::Single => self.takes_whole_gangs() && evicted && is_below_minimum,
            }
        })
    }

    /// Whether the policy takes a gang as a whole that would fall below its minimum.
    fn takes_whole_gangs(&self) -> bool {
        match self.policy {
            Policy::YuniKorn(settings) => settings.whole_gangs,
            Policy::Kubernetes(_) | Policy::Kueue(_) | Policy::Koordinator(_) => false,
        }
    }
}

/// docs/rules/koordinator.md#qa1: whether the pod runs, and its Koordinator job fell below its minimum because part of it was evicted.
fn is_of_broken_job(loaded: &Loaded, policy: &Policy, pod: &NamespacedName) -> bool {
    let Loaded { snapshot, names, .. } = loaded;
    let pod = names.pod_id(pod).map(|pod| snapshot.pod(pod)).filter(|pod| pod.node.is_some());
    let job =
        pod.and_then(|pod| pod.job).filter(|_| matches!(policy, Policy::Koordinator(policy) if policy.whole_gangs));
    job.map(|job| snapshot.job(job)).is_some_and(|job| {
        let members = || job.members.iter().map(|pod| snapshot.pod(*pod)).filter(|pod| pod.node.is_some());
        let leaves = |pod: &Pod| pod.soft_evicted || pod.terminating.is_some();
        let by_preemption =
            |pod: &Pod| pod.soft_evicted || pod.terminating.is_some_and(|terminating| terminating.by_preemption);
        let running = members().filter(|pod| !leaves(pod)).count();
        job.min_member > 1 && members().any(by_preemption) && running < job.min_member
    })
}

//! Preemption of pods, in phases whose state is in the API: the scheduler nominates nodes and marks victims; when the API has both and the
//! decision is still the same, it evicts all victims; then it waits for them to terminate. While victims terminate and the nominated nodes
//! will have room, the scheduler takes no other victims for the same preemptor.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{Kind, NamespacedName, ObjectKey, Pod};
use reprieve_engine::between_decisions::placement_still_fits;
use reprieve_engine::fit::Placement;
use reprieve_engine::snapshot::DisruptionMode;
use reprieve_engine::{NodeId, PodId, Timestamp};
use reprieve_loader::{Loaded, Question};
use reprieve_report::planned_actions::{self, PlannedAction};
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, EventReason};
use crate::action_log::Request;
use crate::queue::PendingQueue;
use crate::test_bugs::{Bug, Bugs};
use crate::view::{ClusterView, preemptor_of};

/// The reason for evicting a marked pod that is no longer needed.
const BROKEN_GROUP: &str = "its group is evicted as a whole, and part of it is already evicted";

/// The marked victims of each preemptor.
#[derive(Default)]
pub(crate) struct Preemptions {
    marks: BTreeMap<UnitRef, BTreeSet<NamespacedName>>,
    /// The preemptors that no longer need their victims: the marks are to be removed.
    released: BTreeSet<UnitRef>,
    pub bugs: Bugs,
}

/// The preemption for one unit.
pub(crate) struct Preemption<'a> {
    pub preemptions: &'a Preemptions,
    pub unit: &'a UnitRef,
    pub view: &'a ClusterView,
    pub queue: &'a PendingQueue,
    pub now: Timestamp,
}

/// The phase of a preemption. It is computed from the plan and the API and not stored, so that a restarted scheduler continues where the last
/// one stopped. Once the victims are gone, the unit is decided again and bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreemptionPhase {
    /// The outcome of an action on a victim is unknown.
    AwaitingApiState,
    /// Nominations or marks are missing in the API.
    Planned,
    /// A victim is marked for this unit, which is scheduled first. A victim is evicted only for the unit in its mark.
    Contested(UnitRef),
    /// All nominations and marks are in the API; not all victims are evicted.
    Marked,
    /// All victims are evicted.
    Evicting,
}

impl Preemptions {
    pub fn has_victims(&self, unit: &UnitRef) -> bool {
        self.marks.contains_key(unit)
    }

    fn marked(&self, unit: &UnitRef) -> impl Iterator<Item = &NamespacedName> {
        self.marks.get(unit).into_iter().flatten()
    }

    /// Updates the marks after a change of a pod. Returns whether the pod lost a mark.
    pub fn pod_changed(&mut self, name: &NamespacedName, before: Option<&Pod>, after: Option<&Pod>) -> bool {
        let (before, after) = (preemptor_of(before), preemptor_of(after));
        if before == after {
            return false;
        }
        let mut unmarked = false;
        if let Some(unit) = before
            && let Some(marked) = self.marks.get_mut(&unit)
        {
            unmarked = true;
            marked.remove(name);
            if marked.is_empty() {
                self.marks.remove(&unit);
            }
        }
        if let Some(unit) = after {
            self.marks.entry(unit).or_default().insert(name.clone());
        }
        unmarked
    }

    /// Notes that a unit may no longer need its victims.
    pub fn release(&mut self, unit: UnitRef) {
        self.released.insert(unit);
    }

    /// Releases the victims of a unit that is not pending.
    pub fn release_without_preemptor(&mut self, pod: Option<&Pod>, queue: &PendingQueue) {
        if let Some(unit) = preemptor_of(pod).filter(|unit| queue.get(unit).is_none()) {
            self.release(unit);
        }
    }

    /// The units that were released since the last call.
    pub fn take_released(&mut self) -> BTreeSet<UnitRef> {
        std::mem::take(&mut self.released)
    }

    /// Whether the unit waits for earlier victims instead of taking new ones: a victim, or a pod on a nominated node, is terminating, and the
    /// nominated nodes have room without these pods.
    pub fn is_in_progress(&self, unit: &UnitRef, question: &Question, view: &mut ClusterView) -> bool {
        if self.bugs.has(Bug::SecondRound) {
            return false;
        }
        let ask = question.preemptor(view.loaded());
        let Loaded { snapshot, names, .. } = view.loaded();
        // Pods of a Koordinator gang beyond its minimum are no reason for a second preemption.
        let job = ask.members.first().and_then(|&pod| snapshot.pod(pod).job).map(|job| snapshot.job(job));
        let needed = job.map_or(ask.needed, |job| {
            let bound = job.members.iter().filter(|&&pod| snapshot.pod(pod).node.is_some()).count();
            ask.needed.min(job.min_member.saturating_sub(bound)).max(1)
        });
        let nominated = ask.members.iter().filter_map(|&pod| Some((pod, snapshot.pod(pod).nominated?)));
        let placement: Placement = nominated.collect();
        let nodes: BTreeSet<NodeId> = placement.iter().map(|(_, node)| *node).collect();
        let on_nodes = nodes.iter().flat_map(|node| snapshot.pods_on(*node));
        let terminating: Vec<PodId> = on_nodes.filter(|pod| view.is_evicted(names.pod(*pod))).collect();
        if terminating.is_empty() && !self.marked(unit).any(|victim| view.is_evicted(victim)) {
            return false;
        }
        let removed = self.marked(unit).filter_map(|pod| names.pod_id(pod)).chain(terminating);
        let removed = Vec::from_iter(removed.collect::<BTreeSet<PodId>>());
        placement.len() >= needed
            && placement_still_fits(&mut view.live.loaded_mut().snapshot, &ask, &placement, &removed)
    }
}

impl Preemption<'_> {
    fn marked(&self) -> impl Iterator<Item = &NamespacedName> {
        self.preemptions.marked(self.unit)
    }

    /// The phase of the preemption that a plan is in, and the requests of that phase.
    pub fn advance(&self, plan: &[PlannedAction]) -> (PreemptionPhase, Vec<Request>) {
        if victims(plan).any(|victim| self.view.unconfirmed.contains(&ObjectKey::new(Kind::Pod, victim.clone()))) {
            return (PreemptionPhase::AwaitingApiState, Vec::new());
        }
        let mut preparations = nominate(self.unit, plan, self.view);
        let (marks, contested_by) = self.mark(plan);
        preparations.extend(marks);
        if !preparations.is_empty() {
            return (PreemptionPhase::Planned, preparations);
        }
        if let Some(other) = contested_by {
            return (PreemptionPhase::Contested(other), Vec::new());
        }
        let evictions = self.evict(plan);
        let phase = if evictions.is_empty() { PreemptionPhase::Evicting } else { PreemptionPhase::Marked };
        (phase, evictions)
    }

    /// Evicts the marked victims that are in a broken group: a group that is evicted as a whole, and part of which is evicted already.
    pub fn evict_rest_of_broken_gangs(&self) -> Vec<Request> {
        let broken = self.marked().filter(|victim| is_of_broken_group(victim, self.view)).cloned().collect();
        self.evict_broken(broken)
    }

    /// Removes the marks of a unit that no longer needs its victims, but evicts those in a broken group.
    pub fn unmark_all(&self) -> Vec<Request> {
        self.unmark(self.marked().cloned().collect(), None)
    }

    fn unmark(&self, marked: Vec<NamespacedName>, waiting: Option<&UnitRef>) -> Vec<Request> {
        let (broken, whole): (Vec<NamespacedName>, Vec<NamespacedName>) =
            marked.into_iter().partition(|victim| is_of_broken_group(victim, self.view));
        let mut requests = self.evict_broken(broken);
        let unmarked = whole.iter().filter_map(|pod| self.view.unevicted(pod)).map(|pod| Action::Unmark { pod });
        requests.extend(unmarked.map(|action| Request { unit: waiting.cloned(), ..Request::new(action) }));
        requests
    }

    /// Marks the victims, and removes the marks of pods that are no longer victims. A victim that is marked for a unit that is scheduled first
    /// keeps its mark; that unit is returned.
    fn mark(&self, plan: &[PlannedAction]) -> (Vec<Request>, Option<UnitRef>) {
        let (mut requests, mut contested_by) = (Vec::new(), None);
        for action in plan {
            let PlannedAction::Mark { pod, message } = action else { continue };
            let Some(pod) = self.view.unevicted(pod) else { continue };
            match preemptor_of(self.view.pod(&pod.name)) {
                Some(other) if other == *self.unit => {}
                Some(other) if self.queue.is_before(&other, self.unit) => contested_by = Some(other),
                Some(_) | None => {
                    let (preemptor, message) = (self.unit.to_string(), message.clone());
                    requests.push(Request::of(self.unit, Action::Mark { pod, preemptor, message, at: self.now }));
                }
            }
        }
        let victims: BTreeSet<&NamespacedName> = victims(plan).collect();
        let spared = self.marked().filter(|pod| !victims.contains(pod)).cloned().collect();
        requests.extend(self.unmark(spared, Some(self.unit)));
        (requests, contested_by)
    }

    fn evict_broken(&self, pods: Vec<NamespacedName>) -> Vec<Request> {
        let evict = |pod| planned_actions::evict(self.unit, self.view.policy(), pod, BROKEN_GROUP.to_owned());
        let plan: Vec<PlannedAction> = pods.into_iter().map(evict).collect();
        self.evict(&plan)
    }

    /// Evicts the victims of a plan that are not evicted yet.
    fn evict(&self, plan: &[PlannedAction]) -> Vec<Request> {
        let evictions = plan.iter().filter_map(|action| match action {
            PlannedAction::Evict { pod, label, why } => Some((self.view.unevicted(pod)?, label, why)),
            _ => None,
        });
        let mut evictions: Vec<_> = evictions.collect();
        if self.preemptions.bugs.has(Bug::HalfAGang) && evictions.len() > 1 {
            evictions.pop();
        }
        let mut requests = Vec::new();
        if self.preemptions.bugs.has(Bug::ForgottenNomination) && !evictions.is_empty() {
            requests = nominate(self.unit, &[], self.view);
        }
        let waiting = self.queue.get(self.unit).is_some().then_some(self.unit);
        let mut victims: Vec<(ObjectKey, String)> = Vec::new();
        for (pod, label, why) in evictions {
            victims.push((ObjectKey::new(Kind::Pod, pod.name.clone()), why.clone()));
            let preempts = Some((self.unit.key(), planned_actions::preempted(self.unit, why)));
            let (preemptor, message) = (self.unit.to_string(), planned_actions::message(self.unit));
            let action = match label.clone() {
                Some(label) => Action::SoftEvict { pod, preemptor, message, label, at: self.now },
                None => Action::Evict { pod },
            };
            requests.push(Request { unit: waiting.cloned(), preempts, ..Request::new(action) });
        }
        if let Some((first, _)) = victims.first().cloned() {
            let message = planned_actions::preempting(&victims);
            requests.push(Request::event(self.unit.key(), Some(first), EventReason::Preempting, message));
        }
        requests
    }
}

/// The victims of a plan.
pub(crate) fn victims(plan: &[PlannedAction]) -> impl Iterator<Item = &NamespacedName> {
    plan.iter().filter_map(|action| match action {
        PlannedAction::Evict { pod, .. } => Some(pod),
        _ => None,
    })
}

/// Sets the nominated node of each pending pod of the unit to that of the plan, or to none.
pub(crate) fn nominate(unit: &UnitRef, plan: &[PlannedAction], view: &ClusterView) -> Vec<Request> {
    let nominations = plan.iter().filter_map(|action| match action {
        PlannedAction::Nominate { pod, node } => Some((pod, node)),
        _ => None,
    });
    let places: BTreeMap<&NamespacedName, &String> = nominations.collect();
    let mut requests = Vec::new();
    for name in view.members(unit) {
        let place = places.get(&name).map(|node| (*node).clone());
        let Some(pod) = view.pod(&name).filter(|pod| pod.node_name.is_none()) else { continue };
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
        if nominated.filter(|node| !node.is_empty()) != place
            && let Some(pod) = view.target(&ObjectKey::new(Kind::Pod, name))
        {
            requests.push(Request::of(unit, Action::Nominate { pod, node: place }));
        }
    }
    requests
}

/// Whether the pod runs, and its group is evicted as a whole, and part of the group is evicted or gone.
fn is_of_broken_group(pod: &NamespacedName, view: &ClusterView) -> bool {
    let Loaded { snapshot, names, .. } = view.loaded();
    let pod = names.pod_id(pod).map(|pod| snapshot.pod(pod)).filter(|pod| pod.node.is_some());
    pod.and_then(|pod| pod.group).is_some_and(|group| {
        let group = snapshot.group(group);
        let members = || group.members.iter().map(|pod| snapshot.pod(*pod));
        let running = members().filter(|pod| pod.node.is_some() && pod.terminating.is_none()).count();
        let evicted = members().any(|pod| pod.terminating.is_some_and(|terminating| terminating.by_preemption));
        group.mode == DisruptionMode::All && (evicted || running < group.min_count)
    })
}

#[cfg(test)]
mod tests {
    use reprieve_api::kinds::Object;
    use reprieve_engine::Priority;
    use reprieve_engine::policy::Policy;
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use serde_json::json;

    use super::*;
    use crate::action::{ActionId, PREEMPTED_FOR};
    use crate::queue::PendingSummary;

    fn name(pod: &str) -> NamespacedName {
        NamespacedName::new("default", pod)
    }

    /// A view of a victim with this annotation and of a preemptor that is nominated to the victim's node, and the queue of the preemptor.
    fn situation(marked_for: Option<&str>) -> (Preemptions, ClusterView, PendingQueue) {
        let mut preemptions = Preemptions::default();
        let (mut view, mut queue) =
            (ClusterView::new("reprieve", Policy::Kubernetes(Kubernetes::default())), PendingQueue::default());
        for (pod, node, nominated) in [("victim", Some("n"), None), ("high", None, Some("n"))] {
            let annotations = marked_for.filter(|_| node.is_some()).map(|unit| json!({PREEMPTED_FOR: unit}));
            let pod = json!({
                "metadata": {"name": pod, "namespace": "default", "uid": pod, "resourceVersion": "1", "annotations": annotations},
                "spec": {"schedulerName": "reprieve", "nodeName": node, "containers": []},
                "status": {"nominatedNodeName": nominated},
            });
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            let name = NamespacedName::from_meta(&pod.metadata);
            view.seen(&Object::from(pod));
            let update = view.update_pod(&name, Bugs::default()).expect("it is new");
            preemptions.pod_changed(&name, None, update.after.as_deref());
        }
        for (index, unit) in ["first", "high"].into_iter().enumerate() {
            let since = Timestamp(i64::try_from(index).expect("it is small"));
            queue.upsert(&UnitRef::Pod(name(unit)), PendingSummary { priority: Priority(9), since, count: 1 });
        }
        (preemptions, view, queue)
    }

    fn phase(preemptions: &Preemptions, view: &ClusterView, queue: &PendingQueue) -> (PreemptionPhase, usize) {
        let unit = UnitRef::Pod(name("high"));
        let plan = [
            PlannedAction::Nominate { pod: name("high"), node: "n".to_owned() },
            planned_actions::mark(&unit, name("victim")),
            planned_actions::evict(&unit, view.policy(), name("victim"), "why".to_owned()),
        ];
        let preemption = Preemption { preemptions, unit: &unit, view, queue, now: Timestamp(0) };
        let (phase, requests) = preemption.advance(&plan);
        (phase, requests.iter().filter(|request| request.action.changes().is_some()).count())
    }

    #[test]
    fn the_phase_is_computed_from_the_api() {
        let (preemptions, view, queue) = situation(None);
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Planned, 1));

        let (preemptions, view, queue) = situation(Some("Pod default/first"));
        let first = UnitRef::Pod(name("first"));
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Contested(first), 0));

        let (preemptions, mut view, queue) = situation(Some("Pod default/high"));
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Marked, 1));
        let key = ObjectKey::new(Kind::Pod, name("victim"));
        let target = view.target(&key).expect("it is known");
        view.assumed.add(ActionId(0), &Action::Evict { pod: target }, Timestamp(0));
        view.update_pod(&key.name, Bugs::default());
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Evicting, 0));
        view.unconfirmed.insert(key);
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::AwaitingApiState, 0));
    }
}

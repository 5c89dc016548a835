//! Preemption of pods, in phases whose state is in the API: the scheduler nominates nodes and marks victims; when the API has both and the
//! decision is still the same, it evicts all victims; then it waits for them to terminate. While victims terminate and the nominated nodes
//! will have room, the scheduler takes no other victims for the same preemptor.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{Kind, NamespacedName, ObjectKey, Pod};
use reprieve_engine::Timestamp;
use reprieve_engine::fit::Preemptor;
use reprieve_report::planned_actions::{self, PlannedAction, victims};
use reprieve_report::remaining_actions::{PodStates, Remaining, RemainingOfPlan, TerminatingVictims};
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, EventReason};
use crate::action_log::Request;
use crate::queue::PendingQueue;
use crate::test_bugs::{Bug, Bugs};
use crate::view::{ClusterView, preemptor_of};

/// The marked victims of each preemptor.
#[derive(Default)]
pub(crate) struct Preemptions {
    marks: BTreeMap<UnitRef, BTreeSet<NamespacedName>>,
    /// The preemptors that no longer need their victims: the marks are to be removed.
    released: BTreeSet<UnitRef>,
    /// The units with marked victims that were not pending when a victim was seen. A unit may be listed after its victims.
    unknown: BTreeSet<UnitRef>,
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

    /// Notes a victim of a unit that is not pending.
    pub fn release_without_preemptor(&mut self, pod: Option<&Pod>, queue: &PendingQueue) {
        if let Some(unit) = preemptor_of(pod).filter(|unit| queue.get(unit).is_none()) {
            self.unknown.insert(unit);
        }
    }

    /// The units that were released since the last call, and those with marked victims that are not pending.
    pub fn take_released(&mut self, queue: &PendingQueue) -> BTreeSet<UnitRef> {
        let unknown = std::mem::take(&mut self.unknown).into_iter().filter(|unit| queue.get(unit).is_none());
        std::mem::take(&mut self.released).into_iter().chain(unknown).collect()
    }
}

impl PodStates for Preemption<'_> {
    fn marked(&self, unit: &UnitRef) -> Vec<NamespacedName> {
        self.preemptions.marked(unit).cloned().collect()
    }

    fn marked_for(&self, pod: &NamespacedName) -> Option<UnitRef> {
        preemptor_of(self.view.pod(pod))
    }

    fn is_evicted(&self, pod: &NamespacedName) -> bool {
        self.view.is_evicted(pod)
    }

    fn nominations(&self, unit: &UnitRef) -> Vec<(NamespacedName, Option<String>)> {
        let members = self.view.members(unit).into_iter();
        let pending = members.filter_map(|name| {
            let pod = self.view.pod(&name).filter(|pod| pod.node_name.is_none())?;
            let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
            Some((name, nominated.filter(|node| !node.is_empty())))
        });
        pending.collect()
    }

    fn is_before(&self, unit: &UnitRef, other: &UnitRef) -> bool {
        self.queue.is_before(unit, other)
    }
}

impl Preemption<'_> {
    fn remaining(&self) -> Remaining<'_, Self> {
        Remaining { loaded: self.view.loaded(), policy: self.view.policy(), unit: self.unit, states: self }
    }

    /// The phase of the preemption that a plan is in, and the requests of that phase.
    pub fn advance(&self, plan: &[PlannedAction]) -> (PreemptionPhase, Vec<Request>) {
        if victims(plan).any(|victim| self.view.unconfirmed.contains(&ObjectKey::new(Kind::Pod, victim.clone()))) {
            return (PreemptionPhase::AwaitingApiState, Vec::new());
        }
        let RemainingOfPlan { preparations, contested_by, mut evictions } = self.remaining().of_plan(plan);
        let preparations = self.requests(preparations, Some(self.unit));
        if !preparations.is_empty() {
            return (PreemptionPhase::Planned, preparations);
        }
        if let Some(other) = contested_by {
            return (PreemptionPhase::Contested(other), Vec::new());
        }
        let bugs = self.preemptions.bugs;
        if bugs.has(Bug::HalfAGang) && evictions.len() > 1 {
            evictions.pop();
        }
        let mut requests = Vec::new();
        if bugs.has(Bug::ForgottenNomination) && !evictions.is_empty() {
            requests = self.clear_nominations();
        }
        requests.extend(self.requests(evictions, Some(self.unit)));
        let phase = if requests.is_empty() { PreemptionPhase::Evicting } else { PreemptionPhase::Marked };
        (phase, requests)
    }

    /// Evicts the marked victims that are in a broken group: a group that is evicted as a whole, and part of which is evicted already.
    pub fn evict_rest_of_broken_gangs(&self) -> Vec<Request> {
        self.requests(self.remaining().of_broken_groups(), None)
    }

    /// Removes the marks of a unit that no longer needs its victims, but evicts those in a broken group.
    pub fn unmark_all(&self) -> Vec<Request> {
        self.requests(self.remaining().without_victims(), None)
    }

    /// Removes the nominations of the unit.
    pub fn clear_nominations(&self) -> Vec<Request> {
        self.requests(self.remaining().nominate(&[]), Some(self.unit))
    }

    /// Whether the unit waits for earlier victims instead of taking new ones: a victim, or a pod on a nominated node, is terminating, and the
    /// nominated nodes have room without these pods.
    pub fn terminating_victims(&self, preemptor: &Preemptor) -> Option<TerminatingVictims> {
        if self.preemptions.bugs.has(Bug::SecondRound) { None } else { self.remaining().terminating_victims(preemptor) }
    }

    /// The actions as requests, without those on pods whose state is unknown. `waiting` is the unit that waits for the removal of marks.
    fn requests(&self, actions: Vec<PlannedAction>, waiting: Option<&UnitRef>) -> Vec<Request> {
        let is_eviction = |action: &PlannedAction| matches!(action, PlannedAction::Evict { .. });
        let runs = actions.chunk_by(|first, second| is_eviction(first) == is_eviction(second));
        let mut requests = Vec::new();
        for actions in runs {
            let first_of_run = requests.len();
            let mut victims: Vec<(ObjectKey, String)> = Vec::new();
            for action in actions {
                requests.extend(self.request(action, waiting, &mut victims));
            }
            if let Some((victim, _)) = victims.first().cloned() {
                let namespace = &self.unit.key().name.namespace;
                let shown = victims
                    .iter()
                    .map(|(key, why)| (format!("Pod {}", self.view.victim_shown_in(namespace, key)), why.clone()));
                let message = planned_actions::preempting(&shown.collect::<Vec<_>>());
                let related = Some(victim).filter(|victim| self.view.may_name(namespace, &victim.name));
                let first = requests.remove(first_of_run);
                let first = first.then_event(self.unit.key(), related, EventReason::Preempting, message);
                requests.insert(first_of_run, first);
            }
        }
        requests
    }

    /// The request for an action. `victims` receives the victim of an eviction, with the reason.
    fn request(
        &self,
        action: &PlannedAction,
        waiting: Option<&UnitRef>,
        victims: &mut Vec<(ObjectKey, String)>,
    ) -> Option<Request> {
        let target = |name: &NamespacedName| self.view.target(&ObjectKey::new(Kind::Pod, name.clone()));
        Some(match action {
            PlannedAction::Nominate { pod, node } => {
                Request::of(self.unit, Action::Nominate { pod: target(pod)?, node: node.clone() })
            }
            PlannedAction::Mark { pod, .. } => {
                let message = planned_actions::message(&self.view.preemptor_shown_in(&pod.namespace, self.unit));
                let preemptor = self.unit.to_string();
                Request::of(self.unit, Action::Mark { pod: target(pod)?, preemptor, message, at: self.now })
            }
            PlannedAction::Unmark { pod } => {
                Request { unit: waiting.cloned(), ..Request::new(Action::Unmark { pod: target(pod)? }) }
            }
            PlannedAction::Evict { pod: name, note, why } => {
                let pod = target(name)?;
                victims.push((ObjectKey::new(Kind::Pod, name.clone()), why.clone()));
                let shown = self.view.preemptor_shown_in(&name.namespace, self.unit);
                let preempted = planned_actions::preempted(&shown, why);
                let victim = ObjectKey::new(Kind::Pod, name.clone());
                let (preemptor, message) = (self.unit.to_string(), planned_actions::message(&shown));
                let action = match note {
                    Some(_) => {
                        let note = planned_actions::soft_eviction_note(&shown.without_kind(), &shown);
                        Action::SoftEvict { pod, preemptor, message, note, at: self.now }
                    }
                    None => Action::Evict { pod },
                };
                let unit = self.queue.get(self.unit).is_some().then(|| self.unit.clone());
                let evict = Request { unit, ..Request::new(action) };
                evict.then_event(victim, shown.key(), EventReason::Preempted, preempted)
            }
            // The admission cycle evicts workloads.
            PlannedAction::EvictWorkload { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::kinds::Object;
    use reprieve_engine::Priority;
    use reprieve_engine::policy::Policy;
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use serde_json::json;

    use super::*;
    use crate::action::{ActionId, VICTIM};
    use crate::queue::PendingSummary;

    fn name(pod: &str) -> NamespacedName {
        NamespacedName::new("default", pod)
    }

    /// A view of a victim that is marked for this unit, and of a preemptor that is nominated to the victim's node, and the queue of the preemptor.
    fn situation(marked_for: Option<&str>) -> (Preemptions, ClusterView, PendingQueue) {
        let mut preemptions = Preemptions::default();
        let (mut view, mut queue) =
            (ClusterView::new("reprieve", Policy::Kubernetes(Kubernetes::default())), PendingQueue::default());
        for (pod, node, nominated) in [("victim", Some("n"), None), ("high", None, Some("n"))] {
            let mark = |unit| json!([{"type": VICTIM, "status": "True", "reason": "Marked", "message": unit}]);
            let conditions = marked_for.filter(|_| node.is_some()).map(mark);
            let pod = json!({
                "metadata": {"name": pod, "namespace": "default", "uid": pod, "resourceVersion": "1"},
                "spec": {"schedulerName": "reprieve", "nodeName": node, "containers": []},
                "status": {"nominatedNodeName": nominated, "conditions": conditions},
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
            PlannedAction::Nominate { pod: name("high"), node: Some("n".to_owned()) },
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

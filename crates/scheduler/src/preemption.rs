//! Preemption, in phases that are written in the API: first the scheduler nominates nodes and marks victims; then, if that stands and the
//! decision is still the same, it evicts the victims, all of them; then it waits for them. While they are leaving, and the placement
//! stands, no other victim is taken.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::{Kind, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::between_decisions::placement_still_fits;
use reprieve_engine::fit::Placement;
use reprieve_engine::snapshot::DisruptionMode;
use reprieve_engine::{NodeId, PodId, Timestamp};
use reprieve_loader::build::Loaded;
use reprieve_loader::policy::Question;
use reprieve_report::planned_actions::{self, PREEMPTING, PlannedAction};
use reprieve_report::unit_ref::UnitRef;

use crate::action::Action;
use crate::action_log::Request;
use crate::queue::PendingQueue;
use crate::test_bugs::{Bug, Bugs};
use crate::view::{ClusterView, preemptor_of};

/// Why a marked pod is evicted although no plan asks for it.
const BROKEN_GROUP: &str = "its group is evicted as a whole, and part of it has left";

/// The victims that are marked in the API, by preemptor.
#[derive(Default)]
pub(crate) struct Preemptions {
    marks: BTreeMap<UnitRef, BTreeSet<NamespacedName>>,
    /// Preemptors that wait no longer, or cannot be scheduled: their marks are to be taken back.
    released: BTreeSet<UnitRef>,
    pub bugs: Bugs,
}

/// The preemption of one unit, and what it follows from.
pub(crate) struct Preemption<'a> {
    preemptions: &'a Preemptions,
    unit: &'a UnitRef,
    view: &'a ClusterView,
    queue: &'a PendingQueue,
    now: Timestamp,
}

/// How far a preemption has come. It follows from the plan and from what is in the API; it is not stored, so that a scheduler that was
/// just started continues where another one stopped. Once the victims are gone, the unit is decided again and bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreemptionPhase {
    /// It is not known what became of a victim.
    AwaitingApiState,
    /// Nominations or marks of the plan are missing in the API.
    Planned,
    /// A victim is marked for this preemptor, which comes first: no victim is evicted on a mark that was made for another.
    Contested(UnitRef),
    /// All nominations and marks are in the API, and a victim is not evicted yet.
    Marked,
    /// All victims were evicted.
    Evicting,
}

impl Preemptions {
    /// Whether pods are marked as victims of a unit.
    pub fn has_victims(&self, unit: &UnitRef) -> bool {
        self.marks.contains_key(unit)
    }

    fn marked(&self, unit: &UnitRef) -> impl Iterator<Item = &NamespacedName> {
        self.marks.get(unit).into_iter().flatten()
    }

    /// A pod changed. Whether it is marked no longer, or for another preemptor.
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

    /// A unit may need its victims no longer.
    pub fn release(&mut self, unit: UnitRef) {
        self.released.insert(unit);
    }

    /// A pod that is marked for a unit that does not wait need not be.
    pub fn release_without_preemptor(&mut self, pod: Option<&Pod>, queue: &PendingQueue) {
        if let Some(unit) = preemptor_of(pod).filter(|unit| queue.get(unit).is_none()) {
            self.release(unit);
        }
    }

    /// The units that were released since the last call.
    pub fn take_released(&mut self) -> BTreeSet<UnitRef> {
        std::mem::take(&mut self.released)
    }

    /// The preemption of a unit.
    pub fn of<'a>(
        &'a self,
        unit: &'a UnitRef,
        view: &'a ClusterView,
        queue: &'a PendingQueue,
        now: Timestamp,
    ) -> Preemption<'a> {
        Preemption { preemptions: self, unit, view, queue, now }
    }

    /// Whether no other victim is taken for the unit now: one is still leaving for it, or is leaving where it is nominated, and its
    /// placement stands once they are gone.
    pub fn is_under_way(&self, unit: &UnitRef, question: &Question, view: &mut ClusterView) -> bool {
        if self.bugs.has(Bug::SecondRound) {
            return false;
        }
        let ask = question.ask(view.loaded());
        let Loaded { snapshot, names, .. } = view.loaded();
        // Pods that came later, beyond those that it needs, are no reason for a second round.
        let job = ask.members.first().and_then(|&pod| snapshot.pod(pod).job).map(|job| snapshot.job(job));
        let needed = job.map_or(ask.needed, |job| {
            let bound = job.members.iter().filter(|&&pod| snapshot.pod(pod).node.is_some()).count();
            ask.needed.min(job.min_member.saturating_sub(bound)).max(1)
        });
        let nominated = ask.members.iter().filter_map(|&pod| Some((pod, snapshot.pod(pod).nominated?)));
        let placement: Placement = nominated.collect();
        let nodes: BTreeSet<NodeId> = placement.iter().map(|(_, node)| *node).collect();
        let on_them = nodes.iter().flat_map(|node| snapshot.pods_on(*node));
        let leaving: Vec<PodId> = on_them.filter(|pod| view.is_leaving(names.pod(*pod))).collect();
        if leaving.is_empty() && !self.marked(unit).any(|victim| view.is_leaving(victim)) {
            return false;
        }
        let gone: BTreeSet<PodId> = self.marked(unit).filter_map(|pod| names.pod_id(pod)).chain(leaving).collect();
        let gone: Vec<PodId> = gone.into_iter().collect();
        placement.len() >= needed && placement_still_fits(&mut view.live.loaded_mut().snapshot, &ask, &placement, &gone)
    }
}

impl Preemption<'_> {
    fn marked(&self) -> impl Iterator<Item = &NamespacedName> {
        self.preemptions.marked(self.unit)
    }

    /// The phase of the preemption of a unit by a plan, and what is to be sent in it.
    pub fn advance(&self, plan: &[PlannedAction]) -> (PreemptionPhase, Vec<Request>) {
        if victims(plan).any(|victim| self.view.unsettled.contains(&ObjectKey::new(Kind::Pod, victim.clone()))) {
            return (PreemptionPhase::AwaitingApiState, Vec::new());
        }
        let mut preparations = nominate(self.unit, plan, self.view);
        let (marks, first) = self.mark(plan);
        preparations.extend(marks);
        if !preparations.is_empty() {
            return (PreemptionPhase::Planned, preparations);
        }
        if let Some(other) = first {
            return (PreemptionPhase::Contested(other), Vec::new());
        }
        let evictions = self.evict(plan);
        let phase = if evictions.is_empty() { PreemptionPhase::Evicting } else { PreemptionPhase::Marked };
        (phase, evictions)
    }

    /// Evicts the marked victims of a unit whose group yields whole, if part of that group is leaving or gone.
    pub fn finish_marked(&self) -> Vec<Request> {
        let broken = self.marked().filter(|victim| is_of_broken_group(victim, self.view)).cloned().collect();
        self.evict_broken(broken)
    }

    /// Takes back the marks of a unit that needs its victims no longer; but of a group that yields whole, part of which has gone, no pod
    /// stays.
    pub fn unmark_all(&self) -> Vec<Request> {
        self.unmark(self.marked().cloned().collect(), None)
    }

    fn unmark(&self, marked: Vec<NamespacedName>, waits: Option<&UnitRef>) -> Vec<Request> {
        let (broken, whole): (Vec<NamespacedName>, Vec<NamespacedName>) =
            marked.into_iter().partition(|victim| is_of_broken_group(victim, self.view));
        let mut requests = self.evict_broken(broken);
        let unmarked = whole.iter().filter_map(|pod| self.view.staying(pod)).map(|pod| Action::Unmark { pod });
        requests.extend(unmarked.map(|action| Request { unit: waits.cloned(), ..Request::new(action) }));
        requests
    }

    /// Marks each victim, and unmarks those that are victims no longer. A victim that is marked for a unit that comes before this one is
    /// left to that unit, which is returned.
    fn mark(&self, plan: &[PlannedAction]) -> (Vec<Request>, Option<UnitRef>) {
        let (mut requests, mut first) = (Vec::new(), None);
        for action in plan {
            let PlannedAction::Mark { pod, message } = action else { continue };
            let Some(pod) = self.view.staying(pod) else { continue };
            match preemptor_of(self.view.pod(&pod.name)) {
                Some(other) if other == *self.unit => {}
                Some(other) if self.queue.is_before(&other, self.unit) => first = Some(other),
                Some(_) | None => {
                    let (preemptor, message) = (self.unit.to_string(), message.clone());
                    requests.push(Request::of(self.unit, Action::Mark { pod, preemptor, message, at: self.now }));
                }
            }
        }
        let victims: BTreeSet<&NamespacedName> = victims(plan).collect();
        let spared = self.marked().filter(|pod| !victims.contains(pod)).cloned().collect();
        requests.extend(self.unmark(spared, Some(self.unit)));
        (requests, first)
    }

    fn evict_broken(&self, pods: Vec<NamespacedName>) -> Vec<Request> {
        let evict = |pod| planned_actions::evict(self.unit, self.view.policy(), pod, BROKEN_GROUP.to_owned());
        let plan: Vec<PlannedAction> = pods.into_iter().map(evict).collect();
        self.evict(&plan)
    }

    /// Evicts the victims of a plan that were not evicted yet.
    fn evict(&self, plan: &[PlannedAction]) -> Vec<Request> {
        let evictions = plan.iter().filter_map(|action| match action {
            PlannedAction::Evict { pod, label, why } => Some((self.view.staying(pod)?, label, why)),
            _ => None,
        });
        let mut evictions: Vec<_> = evictions.collect();
        if self.preemptions.bugs.has(Bug::HalfAGang) && evictions.len() > 1 {
            evictions.pop();
        }
        let mut requests = match self.preemptions.bugs.has(Bug::ForgottenNomination) && !evictions.is_empty() {
            true => nominate(self.unit, &[], self.view),
            false => Vec::new(),
        };
        let waits = self.queue.get(self.unit).is_some().then_some(self.unit);
        let mut victims: Vec<(ObjectKey, String)> = Vec::new();
        for (pod, label, why) in evictions {
            victims.push((ObjectKey::new(Kind::Pod, pod.name.clone()), why.clone()));
            let preempts = Some((self.unit.key(), planned_actions::preempted(self.unit, why)));
            let (preemptor, message) = (self.unit.to_string(), planned_actions::message(self.unit));
            let action = match label.clone() {
                Some(label) => Action::SoftEvict { pod, preemptor, message, label, at: self.now },
                None => Action::Evict { pod },
            };
            requests.push(Request { unit: waits.cloned(), preempts, ..Request::new(action) });
        }
        if let Some((first, _)) = victims.first().cloned() {
            let message = planned_actions::preempting(&victims);
            requests.push(Request::record(self.unit.key(), Some(first), PREEMPTING, message));
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

/// Nominates a node for each pod of the unit that has one in the plan, and none for the others.
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

/// Whether the pod is on a node, its group yields whole, and part of the group is leaving or gone.
fn is_of_broken_group(pod: &NamespacedName, view: &ClusterView) -> bool {
    let Loaded { snapshot, names, .. } = view.loaded();
    let pod = names.pod_id(pod).map(|pod| snapshot.pod(pod)).filter(|pod| pod.node.is_some());
    pod.and_then(|pod| pod.group).is_some_and(|group| {
        let group = snapshot.group(group);
        let members = || group.members.iter().map(|pod| snapshot.pod(*pod));
        let stay = members().filter(|pod| pod.node.is_some() && pod.terminating.is_none()).count();
        let evicted = members().any(|pod| pod.terminating.is_some_and(|leaving| leaving.by_preemption));
        group.mode == DisruptionMode::All && (evicted || stay < group.min_count)
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

    /// A view of a victim with this annotation and of a preemptor that is nominated to its node, and the queue of the preemptor.
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
        for (at, unit) in ["first", "high"].into_iter().enumerate() {
            let since = Timestamp(i64::try_from(at).expect("it is small"));
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
        let (phase, requests) = preemptions.of(&unit, view, queue, Timestamp(0)).advance(&plan);
        (phase, requests.iter().filter(|request| request.action.changes().is_some()).count())
    }

    #[test]
    fn the_phase_follows_from_what_is_in_the_api() {
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
        view.unsettled.insert(key);
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::AwaitingApiState, 0));
    }
}

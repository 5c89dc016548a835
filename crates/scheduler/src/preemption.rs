//! Preemption, in phases that are written in the API: first the scheduler nominates nodes and marks victims; then, if that stands and the
//! decision is still the same, it evicts the victims, all of them; then it waits for them. While they are leaving, and the placement
//! stands, no other victim is taken.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::choose::Plan;
use reprieve_engine::fit::Placement;
use reprieve_engine::hold::stands;
use reprieve_engine::policy::Policy;
use reprieve_engine::snapshot::DisruptionMode;
use reprieve_engine::{NodeId, PodId, Priority, Timestamp};
use reprieve_objects::load::Loaded;
use reprieve_objects::object::{Key, Kind};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;
use reprieve_objects::question::Question;

use crate::action::Action;
use crate::action_log::Request;
use crate::bug::{Bug, Bugs};
use crate::queue::PendingQueue;
use crate::unit::UnitName;
use crate::view::{ClusterView, preemptor_of};

/// How many victims the event of a preemption names.
const MOST_NAMED: usize = 5;

/// The victims that are marked in the API, by preemptor.
#[derive(Default)]
pub(crate) struct Preemptions {
    marks: BTreeMap<UnitName, BTreeSet<FullName>>,
    /// Preemptors that wait no longer, or cannot be scheduled: their marks are to be taken back.
    released: BTreeSet<UnitName>,
    pub bugs: Bugs,
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
    Contested(UnitName),
    /// All nominations and marks are in the API, and a victim is not evicted yet.
    Marked,
    /// All victims were evicted.
    Evicting,
}

impl Preemptions {
    /// Whether pods are marked as victims of a unit.
    pub fn has_victims(&self, unit: &UnitName) -> bool {
        self.marks.contains_key(unit)
    }

    fn marked(&self, unit: &UnitName) -> impl Iterator<Item = &FullName> {
        self.marks.get(unit).into_iter().flatten()
    }

    /// A pod changed. Whether it is marked no longer, or for another preemptor.
    pub fn pod_changed(&mut self, name: &FullName, before: Option<&Pod>, after: Option<&Pod>) -> bool {
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
    pub fn release(&mut self, unit: UnitName) {
        self.released.insert(unit);
    }

    /// A pod that is marked for a unit that does not wait need not be.
    pub fn release_without_preemptor(&mut self, pod: Option<&Pod>, queue: &PendingQueue) {
        if let Some(unit) = preemptor_of(pod).filter(|unit| queue.get(unit).is_none()) {
            self.release(unit);
        }
    }

    /// The units that were released since the last call.
    pub fn take_released(&mut self) -> BTreeSet<UnitName> {
        std::mem::take(&mut self.released)
    }

    /// The phase of the preemption of a unit by a plan, and what is to be sent in it.
    pub fn advance(
        &self,
        unit: &UnitName,
        (placement, victims): (&[(FullName, String)], &[FullName]),
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> (PreemptionPhase, Vec<Request>) {
        if victims.iter().any(|victim| view.is_unsettled(&Key::new(Kind::Pod, victim.clone()))) {
            return (PreemptionPhase::AwaitingApiState, Vec::new());
        }
        let mut preparations = nominate(unit, placement, view);
        let (marks, first) = self.mark(unit, victims, view, queue, now);
        preparations.extend(marks);
        if !preparations.is_empty() {
            return (PreemptionPhase::Planned, preparations);
        }
        if let Some(other) = first {
            return (PreemptionPhase::Contested(other), Vec::new());
        }
        let evictions = self.evict(unit, victims, view, queue, now);
        let phase = if evictions.is_empty() { PreemptionPhase::Evicting } else { PreemptionPhase::Marked };
        (phase, evictions)
    }

    /// Whether no other victim is taken for the unit now: one is still leaving for it, or is leaving where it is nominated, and its
    /// placement stands once they are gone.
    pub fn is_under_way(&self, unit: &UnitName, question: &Question, view: &mut ClusterView) -> bool {
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
        placement.len() >= needed && stands(&mut view.live.loaded_mut().snapshot, &ask, &placement, &gone)
    }

    /// Evicts the marked victims of a unit whose group yields whole, if part of that group is leaving or gone.
    pub fn finish_marked(
        &self,
        unit: &UnitName,
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> Vec<Request> {
        let broken: Vec<FullName> =
            self.marked(unit).filter(|victim| is_of_broken_group(victim, view)).cloned().collect();
        self.evict(unit, &broken, view, queue, now)
    }

    /// Takes back the marks of a unit that needs its victims no longer; but of a group that yields whole, part of which has gone, no pod
    /// stays.
    pub fn unmark_all(
        &self,
        unit: &UnitName,
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> Vec<Request> {
        self.unmark(unit, self.marked(unit).cloned().collect(), None, view, queue, now)
    }

    fn unmark(
        &self,
        unit: &UnitName,
        marked: Vec<FullName>,
        waits: Option<&UnitName>,
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> Vec<Request> {
        let (broken, whole): (Vec<FullName>, Vec<FullName>) =
            marked.into_iter().partition(|victim| is_of_broken_group(victim, view));
        let mut requests = self.evict(unit, &broken, view, queue, now);
        let unmarked = view.staying(&whole).into_iter().map(|pod| Action::Unmark { pod });
        requests.extend(unmarked.map(|action| Request { unit: waits.cloned(), ..Request::new(action) }));
        requests
    }

    /// Marks each victim, and unmarks those that are victims no longer. A victim that is marked for a unit that comes before this one is
    /// left to that unit, which is returned.
    fn mark(
        &self,
        unit: &UnitName,
        victims: &[FullName],
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> (Vec<Request>, Option<UnitName>) {
        let (mut requests, mut first) = (Vec::new(), None);
        for pod in view.staying(victims) {
            match preemptor_of(view.pod(&pod.name)) {
                Some(other) if other == *unit => {}
                Some(other) if queue.is_before(&other, unit) => first = Some(other),
                Some(_) | None => {
                    let (preemptor, message) = (unit.to_string(), format!("preempted for {unit}"));
                    requests.push(Request::of(unit, Action::Mark { pod, preemptor, message, at: now }));
                }
            }
        }
        let victims: BTreeSet<&FullName> = victims.iter().collect();
        let spared = self.marked(unit).filter(|pod| !victims.contains(pod)).cloned().collect();
        requests.extend(self.unmark(unit, spared, Some(unit), view, queue, now));
        (requests, first)
    }

    fn evict(
        &self,
        unit: &UnitName,
        victims: &[FullName],
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> Vec<Request> {
        let mut staying = view.staying(victims);
        if self.bugs.has(Bug::HalfAGang) && staying.len() > 1 {
            staying.pop();
        }
        let mut requests = match self.bugs.has(Bug::ForgottenNomination) && !staying.is_empty() {
            true => nominate(unit, &[], view),
            false => Vec::new(),
        };
        let waits = queue.get(unit).is_some().then_some(unit);
        let mut yielding: Vec<(Key, String)> = Vec::new();
        for pod in staying {
            let about = Key::new(Kind::Pod, pod.name.clone());
            let message = format!("preempted for {unit}");
            let ground = ground(unit, &about.name, view, queue);
            let preempts = Some((unit.key(), format!("{message}: {ground}")));
            let action = match is_soft(view.policy()) {
                true => Action::SoftEvict { pod, preemptor: unit.to_string(), message, at: now },
                false => Action::Evict { pod },
            };
            requests.push(Request { unit: waits.cloned(), preempts, ..Request::new(action) });
            yielding.push((about, ground));
        }
        if let Some((first, _)) = yielding.first().cloned() {
            requests.push(Request::record(unit.key(), Some(first), "Preempting", told(&yielding)));
        }
        requests
    }
}

/// The pods of the victims of a plan.
pub(crate) fn victims(plan: &Plan, view: &ClusterView) -> Vec<FullName> {
    let Loaded { snapshot, names, .. } = view.loaded();
    let pods = plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods);
    pods.map(|&pod| names.pod(pod).clone()).collect()
}

/// Nominates a node for each pod of the unit that has one in the placement, and none for the others.
pub(crate) fn nominate(unit: &UnitName, placement: &[(FullName, String)], view: &ClusterView) -> Vec<Request> {
    let places: BTreeMap<&FullName, &String> = placement.iter().map(|(pod, node)| (pod, node)).collect();
    let mut requests = Vec::new();
    for name in view.members(unit) {
        let place = places.get(&name).map(|node| (*node).clone());
        let Some(pod) = view.pod(&name).filter(|pod| pod.node_name.is_none()) else { continue };
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
        if nominated.filter(|node| !node.is_empty()) != place
            && let Some(pod) = view.target(&Key::new(Kind::Pod, name))
        {
            requests.push(Request::of(unit, Action::Nominate { pod, node: place }));
        }
    }
    requests
}

/// Why this pod may be taken for the unit.
fn ground(unit: &UnitName, victim: &FullName, view: &ClusterView, queue: &PendingQueue) -> String {
    let Loaded { snapshot, names, .. } = view.loaded();
    let victim = names.pod_id(victim).map(|pod| snapshot.pod(pod));
    match (view.policy(), victim.and_then(|victim| victim.queue)) {
        (Policy::YuniKorn, Some(queue)) => format!("its queue {} uses more than it is guaranteed", names.queue(queue)),
        _ => {
            let preemptor = queue.get(unit).map_or(Priority(0), |waiting| waiting.priority);
            let priority = victim.map_or(Priority(0), |victim| victim.priority);
            format!("its priority {} is below {}", priority.0, preemptor.0)
        }
    }
}

/// Whether victims are only labelled, for another operator to evict them.
fn is_soft(policy: &Policy) -> bool {
    matches!(policy, Policy::Koordinator(policy) if !policy.deletes_victims)
}

/// Whether the pod is on a node, its group yields whole, and part of the group is leaving or gone.
fn is_of_broken_group(pod: &FullName, view: &ClusterView) -> bool {
    let Loaded { snapshot, names, .. } = view.loaded();
    let pod = names.pod_id(pod).map(|pod| snapshot.pod(pod)).filter(|pod| pod.node.is_some());
    pod.and_then(|pod| pod.group).is_some_and(|group| {
        let group = snapshot.group(group);
        let members = || group.members.iter().map(|pod| snapshot.pod(*pod));
        let stay = members().filter(|pod| pod.node.is_some() && pod.leaving.is_none()).count();
        let evicted = members().any(|pod| pod.leaving.is_some_and(|leaving| leaving.preempted));
        group.mode == DisruptionMode::All && (evicted || stay < group.min_count)
    })
}

/// Who yields and why, in one sentence for each of the first few.
fn told(yielding: &[(Key, String)]) -> String {
    let named = yielding.iter().take(MOST_NAMED).map(|(victim, ground)| format!("{victim} yields for it: {ground}"));
    let others = yielding.len().saturating_sub(MOST_NAMED);
    let rest = (others > 0).then(|| format!("and {others} others"));
    named.chain(rest).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use reprieve_objects::object::Object;
    use serde_json::json;

    use super::*;
    use crate::action::{ActionId, PREEMPTED_FOR};
    use crate::queue::Needy;

    fn name(pod: &str) -> FullName {
        FullName::new("default", pod)
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
            let name = FullName::of(&pod.metadata);
            view.seen(&Object::from(pod));
            let update = view.update_pod(&name, Bugs::default()).expect("it is new");
            preemptions.pod_changed(&name, None, update.after.as_deref());
        }
        for (at, unit) in ["first", "high"].into_iter().enumerate() {
            let since = Timestamp(i64::try_from(at).expect("it is small"));
            queue.put(&UnitName::Pod(name(unit)), Needy { priority: Priority(9), since, count: 1 });
        }
        (preemptions, view, queue)
    }

    fn phase(preemptions: &Preemptions, view: &ClusterView, queue: &PendingQueue) -> (PreemptionPhase, usize) {
        let (placement, victims) = ([(name("high"), "n".to_owned())], [name("victim")]);
        let unit = UnitName::Pod(name("high"));
        let (phase, requests) = preemptions.advance(&unit, (&placement, &victims), view, queue, Timestamp(0));
        (phase, requests.iter().filter(|request| request.action.changes().is_some()).count())
    }

    #[test]
    fn the_phase_follows_from_what_is_in_the_api() {
        let (preemptions, view, queue) = situation(None);
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Planned, 1));

        let (preemptions, view, queue) = situation(Some("Pod default/first"));
        let first = UnitName::Pod(name("first"));
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Contested(first), 0));

        let (preemptions, mut view, queue) = situation(Some("Pod default/high"));
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Marked, 1));
        let key = Key::new(Kind::Pod, name("victim"));
        let target = view.target(&key).expect("it is known");
        view.assume(ActionId(0), &Action::Evict { pod: target }, Timestamp(0));
        view.update_pod(&key.name, Bugs::default());
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::Evicting, 0));
        view.unsettle(key);
        assert_eq!(phase(&preemptions, &view, &queue), (PreemptionPhase::AwaitingApiState, 0));
    }
}

//! Preemption, delayed: first it is said in the API who is to land where and who is to yield; then, if that stands and the decision
//! is still the same, the victims are evicted, all of them; then they are waited for. While they are leaving, and the placement
//! stands, nobody else is taken.

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
use reprieve_objects::question::Question;

use super::{Scheduler, Verdict};
use crate::action::Action;
use crate::action_log::Request;
use crate::bug::Bug;
use crate::queue::State;
use crate::unit::UnitName;
use crate::view::preemptor_of;

/// How many victims the event of a preemption names.
const MOST_NAMED: usize = 5;

impl Scheduler {
    pub(super) fn preempt(&mut self, unit: &UnitName, plan: &Plan, now: Timestamp) -> Verdict {
        let placement = self.view.named(&plan.placement);
        let victims = self.victims(plan);
        if victims.iter().any(|victim| self.view.is_unsettled(&Key::new(Kind::Pod, victim.clone()))) {
            let why = "waits to know what became of its victims".to_owned();
            self.queue.set(unit, State::Change { until: None, why: why.as_str().into() });
            return Verdict::Wait { law: "Unsettled", why };
        }
        let mut preparations = self.nominate(unit, &placement);
        let (marks, yields_first) = self.mark(unit, &victims, now);
        preparations.extend(marks);
        if !preparations.is_empty() {
            self.send_all(preparations, now);
            return Verdict::Prepare { placement, victims };
        }
        if let Some(other) = yields_first {
            let why = format!("its victims are to yield for {other} first");
            self.queue.set(unit, State::Change { until: None, why: why.as_str().into() });
            return Verdict::Wait { law: "Underway", why };
        }
        let evictions = self.evict(unit, &victims, now);
        if evictions.is_empty() {
            let why = "its victims are leaving".to_owned();
            self.queue.wait_to_land(unit, &why, &self.view);
            return Verdict::Wait { law: "Underway", why };
        }
        self.send_all(evictions, now);
        Verdict::Preempt { placement, victims }
    }

    /// Why nobody new is taken for the unit now: somebody is still leaving for it, or is leaving where it is meant to land, and its
    /// placement stands once they are gone.
    pub(super) fn under_way(&mut self, unit: &UnitName, question: &Question, now: Timestamp) -> Option<String> {
        if self.bugs.has(Bug::SecondRound) {
            return None;
        }
        let marked = self.marks.get(unit).cloned().unwrap_or_default();
        let ask = question.ask(self.view.loaded());
        let Loaded { snapshot, names, .. } = self.view.loaded();
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
        let leaving: Vec<PodId> = on_them.filter(|pod| self.view.is_leaving(names.pod(*pod))).collect();
        if leaving.is_empty() && !marked.iter().any(|victim| self.view.is_leaving(victim)) {
            return None;
        }
        let gone: BTreeSet<PodId> = marked.iter().filter_map(|pod| names.pod_id(pod)).chain(leaving).collect();
        let gone: Vec<PodId> = gone.into_iter().collect();
        if placement.len() < needed || !stands(&mut self.view.live.loaded_mut().snapshot, &ask, &placement, &gone) {
            return None;
        }
        self.finish_marked(unit, now);
        let why = "its victims are leaving".to_owned();
        self.queue.wait_to_land(unit, &why, &self.view);
        Some(why)
    }

    /// Evicts whoever was told to yield for the unit and is of a group that yields whole, part of which is leaving or gone.
    pub(super) fn finish_marked(&mut self, unit: &UnitName, now: Timestamp) {
        let marked = self.marks.get(unit).into_iter().flatten();
        let broken: Vec<FullName> = marked.filter(|victim| self.is_of_broken_group(victim)).cloned().collect();
        let evictions = self.evict(unit, &broken, now);
        self.send_all(evictions, now);
    }

    /// The unit cannot be scheduled: it is meant for no node, and nobody is to yield for it.
    pub(super) fn give_up(&mut self, unit: &UnitName, now: Timestamp) {
        let nominations = self.nominate(unit, &[]);
        self.send_all(nominations, now);
        self.left_behind.insert(unit.clone());
    }

    /// Those who were told to yield for units that need it no longer are told that they need not; but of a group that yields whole,
    /// part of which has gone, nobody stays.
    pub(super) fn clear_left_behind(&mut self, now: Timestamp) {
        for unit in std::mem::take(&mut self.left_behind) {
            let marked: Vec<FullName> = self.marks.get(&unit).into_iter().flatten().cloned().collect();
            let requests = self.spare(&unit, marked, None, now);
            self.send_all(requests, now);
        }
    }

    /// Tells those who were told to yield that they need not, unless they are of a group of which nobody may stay.
    fn spare(&self, unit: &UnitName, marked: Vec<FullName>, waits: Option<&UnitName>, now: Timestamp) -> Vec<Request> {
        let (broken, whole): (Vec<FullName>, Vec<FullName>) =
            marked.into_iter().partition(|victim| self.is_of_broken_group(victim));
        let mut requests = self.evict(unit, &broken, now);
        let unmarked = self.view.staying(&whole).into_iter().map(|pod| Action::Unmark { pod });
        requests.extend(unmarked.map(|action| Request { unit: waits.cloned(), ..Request::new(action) }));
        requests
    }

    /// Says of each pod of the unit where it is meant to land; of those without a place, that they are meant for none.
    fn nominate(&self, unit: &UnitName, placement: &[(FullName, String)]) -> Vec<Request> {
        let places: BTreeMap<&FullName, &String> = placement.iter().map(|(pod, node)| (pod, node)).collect();
        let mut requests = Vec::new();
        for name in self.view.members(unit) {
            let place = places.get(&name).map(|node| (*node).clone());
            let Some(pod) = self.view.live.pod(&name) else { continue };
            let bound = pod.node_name.is_some();
            let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
            if !bound
                && nominated.filter(|node| !node.is_empty()) != place
                && let Some(pod) = self.view.target(&Key::new(Kind::Pod, name))
            {
                requests.push(Request::of(unit, Action::Nominate { pod, node: place }));
            }
        }
        requests
    }

    /// Says on each victim that it is to yield, and on those that no longer are that they need not. Who was told so for a unit that
    /// comes before this one yields for that one: nobody is evicted on a word that was given to another. That unit is returned.
    fn mark(&self, unit: &UnitName, victims: &[FullName], now: Timestamp) -> (Vec<Request>, Option<UnitName>) {
        let marked = self.marks.get(unit).cloned().unwrap_or_default();
        let (mut requests, mut yields_first) = (Vec::new(), None);
        for pod in self.view.staying(victims) {
            match preemptor_of(self.view.pod(&pod.name)) {
                Some(other) if other == *unit => {}
                Some(other) if self.queue.is_before(&other, unit) => yields_first = Some(other),
                Some(_) | None => {
                    let message = format!("preempted for {unit}");
                    let mark = Action::Mark { pod, preemptor: unit.to_string(), message, at: now };
                    requests.push(Request::of(unit, mark));
                }
            }
        }
        let victims: BTreeSet<&FullName> = victims.iter().collect();
        let spared: Vec<FullName> = marked.into_iter().filter(|pod| !victims.contains(pod)).collect();
        requests.extend(self.spare(unit, spared, Some(unit), now));
        (requests, yields_first)
    }

    fn evict(&self, unit: &UnitName, victims: &[FullName], now: Timestamp) -> Vec<Request> {
        let mut staying = self.view.staying(victims);
        if self.bugs.has(Bug::HalfAGang) && staying.len() > 1 {
            staying.pop();
        }
        let mut requests = match self.bugs.has(Bug::ForgottenNomination) && !staying.is_empty() {
            true => self.nominate(unit, &[]),
            false => Vec::new(),
        };
        let waits = self.queue.get(unit).is_some().then_some(unit);
        let mut yielding: Vec<(Key, String)> = Vec::new();
        for pod in staying {
            let about = Key::new(Kind::Pod, pod.name.clone());
            let message = format!("preempted for {unit}");
            let ground = self.ground(unit, &about.name);
            let preempts = Some((unit.key(), format!("{message}: {ground}")));
            let action = match self.is_soft() {
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

    /// Why this pod may be taken for the unit.
    fn ground(&self, unit: &UnitName, victim: &FullName) -> String {
        let Loaded { snapshot, names, .. } = self.view.loaded();
        let victim = names.pod_id(victim).map(|pod| snapshot.pod(pod));
        match (self.view.policy(), victim.and_then(|victim| victim.queue)) {
            (Policy::YuniKorn, Some(queue)) => {
                format!("its queue {} uses more than it is guaranteed", names.queue(queue))
            }
            _ => {
                let preemptor = self.queue.get(unit).map_or(Priority(0), |waiting| waiting.priority);
                let priority = victim.map_or(Priority(0), |victim| victim.priority);
                format!("its priority {} is below {}", priority.0, preemptor.0)
            }
        }
    }

    fn victims(&self, plan: &Plan) -> Vec<FullName> {
        let loaded = self.view.loaded();
        let pods = plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods);
        pods.map(|&pod| loaded.names.pod(pod).clone()).collect()
    }

    /// Whether victims are only labelled, for another operator to evict them.
    fn is_soft(&self) -> bool {
        matches!(self.view.policy(), Policy::Koordinator(policy) if !policy.deletes_victims)
    }

    /// Whether the pod is on a node, its group yields whole, and part of it is leaving or gone.
    fn is_of_broken_group(&self, pod: &FullName) -> bool {
        let loaded = self.view.loaded();
        let pod = loaded.names.pod_id(pod).map(|pod| loaded.snapshot.pod(pod)).filter(|pod| pod.node.is_some());
        pod.and_then(|pod| pod.group).is_some_and(|group| {
            let group = loaded.snapshot.group(group);
            let members = || group.members.iter().map(|pod| loaded.snapshot.pod(*pod));
            let stay = members().filter(|pod| pod.node.is_some() && pod.leaving.is_none()).count();
            let evicted = members().any(|pod| pod.leaving.is_some_and(|leaving| leaving.preempted));
            group.mode == DisruptionMode::All && (evicted || stay < group.min_count)
        })
    }
}

/// Who yields and why, in one sentence for each of the first few.
fn told(yielding: &[(Key, String)]) -> String {
    let named = yielding.iter().take(MOST_NAMED).map(|(victim, ground)| format!("{victim} yields for it: {ground}"));
    let others = yielding.len().saturating_sub(MOST_NAMED);
    let rest = (others > 0).then(|| format!("and {others} others"));
    named.chain(rest).collect::<Vec<_>>().join("; ")
}

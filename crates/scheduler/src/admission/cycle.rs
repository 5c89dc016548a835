//! Who gets quota: the cycle of policy Kueue over all workloads that wait, run when something changed that it reads.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::{Key, Kind, Object};
use reprieve_api::kueue::AdmissionSpec;
use reprieve_api::meta::FullName;
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{self, Considered, noted_cycle};
use reprieve_engine::workloads::Queueing;
use reprieve_engine::{Outcome, Timestamp, WorkloadId};
use reprieve_report::cycle::{admission, reason};
use reprieve_report::planned_actions::{
    self, ADMITTED, PREEMPTED, PREEMPTING, PlannedAction, admitted, workload_evictions,
};
use reprieve_report::unit_name::UnitName;

use super::Admission;
use crate::action::{Action, Target};
use crate::action_log::Request;
use crate::effects::preempted_for;
use crate::queue::{PATIENCE_SECONDS, PendingQueue, State};
use crate::step::Verdict;
use crate::view::ClusterView;
use crate::wait_reason::{WaitReason, is_about};

/// What a cycle says of a workload, in names.
pub(crate) enum Head {
    Admit(Box<AdmissionSpec>),
    Preempt {
        /// All victims; some may have been evicted before.
        victims: Vec<FullName>,
        plan: Vec<PlannedAction>,
    },
    Wait {
        reason: WaitReason,
        why: String,
        until: Option<Timestamp>,
        /// Whether that is true of all that ask for the same.
        for_all: bool,
    },
}

/// The workloads that take part in a cycle, and those that do not.
#[derive(Default)]
pub(crate) struct Entrants {
    /// The first of every line, and those that stand alone.
    pub ids: Vec<WorkloadId>,
    /// Those whose turn has come.
    woken: Vec<UnitName>,
    /// Those that are held back: the victim that they wait for, and until when.
    held: BTreeMap<UnitName, (UnitName, Timestamp)>,
    /// Those that cannot be understood, and why.
    misunderstood: Vec<(UnitName, String)>,
}

impl Admission {
    /// The workloads that take part in a cycle; `None` where nothing changed that a cycle reads.
    pub fn entrants(&mut self, view: &ClusterView, queue: &mut PendingQueue, now: Timestamp) -> Option<Entrants> {
        let Policy::Kueue(policy) = view.policy() else { return None };
        let woken: Vec<UnitName> = queue.active().filter(|unit| is_workload(unit)).cloned().collect();
        if !queue.take_quota_news() && woken.is_empty() {
            return None;
        }
        let is_aside = |name: &FullName| {
            let one = queue.get(&UnitName::Workload(name.clone()));
            one.is_some_and(|one| matches!(one.state, State::Aside { .. }))
        };
        let unknown = self.claims.sort(&view.live, policy, is_aside).into_iter().map(UnitName::Workload);
        let next: Vec<UnitName> = self.claims.next().cloned().map(UnitName::Workload).collect();
        let held = self.held_back(&next, view, queue, now);
        let free = next.iter().filter(|unit| !held.contains_key(unit)).map(|unit| unit.key().name);
        let ids = free.filter(|name| !is_aside(name)).filter_map(|name| view.loaded().names.workload_id(&name));
        let why =
            |unit: &UnitName| Some(format!("it cannot be understood: {}", view.live.fault_of(&unit.key())?.problem));
        let misunderstood = unknown.filter_map(|unit| why(&unit).map(|why| (unit, why))).collect();
        Some(Entrants { ids: ids.collect(), woken, held, misunderstood })
    }

    /// What those wait for that did not take part in a cycle, and those that were not first.
    pub fn park(&self, entrants: &Entrants, queue: &mut PendingQueue) {
        for unit in &entrants.woken {
            wait_for_quota(unit, WaitReason::NotFirst, None, "others of its queue come first", queue);
        }
        for (unit, (victim, until)) in &entrants.held {
            let why = format!("{victim} was preempted for a workload that has yet to get its quota");
            wait_for_quota(unit, WaitReason::HeldBack, Some(*until), &why, queue);
        }
        for (unit, why) in &entrants.misunderstood {
            wait_for_quota(unit, WaitReason::Misunderstood, None, why, queue);
        }
    }

    /// Writes on workloads that cannot be understood that they have no quota.
    pub fn refuse_misunderstood(&self, entrants: &Entrants, view: &ClusterView) -> Vec<Request> {
        let refused = entrants.misunderstood.iter();
        refused
            .filter_map(|(unit, why)| refuse(unit, view.target(&unit.key())?, (WaitReason::Misunderstood, why), view))
            .collect()
    }

    /// Those who were preempted lately, while whoever they yielded to waits: what they left is not for them. In a queue that is
    /// strict nobody goes before them. By unit of those who are next: who was preempted, and until when that counts.
    fn held_back(
        &self,
        next: &[UnitName],
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> BTreeMap<UnitName, (UnitName, Timestamp)> {
        let loaded = view.loaded();
        let mut held = BTreeMap::new();
        for unit in &self.claims.alone().cloned().map(UnitName::Workload).collect::<Vec<_>>() {
            let Some(Object::KueueWorkload(workload)) = view.live.get(&unit.key()) else { continue };
            let Some((preemptor, since)) = preempted_for(workload) else { continue };
            let until = since.plus_seconds(PATIENCE_SECONDS);
            if until <= now || queue.get(&UnitName::Workload(preemptor)).is_none() {
                continue;
            }
            held.insert(unit.clone(), (unit.clone(), until));
            let queue = |unit: &UnitName| {
                let workload = loaded.snapshot.workload(loaded.names.workload_id(&unit.key().name)?);
                Some((workload.queue?, workload.queue_order()))
            };
            let Some((own, place)) = queue(unit) else { continue };
            if loaded.snapshot.quota_rules().queues[own.index()].queueing == Queueing::StrictFifo {
                let behind = |other: &&UnitName| queue(other).is_some_and(|(of, at)| of == own && at > place);
                for other in next.iter().filter(behind) {
                    held.entry(other.clone()).or_insert_with(|| (unit.clone(), until));
                }
            }
        }
        held
    }

    /// What is to be done for a workload that took part in a cycle.
    pub fn carry_out(
        &mut self,
        unit: &UnitName,
        head: Head,
        view: &ClusterView,
        queue: &mut PendingQueue,
    ) -> (Verdict, Vec<Request>) {
        let key = unit.key();
        let Some(target) = view.target(&key) else {
            return unsettled(unit, queue);
        };
        match head {
            Head::Admit(admission) => {
                let message = admitted(&admission.cluster_queue);
                let admit = Request::of(unit, Action::Admit { workload: target, admission });
                let requests = vec![admit, Request::record(key, None, ADMITTED, message)];
                (Verdict::Schedule { placement: Vec::new() }, requests)
            }
            Head::Preempt { victims, plan } => evict(unit, victims, &plan, view, queue),
            Head::Wait { reason, why, until, for_all } => {
                let mut requests: Vec<Request> = refuse(unit, target, (reason, &why), view).into_iter().collect();
                wait_for_quota(unit, reason, until, &why, queue);
                let others = if for_all { self.claims.tell(&key.name) } else { BTreeSet::new() };
                for other in others.into_iter().map(UnitName::Workload).filter(|other| other != unit) {
                    match view.target(&other.key()) {
                        Some(target) => requests.extend(refuse(&other, target, (reason, &why), view)),
                        None => self.claims.put(&other.key().name),
                    }
                }
                (Verdict::Wait { reason, why }, requests)
            }
        }
    }
}

/// Decides a cycle. `note` is told whom it is about to decide.
pub(crate) fn decide(
    view: &ClusterView,
    ids: &[WorkloadId],
    now: Timestamp,
    mut note: impl FnMut(UnitName),
) -> Vec<(WorkloadId, UnitName, Head)> {
    let Policy::Kueue(policy) = view.policy() else { return Vec::new() };
    let unit = |id| UnitName::Workload(view.loaded().names.workload(id).clone());
    let cycle = noted_cycle(&view.loaded().snapshot, policy, ids, now, &mut |id| note(unit(id)));
    cycle.iter().map(|head| (head.workload, unit(head.workload), named_head(head, view))).collect()
}

/// What a unit waits for from now on, unless it waits for an action, or backs off.
fn wait_for_quota(unit: &UnitName, reason: WaitReason, until: Option<Timestamp>, why: &str, queue: &mut PendingQueue) {
    queue.set_reason(unit, reason);
    let state_now = queue.get(unit).map(|waiting| &waiting.state);
    if matches!(state_now, Some(State::Active | State::Change { .. })) {
        queue.set(unit, State::Change { until, why: why.into() });
    }
}

fn named_head(head: &Considered, view: &ClusterView) -> Head {
    let loaded = view.loaded();
    if let kueue::Verdict::Decided(outcome) = &head.verdict {
        match (outcome, &head.assignment) {
            (Outcome::Schedule(_), Some(given)) => {
                return Head::Admit(Box::new(admission(loaded, head.workload, given)));
            }
            (Outcome::Preempt(plan), _) => {
                let workloads = plan.victims.iter().filter_map(|unit| loaded.snapshot.unit(*unit).workload);
                let victims = workloads.map(|workload| loaded.names.workload(workload).clone()).collect();
                return Head::Preempt { victims, plan: workload_evictions(loaded, plan) };
            }
            _ => {}
        }
    }
    let until = match &head.verdict {
        kueue::Verdict::Decided(Outcome::Wait(Law::Delay { until })) => Some(*until),
        _ => None,
    };
    let (name, why) = reason(loaded, head);
    let reason = match (&head.verdict, name) {
        (kueue::Verdict::Skipped(skip), _) => WaitReason::of_skip(*skip),
        (kueue::Verdict::Decided(Outcome::Wait(law) | Outcome::Unschedulable(Some(law))), Some(name)) => {
            WaitReason::of_law(law, name)
        }
        (kueue::Verdict::Decided(_), _) => WaitReason::NoPlan,
    };
    let for_all = matches!(head.verdict, kueue::Verdict::Decided(_));
    Head::Wait { reason, why, until, for_all }
}

/// Writes on a workload that it has no quota, and why, unless that is written already.
fn refuse(unit: &UnitName, workload: Target, (reason, why): (WaitReason, &str), view: &ClusterView) -> Option<Request> {
    let message = format!("{reason}: {why}");
    (!was_refused(&unit.key(), reason, view)).then(|| Request::of(unit, Action::Refuse { workload, message }))
}

/// Evicts the workloads of a plan that were not evicted yet.
fn evict(
    unit: &UnitName,
    victims: Vec<FullName>,
    plan: &[PlannedAction],
    view: &ClusterView,
    queue: &mut PendingQueue,
) -> (Verdict, Vec<Request>) {
    let mut requests = Vec::new();
    for action in plan {
        let PlannedAction::EvictWorkload { workload: victim, ground, .. } = action else { continue };
        if is_evicted(victim, view) {
            continue;
        }
        let (key, ground) = (Key::new(Kind::KueueWorkload, victim.clone()), *ground);
        let Some(workload) = view.target(&key).filter(|_| view.assumed.is_settled(&key)) else {
            return unsettled(unit, queue);
        };
        let action = Action::EvictWorkload { workload, preemptor: unit.key().name, ground };
        requests.push(Request::of(unit, action));
        let preempted = planned_actions::preempted(unit, &format!("{ground:?}"));
        requests.push(Request::record(key.clone(), Some(unit.key()), PREEMPTED, preempted));
        let preempting = planned_actions::preempting_workload(victim);
        requests.push(Request::record(unit.key(), Some(key), PREEMPTING, preempting));
    }
    wait_for_quota(unit, WaitReason::Underway, None, "its victims are leaving", queue);
    (Verdict::Preempt { placement: Vec::new(), victims }, requests)
}

fn unsettled(unit: &UnitName, queue: &mut PendingQueue) -> (Verdict, Vec<Request>) {
    let why = "waits to know what became of it, or of its victims".to_owned();
    wait_for_quota(unit, WaitReason::Unsettled, None, &why, queue);
    (Verdict::Wait { reason: WaitReason::Unsettled, why }, Vec::new())
}

fn is_evicted(workload: &FullName, view: &ClusterView) -> bool {
    let loaded = view.loaded();
    let id = loaded.names.workload_id(workload);
    id.and_then(|id| loaded.snapshot.workload(id).admission.as_ref()).is_none_or(|admission| admission.evicted)
}

/// Whether it is written on the workload that it has no quota for this reason.
fn was_refused(key: &Key, reason: WaitReason, view: &ClusterView) -> bool {
    let Some(Object::KueueWorkload(workload)) = view.live.get(key) else { return true };
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    let quota = conditions.into_iter().find(|condition| condition.type_ == "QuotaReserved");
    quota.is_some_and(|condition| condition.status == "False" && is_about(&condition.message, reason.as_str()))
}

fn is_workload(unit: &UnitName) -> bool {
    matches!(unit, UnitName::Workload(_))
}

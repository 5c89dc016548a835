//! Who gets quota: the cycle of policy Kueue over all workloads that wait, run when something changed that it reads.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::kueue::AdmissionSpec;
use reprieve_api::meta::NamespacedName;
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{self, CycleEntry, run_cycle_with_progress};
use reprieve_engine::workloads::QueueingStrategy;
use reprieve_engine::{Outcome, Timestamp, WorkloadId};
use reprieve_report::cycle::{admission, reason};
use reprieve_report::planned_actions::{
    self, ADMITTED, PREEMPTED, PREEMPTING, PlannedAction, admitted, workload_evictions,
};
use reprieve_report::unit_ref::UnitRef;

use super::Admission;
use crate::action::{Action, Target};
use crate::action_log::Request;
use crate::effects::preemptor_recorded_on;
use crate::queue::{PendingQueue, STARVATION_SECONDS, WaitState};
use crate::step::StepOutcome;
use crate::view::ClusterView;
use crate::wait_reason::{WaitReason, is_about};

/// What a cycle says of a workload, in names.
pub(crate) enum HeadResult {
    Admit(Box<AdmissionSpec>),
    Preempt {
        /// All victims; some may have been evicted before.
        victims: Vec<NamespacedName>,
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
    woken: Vec<UnitRef>,
    /// Those that are held back: the victim that they wait for, and until when.
    held: BTreeMap<UnitRef, (UnitRef, Timestamp)>,
    /// Those that cannot be understood, and why.
    misunderstood: Vec<(UnitRef, String)>,
}

impl Admission {
    /// The workloads that take part in a cycle; `None` where nothing changed that a cycle reads.
    pub fn entrants(&mut self, view: &ClusterView, queue: &mut PendingQueue, now: Timestamp) -> Option<Entrants> {
        let Policy::Kueue(policy) = view.policy() else { return None };
        let woken: Vec<UnitRef> = queue.active().filter(|unit| is_workload(unit)).cloned().collect();
        if !queue.take_quota_changed() && woken.is_empty() {
            return None;
        }
        let is_aside = |name: &NamespacedName| {
            let one = queue.get(&UnitRef::Workload(name.clone()));
            one.is_some_and(|one| matches!(one.state, WaitState::AfterError { .. }))
        };
        let unknown = self.claims.regroup(&view.live, policy, is_aside).into_iter().map(UnitRef::Workload);
        let next: Vec<UnitRef> = self.claims.heads().cloned().map(UnitRef::Workload).collect();
        let held = self.held_back(&next, view, queue, now);
        let free = next.iter().filter(|unit| !held.contains_key(unit)).map(|unit| unit.key().name);
        let ids = free.filter(|name| !is_aside(name)).filter_map(|name| view.loaded().names.workload_id(&name));
        let why = |unit: &UnitRef| {
            Some(format!("it cannot be understood: {}", view.live.quarantine_reason(&unit.key())?.problem))
        };
        let misunderstood = unknown.filter_map(|unit| why(&unit).map(|why| (unit, why))).collect();
        Some(Entrants { ids: ids.collect(), woken, held, misunderstood })
    }

    /// What those wait for that did not take part in a cycle, and those that were not first.
    pub fn park(&self, entrants: &Entrants, queue: &mut PendingQueue) {
        for unit in &entrants.woken {
            wait_for_quota(unit, WaitReason::BehindQueueHead, None, "others of its queue come first", queue);
        }
        for (unit, (victim, until)) in &entrants.held {
            let why = format!("{victim} was preempted for a workload that has yet to get its quota");
            wait_for_quota(unit, WaitReason::WaitingForOlderUnit, Some(*until), &why, queue);
        }
        for (unit, why) in &entrants.misunderstood {
            wait_for_quota(unit, WaitReason::InvalidObject, None, why, queue);
        }
    }

    /// Writes on workloads that cannot be understood that they have no quota.
    pub fn refuse_misunderstood(&self, entrants: &Entrants, view: &ClusterView) -> Vec<Request> {
        let refused = entrants.misunderstood.iter();
        refused
            .filter_map(|(unit, why)| refuse(unit, view.target(&unit.key())?, (WaitReason::InvalidObject, why), view))
            .collect()
    }

    /// Those who were preempted lately, while whoever they yielded to waits: what they left is not for them. In a queue that is
    /// strict nobody goes before them. By unit of those who are next: who was preempted, and until when that counts.
    fn held_back(
        &self,
        next: &[UnitRef],
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> BTreeMap<UnitRef, (UnitRef, Timestamp)> {
        let loaded = view.loaded();
        let mut held = BTreeMap::new();
        for unit in &self.claims.ungrouped().cloned().map(UnitRef::Workload).collect::<Vec<_>>() {
            let Some(Object::KueueWorkload(workload)) = view.live.get(&unit.key()) else { continue };
            let Some((preemptor, since)) = preemptor_recorded_on(workload) else { continue };
            let until = since.plus_seconds(STARVATION_SECONDS);
            if until <= now || queue.get(&UnitRef::Workload(preemptor)).is_none() {
                continue;
            }
            held.insert(unit.clone(), (unit.clone(), until));
            let queue = |unit: &UnitRef| {
                let workload = loaded.snapshot.workload(loaded.names.workload_id(&unit.key().name)?);
                Some((workload.queue?, workload.queue_order()))
            };
            let Some((own, place)) = queue(unit) else { continue };
            if loaded.snapshot.quota_rules().queues[own.index()].queueing == QueueingStrategy::StrictFifo {
                let behind = |other: &&UnitRef| queue(other).is_some_and(|(of, at)| of == own && at > place);
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
        unit: &UnitRef,
        head: HeadResult,
        view: &ClusterView,
        queue: &mut PendingQueue,
    ) -> (StepOutcome, Vec<Request>) {
        let key = unit.key();
        let Some(target) = view.target(&key) else {
            return unsettled(unit, queue);
        };
        match head {
            HeadResult::Admit(admission) => {
                let message = admitted(&admission.cluster_queue);
                let admit = Request::of(unit, Action::Admit { workload: target, admission });
                let requests = vec![admit, Request::record(key, None, ADMITTED, message)];
                (StepOutcome::Bind { placement: Vec::new() }, requests)
            }
            HeadResult::Preempt { victims, plan } => evict(unit, victims, &plan, view, queue),
            HeadResult::Wait { reason, why, until, for_all } => {
                let mut requests: Vec<Request> = refuse(unit, target, (reason, &why), view).into_iter().collect();
                wait_for_quota(unit, reason, until, &why, queue);
                let others = if for_all { self.claims.take_unreported(&key.name) } else { BTreeSet::new() };
                for other in others.into_iter().map(UnitRef::Workload).filter(|other| other != unit) {
                    match view.target(&other.key()) {
                        Some(target) => requests.extend(refuse(&other, target, (reason, &why), view)),
                        None => self.claims.put(&other.key().name),
                    }
                }
                (StepOutcome::Wait { reason, why }, requests)
            }
        }
    }
}

/// Decides a cycle. `note` is told whom it is about to decide.
pub(crate) fn decide(
    view: &ClusterView,
    ids: &[WorkloadId],
    now: Timestamp,
    mut note: impl FnMut(UnitRef),
) -> Vec<(WorkloadId, UnitRef, HeadResult)> {
    let Policy::Kueue(policy) = view.policy() else { return Vec::new() };
    let unit = |id| UnitRef::Workload(view.loaded().names.workload(id).clone());
    let cycle = run_cycle_with_progress(&view.loaded().snapshot, policy, ids, now, &mut |id| note(unit(id)));
    cycle.iter().map(|head| (head.workload, unit(head.workload), named_head(head, view))).collect()
}

/// What a unit waits for from now on, unless it waits for an action, or backs off.
fn wait_for_quota(unit: &UnitRef, reason: WaitReason, until: Option<Timestamp>, why: &str, queue: &mut PendingQueue) {
    queue.set_reason(unit, reason);
    let state_now = queue.get(unit).map(|waiting| &waiting.state);
    if matches!(state_now, Some(WaitState::Ready | WaitState::ForChange { .. })) {
        queue.set(unit, WaitState::ForChange { until, why: why.into() });
    }
}

fn named_head(head: &CycleEntry, view: &ClusterView) -> HeadResult {
    let loaded = view.loaded();
    if let kueue::CycleResult::Decided(outcome) = &head.result {
        match (outcome, &head.assignment) {
            (Outcome::Schedule(_), Some(given)) => {
                return HeadResult::Admit(Box::new(admission(loaded, head.workload, given)));
            }
            (Outcome::Preempt(plan), _) => {
                let workloads = plan.victims.iter().filter_map(|unit| loaded.snapshot.unit(*unit).workload);
                let victims = workloads.map(|workload| loaded.names.workload(workload).clone()).collect();
                return HeadResult::Preempt { victims, plan: workload_evictions(loaded, plan) };
            }
            _ => {}
        }
    }
    let until = match &head.result {
        kueue::CycleResult::Decided(Outcome::Wait(Law::PreemptionDelay { until })) => Some(*until),
        _ => None,
    };
    let (name, why) = reason(loaded, head);
    let reason = match (&head.result, name) {
        (kueue::CycleResult::Skipped(skip), _) => WaitReason::of_skip(*skip),
        (kueue::CycleResult::Decided(Outcome::Wait(law) | Outcome::Unschedulable(Some(law))), Some(name)) => {
            WaitReason::of_law(law, name)
        }
        (kueue::CycleResult::Decided(_), _) => WaitReason::NoFeasiblePlan,
    };
    let for_all = matches!(head.result, kueue::CycleResult::Decided(_));
    HeadResult::Wait { reason, why, until, for_all }
}

/// Writes on a workload that it has no quota, and why, unless that is written already.
fn refuse(unit: &UnitRef, workload: Target, (reason, why): (WaitReason, &str), view: &ClusterView) -> Option<Request> {
    let message = format!("{reason}: {why}");
    (!was_refused(&unit.key(), reason, view)).then(|| Request::of(unit, Action::SetQuotaPending { workload, message }))
}

/// Evicts the workloads of a plan that were not evicted yet.
fn evict(
    unit: &UnitRef,
    victims: Vec<NamespacedName>,
    plan: &[PlannedAction],
    view: &ClusterView,
    queue: &mut PendingQueue,
) -> (StepOutcome, Vec<Request>) {
    let mut requests = Vec::new();
    for action in plan {
        let PlannedAction::EvictWorkload { workload: victim, ground, .. } = action else { continue };
        if is_evicted(victim, view) {
            continue;
        }
        let (key, ground) = (ObjectKey::new(Kind::KueueWorkload, victim.clone()), *ground);
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
    wait_for_quota(unit, WaitReason::ActionInFlight, None, "its victims are leaving", queue);
    (StepOutcome::Evict { placement: Vec::new(), victims }, requests)
}

fn unsettled(unit: &UnitRef, queue: &mut PendingQueue) -> (StepOutcome, Vec<Request>) {
    let why = "waits to know what became of it, or of its victims".to_owned();
    wait_for_quota(unit, WaitReason::AwaitingApiState, None, &why, queue);
    (StepOutcome::Wait { reason: WaitReason::AwaitingApiState, why }, Vec::new())
}

fn is_evicted(workload: &NamespacedName, view: &ClusterView) -> bool {
    let loaded = view.loaded();
    let id = loaded.names.workload_id(workload);
    id.and_then(|id| loaded.snapshot.workload(id).admission.as_ref()).is_none_or(|admission| admission.evicted)
}

/// Whether it is written on the workload that it has no quota for this reason.
fn was_refused(key: &ObjectKey, reason: WaitReason, view: &ClusterView) -> bool {
    let Some(Object::KueueWorkload(workload)) = view.live.get(key) else { return true };
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    let quota = conditions.into_iter().find(|condition| condition.type_ == "QuotaReserved");
    quota.is_some_and(|condition| condition.status == "False" && is_about(&condition.message, reason.as_str()))
}

fn is_workload(unit: &UnitRef) -> bool {
    matches!(unit, UnitRef::Workload(_))
}

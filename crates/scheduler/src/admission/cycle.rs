//! The admission cycle of policy Kueue (docs/rules/kueue.md): it decides which workloads receive quota. The scheduler runs a cycle when the
//! use of quota or a pending workload changed.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kueue::AdmissionSpec;
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey};
use reprieve_engine::laws::Law;
use reprieve_engine::policy::kueue::{CycleEntry, CycleResult, run_cycle_with_progress};
use reprieve_engine::workloads::QueueingStrategy;
use reprieve_engine::{Outcome, Policy, Timestamp, WorkloadId};
use reprieve_report::cycle::{admission, reason};
use reprieve_report::planned_actions::{self, PlannedAction, admitted, workload_evictions};
use reprieve_report::unit_ref::UnitRef;

use super::Admission;
use crate::action::{Action, EventReason, Target};
use crate::action_log::Request;
use crate::effects::{preemptor_recorded_on, stored_message};
use crate::queue::{PendingQueue, STARVATION_SECONDS, WaitState};
use crate::step::StepOutcome;
use crate::view::ClusterView;
use crate::wait_reason::WaitReason;

/// The decision of a cycle about one workload.
pub(crate) enum HeadResult {
    Admit(Box<AdmissionSpec>),
    Preempt {
        /// All victims; some may be evicted already.
        victims: Vec<NamespacedName>,
        plan: Vec<PlannedAction>,
    },
    Wait {
        reason: WaitReason,
        why: String,
        until: Option<Timestamp>,
        /// Whether the reason holds for all workloads in the same line.
        for_all: bool,
    },
}

/// The workloads that take part in a cycle, and those that are excluded.
#[derive(Default)]
pub(crate) struct Entrants {
    /// The first workload of each line, and the workloads outside of lines.
    pub ids: Vec<WorkloadId>,
    /// The workloads that became ready since the last cycle.
    woken: Vec<UnitRef>,
    /// The workloads that leave room for a preemptor, each with the end of its wait: see `waiting_for_preemptor`.
    waiting: BTreeMap<UnitRef, Timestamp>,
    /// The invalid workloads, with the error.
    invalid: Vec<(UnitRef, String)>,
}

impl Admission {
    /// The workloads that take part in the next cycle; `None` if nothing changed that a cycle reads.
    pub fn entrants(&mut self, view: &ClusterView, queue: &mut PendingQueue, now: Timestamp) -> Option<Entrants> {
        let Policy::Kueue(policy) = view.policy() else { return None };
        let woken: Vec<UnitRef> = queue.ready().filter(|unit| is_workload(unit)).cloned().collect();
        if !queue.take_quota_changed() && woken.is_empty() {
            return None;
        }
        let has_failed = |name: &NamespacedName| {
            let pending = queue.get(&UnitRef::Workload(name.clone()));
            pending.is_some_and(|pending| matches!(pending.state, WaitState::AfterError { .. }))
        };
        let unknown = self.lines.regroup(&view.live, policy, has_failed).into_iter().map(UnitRef::Workload);
        let next: Vec<UnitRef> = self.lines.heads().cloned().map(UnitRef::Workload).collect();
        let waiting = self.waiting_for_preemptor(&next, view, queue, now);
        let free = next.iter().filter(|unit| !waiting.contains_key(unit)).map(|unit| unit.key().name);
        let ids = free.filter(|name| !has_failed(name)).filter_map(|name| view.loaded().names.workload_id(&name));
        let error = |unit: &UnitRef| Some(view.live.quarantine_reason(&unit.key())?.problem.to_string());
        let invalid = unknown.filter_map(|unit| error(&unit).map(|error| (unit, error))).collect();
        Some(Entrants { ids: ids.collect(), woken, waiting, invalid })
    }

    /// Puts the workloads to wait that do not take part in a cycle.
    pub fn park(&self, entrants: &Entrants, queue: &mut PendingQueue) {
        for unit in &entrants.woken {
            wait_for_quota(unit, WaitReason::BehindQueueHead, None, queue);
        }
        for (unit, until) in &entrants.waiting {
            wait_for_quota(unit, WaitReason::WaitingForOlderUnit, Some(*until), queue);
        }
        for (unit, _) in &entrants.invalid {
            wait_for_quota(unit, WaitReason::InvalidObject, None, queue);
        }
    }

    /// Reports on invalid workloads that they have no quota.
    pub fn report_invalid(&mut self, entrants: &Entrants, view: &ClusterView) -> Vec<Request> {
        let report = |(unit, error): &(UnitRef, String)| {
            self.refuse(unit, view.target(&unit.key())?, (WaitReason::InvalidObject, error), view)
        };
        entrants.invalid.iter().filter_map(report).collect()
    }

    /// Reports on a workload why it has no quota, unless its condition shows that reason already.
    fn refuse(
        &mut self,
        unit: &UnitRef,
        workload: Target,
        (reason, why): (WaitReason, &str),
        view: &ClusterView,
    ) -> Option<Request> {
        let (key, full) = (unit.key(), format!("{reason}: {why}"));
        let message = stored_message(&full);
        let Some(Object::KueueWorkload(known)) = view.live.get(&key) else { return None };
        let conditions = known.status.iter().flat_map(|status| &status.conditions);
        let quota = conditions.into_iter().find(|condition| condition.type_ == "QuotaReserved");
        let shown = quota.filter(|condition| condition.status == "False").map(|condition| condition.message.as_str());
        let is_new = self.reported.is_new(&key, shown, reason, message);
        let pending = || Request::of(unit, Action::SetQuotaPending { workload, message: message.to_owned() });
        is_new.then(|| pending().then_event(key, None, EventReason::FailedScheduling, message.to_owned()))
    }

    /// The workloads that must wait, each with the end of the wait: those that were preempted within the last [`STARVATION_SECONDS`] while their
    /// preemptor is still pending, because the quota that they gave up is for the preemptor, and in a strict queue those behind them.
    fn waiting_for_preemptor(
        &self,
        next: &[UnitRef],
        view: &ClusterView,
        queue: &PendingQueue,
        now: Timestamp,
    ) -> BTreeMap<UnitRef, Timestamp> {
        let loaded = view.loaded();
        let mut waiting = BTreeMap::new();
        for unit in &self.lines.ungrouped().cloned().map(UnitRef::Workload).collect::<Vec<_>>() {
            let Some(Object::KueueWorkload(workload)) = view.live.get(&unit.key()) else { continue };
            let Some((preemptor, since)) = preemptor_recorded_on(workload) else { continue };
            let until = since.plus_seconds(STARVATION_SECONDS);
            if until <= now || queue.get(&UnitRef::Workload(preemptor)).is_none() {
                continue;
            }
            waiting.insert(unit.clone(), until);
            let position = |unit: &UnitRef| {
                let workload = loaded.snapshot.workload(loaded.names.workload_id(&unit.key().name)?);
                Some((workload.queue?, workload.queue_order()))
            };
            let Some((own, order)) = position(unit) else { continue };
            if loaded.snapshot.quota_rules().queues[own.index()].queueing == QueueingStrategy::StrictFifo {
                let behind =
                    |other: &&UnitRef| position(other).is_some_and(|(queue, behind)| queue == own && behind > order);
                for other in next.iter().filter(behind) {
                    waiting.entry(other.clone()).or_insert(until);
                }
            }
        }
        waiting
    }

    /// The outcome and the actions for a workload that took part in a cycle.
    pub fn act_on_head(
        &mut self,
        unit: &UnitRef,
        head: HeadResult,
        view: &ClusterView,
        queue: &mut PendingQueue,
    ) -> (StepOutcome, Vec<Request>) {
        let key = unit.key();
        let Some(target) = view.target(&key) else { return unconfirmed(unit, queue) };
        match head {
            HeadResult::Admit(admission) => {
                let message = admitted(&admission.cluster_queue);
                let admit = Request::of(unit, Action::Admit { workload: target, admission });
                let requests = vec![admit.then_event(key, None, EventReason::Admitted, message)];
                (StepOutcome::Bind { placement: Vec::new() }, requests)
            }
            HeadResult::Preempt { victims, plan } => evict(unit, victims, &plan, view, queue),
            HeadResult::Wait { reason, why, until, for_all } => {
                let mut requests: Vec<Request> = self.refuse(unit, target, (reason, &why), view).into_iter().collect();
                wait_for_quota(unit, reason, until, queue);
                let others = if for_all { self.lines.take_unreported(&key.name) } else { BTreeSet::new() };
                for other in others.into_iter().map(UnitRef::Workload).filter(|other| other != unit) {
                    match view.target(&other.key()) {
                        Some(target) => requests.extend(self.refuse(&other, target, (reason, &why), view)),
                        // Its state is unknown: the reason is written after it is read again.
                        None => self.lines.put(&other.key().name),
                    }
                }
                (StepOutcome::Wait { reason, why }, requests)
            }
        }
    }
}

/// Decides a cycle; calls `note` with each workload before it is decided.
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

/// Puts a workload to wait, unless it waits for an action or backs off.
fn wait_for_quota(unit: &UnitRef, reason: WaitReason, until: Option<Timestamp>, queue: &mut PendingQueue) {
    queue.set_reason(unit, reason);
    let state = queue.get(unit).map(|pending| &pending.state);
    if matches!(state, Some(WaitState::Ready | WaitState::ForChange { .. })) {
        queue.set(unit, WaitState::ForChange { until });
    }
}

fn named_head(head: &CycleEntry, view: &ClusterView) -> HeadResult {
    let loaded = view.loaded();
    if let CycleResult::Decided(outcome) = &head.result {
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
        CycleResult::Decided(Outcome::Wait(Law::PreemptionDelay { until })) => Some(*until),
        _ => None,
    };
    let namespace = &loaded.names.workload(head.workload).namespace;
    let (name, why) = reason(loaded, head, |workload| view.may_name(namespace, loaded.names.workload(workload)));
    let reason = match (&head.result, name) {
        (CycleResult::Skipped(skip), _) => WaitReason::of_skip(*skip),
        (CycleResult::Decided(Outcome::Wait(_) | Outcome::Unschedulable(Some(_))), Some(name)) => WaitReason::Law(name),
        (CycleResult::Decided(_), _) => WaitReason::NoFeasiblePlan,
    };
    let for_all = matches!(head.result, CycleResult::Decided(_));
    HeadResult::Wait { reason, why, until, for_all }
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
        let PlannedAction::EvictWorkload { workload: victim, reason, .. } = action else { continue };
        if is_evicted(victim, view) {
            continue;
        }
        let (key, reason) = (ObjectKey::new(Kind::KueueWorkload, victim.clone()), *reason);
        let Some(workload) = view.target(&key).filter(|_| view.assumed.all_succeeded(&key)) else {
            return unconfirmed(unit, queue);
        };
        let (shown, preemptor) = (view.preemptor_shown_in(&victim.namespace, unit), unit.key().name);
        let preempted = planned_actions::preempted(&shown, &format!("{reason:?}"));
        let action = Action::EvictWorkload { workload, preemptor, shown: shown.without_kind(), reason };
        let namespace = &unit.key().name.namespace;
        let preempting = planned_actions::preempting_workload(&view.victim_shown_in(namespace, &key));
        let related = Some(key.clone()).filter(|victim| view.may_name(namespace, &victim.name));
        let evict = Request::of(unit, action);
        let evict = evict.then_event(key.clone(), shown.key(), EventReason::Preempted, preempted);
        requests.push(evict.then_event(unit.key(), related, EventReason::Preempting, preempting));
    }
    wait_for_quota(unit, WaitReason::PREEMPTION_IN_PROGRESS, None, queue);
    (StepOutcome::Evict { placement: Vec::new(), victims }, requests)
}

fn unconfirmed(unit: &UnitRef, queue: &mut PendingQueue) -> (StepOutcome, Vec<Request>) {
    let why = "waiting for the API server to confirm earlier requests for it or its victims".to_owned();
    wait_for_quota(unit, WaitReason::AwaitingApiState, None, queue);
    (StepOutcome::Wait { reason: WaitReason::AwaitingApiState, why }, Vec::new())
}

fn is_evicted(workload: &NamespacedName, view: &ClusterView) -> bool {
    let loaded = view.loaded();
    let id = loaded.names.workload_id(workload);
    id.and_then(|id| loaded.snapshot.workload(id).admission.as_ref()).is_none_or(|admission| admission.evicted)
}

fn is_workload(unit: &UnitRef) -> bool {
    matches!(unit, UnitRef::Workload(_))
}

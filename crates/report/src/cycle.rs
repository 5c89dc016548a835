//! The report of a cycle of policy Kueue: the decision for the head of every ClusterQueue, with the `status.admission` that it gets.
//! `plan --cycle` prints the report; the scheduler uses the admission and the reason of a head.

use std::collections::BTreeMap;

use reprieve_engine::policy::kueue::{Assignment, CycleEntry, CycleResult, Kueue, SkipReason, run_cycle};
use reprieve_engine::{Outcome, Timestamp, UnitId, WorkloadId};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::answer::named;
use crate::budget_report::{BudgetReport, Violations, violates};
use crate::reasons::{self, ReasonText, reason_text};
use reprieve_api::VictimRef;
use reprieve_api::kueue::{AdmissionSpec, PodSetAssignment};
use reprieve_api::quantity::format;
use reprieve_loader::Loaded;

/// A decided cycle.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleReport {
    /// `reprieve.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Cycle`.
    pub kind: &'static str,
    /// `Kueue`.
    pub policy: &'static str,
    /// The time of the decision.
    pub now: String,
    /// The heads, in the order of the decisions.
    pub heads: Vec<HeadReport>,
    /// Requirements of pods that are assumed to be satisfied: `volumes`, `claims`, `features`. `reprieve plan --assume` fills it in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<&'static str>,
    /// The disruption budgets that all evictions of the cycle together violate, if the pods of the workloads are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// Problems of the input, and the budgets that the cycle violates.
    pub warnings: Vec<String>,
}

/// The decision for the head of a ClusterQueue.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadReport {
    /// `namespace/name`.
    pub workload: String,
    /// The ClusterQueue.
    pub queue: String,
    /// The priority of the workload.
    pub priority: i32,
    /// The outcome, or `Skipped`.
    pub result: HeadResult,
    /// The law that refuses the workload or makes it wait, or the reason for which the cycle skips it; `None` also if no set of victims is
    /// enough.
    pub reason: Option<&'static str>,
    /// The reason as a sentence.
    pub text: String,
    /// The workloads that are evicted for this head.
    pub victims: Vec<VictimRef>,
    /// The node of each pod, with `placement: Joint`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nominated: BTreeMap<String, String>,
    /// The admission that the workload gets now, or after its victims are evicted; `None` if it gets none in this cycle.
    pub admission: Option<AdmissionSpec>,
    /// How many levels of cohorts up the workload borrows.
    pub borrowing_level: Option<usize>,
}

/// The result of a head in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names of `OutcomeName`")]
pub enum HeadResult {
    Schedule,
    Preempt,
    Wait,
    Unschedulable,
    /// An earlier head of the same cycle took what this one needs, or goes first because it does not borrow.
    Skipped,
}

/// Decides a cycle over all pending workloads.
pub fn cycle_report(loaded: &Loaded, policy: &Kueue, now: Timestamp) -> CycleReport {
    // `run_cycle` skips those that are admitted.
    let pending: Vec<WorkloadId> = loaded.snapshot.workload_ids().collect();
    let heads = run_cycle(&loaded.snapshot, policy, &pending, now);
    let victims: Vec<UnitId> = heads.iter().flat_map(victims).copied().collect();
    let violations = Violations::of(loaded, &victims);
    let budgets = violations.reports();
    let violated = budgets.iter().map(|budget| budget.sentence("the cycle"));
    CycleReport {
        warnings: loaded.warnings.iter().map(ToString::to_string).chain(violated).collect(),
        budgets,
        api_version: "reprieve.dev/v1alpha1",
        kind: "Cycle",
        policy: "Kueue",
        now: reasons::format_time(now),
        assumed: Vec::new(),
        heads: heads.iter().map(|entry| head(loaded, entry, &violations)).collect(),
    }
}

fn victims(entry: &CycleEntry) -> &[UnitId] {
    match &entry.result {
        CycleResult::Decided(Outcome::Preempt(plan)) => &plan.victims,
        CycleResult::Decided(Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_))
        | CycleResult::Skipped(_) => &[],
    }
}

/// The `status.admission` of a workload that gets this assignment.
pub fn admission(loaded: &Loaded, workload: WorkloadId, assignment: &Assignment) -> AdmissionSpec {
    let names = &loaded.names;
    let queue = loaded.snapshot.workload(workload).queue;
    let sets = assignment.pod_sets.iter().zip(names.pod_sets(workload)).map(|(set, name)| {
        let mut assigned = PodSetAssignment { name: name.clone(), count: Some(set.count), ..Default::default() };
        for usage in &set.resources {
            let resource = names.quota_resource(usage.resource);
            assigned.flavors.insert(resource.to_owned(), names.flavor(usage.flavor).to_owned());
            assigned.resource_usage.insert(resource.to_owned(), format(resource, usage.amount).into());
        }
        assigned
    });
    AdmissionSpec {
        cluster_queue: queue.map(|queue| names.queue(queue).to_owned()).unwrap_or_default(),
        pod_set_assignments: sets.collect(),
    }
}

fn head(loaded: &Loaded, entry: &CycleEntry, violations: &Violations<'_>) -> HeadReport {
    let workload = loaded.snapshot.workload(entry.workload);
    let (reason, mut text) = reason(loaded, entry, |_| true);
    let mut violated: Vec<String> = victims(entry).iter().flat_map(|&victim| violations.by(victim)).collect();
    violated.sort_unstable();
    violated.dedup();
    if !violated.is_empty() {
        text = format!("{text}; {}", violates(&violated));
    }
    let (result, answer) = match &entry.result {
        CycleResult::Decided(outcome) => {
            let result = match outcome {
                Outcome::Schedule(_) => HeadResult::Schedule,
                Outcome::Preempt(_) => HeadResult::Preempt,
                Outcome::Wait(_) => HeadResult::Wait,
                Outcome::Unschedulable(_) => HeadResult::Unschedulable,
            };
            (result, Some(named(loaded, &[], outcome)))
        }
        CycleResult::Skipped(_) => (HeadResult::Skipped, None),
    };
    let (victims, nominated) = answer.map(|answer| (answer.victims, answer.nominated)).unwrap_or_default();
    HeadReport {
        workload: loaded.names.workload(entry.workload).to_string(),
        queue: workload.queue.map(|queue| loaded.names.queue(queue).to_owned()).unwrap_or_default(),
        priority: workload.priority.0,
        result,
        reason,
        text,
        victims,
        nominated,
        admission: entry.assignment.as_ref().map(|assignment| admission(loaded, entry.workload, assignment)),
        borrowing_level: entry.assignment.as_ref().map(|assignment| assignment.borrowing),
    }
}

/// The reason of a head's result: the name of the law or of the reason to skip it, if there is one, and a sentence.
pub fn reason(
    loaded: &Loaded,
    entry: &CycleEntry,
    may_name: impl Fn(WorkloadId) -> bool,
) -> (Option<&'static str>, String) {
    let borrows = entry.assignment.as_ref().is_some_and(|assignment| assignment.borrowing > 0);
    let text = match &entry.result {
        CycleResult::Decided(Outcome::Schedule(_)) if borrows => "fits now, with borrowed quota",
        CycleResult::Decided(Outcome::Schedule(_)) => "fits now",
        CycleResult::Decided(Outcome::Preempt(_)) => "admitted in a later cycle, after the victims are evicted",
        CycleResult::Decided(Outcome::Unschedulable(None)) => "no set of victims that the policy allows is enough",
        CycleResult::Decided(Outcome::Wait(law) | Outcome::Unschedulable(Some(law))) => {
            let ReasonText { name, text, .. } = reasons::law(law, &loaded.names);
            return (Some(name), text);
        }
        CycleResult::Skipped(skip) => {
            let ReasonText { name, text, .. } = skipped(loaded, *skip, may_name);
            return (Some(name), text);
        }
    };
    (None, text.to_owned())
}

fn skipped(loaded: &Loaded, skip: SkipReason, may_name: impl Fn(WorkloadId) -> bool) -> ReasonText {
    let name = |workload: WorkloadId| match may_name(workload) {
        true => loaded.names.workload(workload).to_string(),
        false => "a workload of another namespace".to_owned(),
    };
    match skip {
        SkipReason::BorrowingBlocked { by } => reason_text(
            "BorrowingBlocked",
            format!("needs to borrow; {} in the same cohort, which does not, goes first in this cycle", name(by)),
        ),
        SkipReason::VictimTaken { by, victim } => {
            reason_text("VictimTaken", format!("{} is already evicted for {} in this cycle", name(victim), name(by)))
        }
        SkipReason::QuotaTaken => {
            reason_text("QuotaTaken", "workloads earlier in this cycle took the requested quota or nodes")
        }
    }
}

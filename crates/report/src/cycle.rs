//! A cycle of policy Kueue in names: what becomes of every queue's head, and what its `status.admission` will say.

use std::collections::BTreeMap;

use reprieve_engine::policy::kueue::{Assignment, CycleEntry, CycleResult, Kueue, SkipReason, run_cycle};
use reprieve_engine::{Outcome, Timestamp, UnitId, WorkloadId};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::answer::named;
use crate::budget_report::{BudgetReport, Violations, violates};
use crate::reasons::{self, ReasonText, reason_text};
use reprieve_api::answer::Answer;
use reprieve_api::kueue::{AdmissionSpec, PodSetAssignment};
use reprieve_api::quantity::format;
use reprieve_api::test_file::VictimRef;
use reprieve_loader::Loaded;

/// A cycle over all queues.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleReport {
    /// `reprieve.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Cycle`.
    pub kind: &'static str,
    /// `Kueue`.
    pub policy: &'static str,
    /// At what time.
    pub now: String,
    /// The heads, in the order in which they were considered.
    pub heads: Vec<HeadReport>,
    /// Requirements of pods that were taken for met: `volumes`, `claims`, `features`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<&'static str>,
    /// The disruption budgets that all evictions of the cycle together violate, where the pods of workloads are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// What is odd about the input, and the budgets that the cycle violates.
    pub warnings: Vec<String>,
}

/// What becomes of a queue's head.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadReport {
    /// `namespace/name`.
    pub workload: String,
    /// Its ClusterQueue.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// `Schedule`, `Preempt`, `Wait`, `Unschedulable` or `Skipped`.
    pub verdict: String,
    /// The law that makes it wait, or why it is skipped.
    pub reason: Option<&'static str>,
    /// In words.
    pub text: String,
    /// Who yields for it.
    pub victims: Vec<VictimRef>,
    /// Pod to node, where nodes play a part.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nominated: BTreeMap<String, String>,
    /// What it gets, or will get once its victims are gone.
    pub admission: Option<AdmissionSpec>,
    /// How many cohorts up it borrows.
    pub borrowing_level: Option<usize>,
}

/// Decides a cycle over all workloads that are pending.
pub fn cycle_report(loaded: &Loaded, policy: &Kueue, now: Timestamp) -> CycleReport {
    let pending: Vec<WorkloadId> = loaded.snapshot.workload_ids().collect();
    let heads = run_cycle(&loaded.snapshot, policy, &pending, now);
    let victims: Vec<UnitId> = heads.iter().flat_map(victims).copied().collect();
    let violations = Violations::of(loaded, &victims);
    let budgets = violations.reports();
    let violated = budgets.iter().map(|budget| budget.sentence("the cycle"));
    CycleReport {
        warnings: loaded.warnings.iter().cloned().chain(violated).collect(),
        budgets,
        api_version: "reprieve.dev/v1alpha1",
        kind: "Cycle",
        policy: "Kueue",
        now: reasons::format_time(now),
        assumed: Vec::new(),
        heads: heads.iter().map(|considered| head(loaded, considered, &violations)).collect(),
    }
}

/// Who yields for a head.
fn victims(considered: &CycleEntry) -> &[UnitId] {
    match &considered.result {
        CycleResult::Decided(Outcome::Preempt(plan)) => &plan.victims,
        CycleResult::Decided(Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_))
        | CycleResult::Skipped(_) => &[],
    }
}

/// What a workload's `status.admission` says once it has what it is given.
pub fn admission(loaded: &Loaded, workload: WorkloadId, assignment: &Assignment) -> AdmissionSpec {
    let names = &loaded.names;
    let queue = loaded.snapshot.workload(workload).queue;
    let sets = assignment.pod_sets.iter().zip(names.pod_sets(workload)).map(|(set, name)| {
        let resources = || set.resources.iter().map(|one| (names.quota_resource(one.resource).to_owned(), one));
        PodSetAssignment {
            name: name.clone(),
            flavors: resources().map(|(name, one)| (name, names.flavor(one.flavor).to_owned())).collect(),
            resource_usage: resources()
                .map(|(name, one)| {
                    let amount = format(&name, one.amount).into();
                    (name, amount)
                })
                .collect(),
            count: Some(set.count),
        }
    });
    AdmissionSpec {
        cluster_queue: queue.map(|queue| names.queue(queue).to_owned()).unwrap_or_default(),
        pod_set_assignments: sets.collect(),
    }
}

fn head(loaded: &Loaded, considered: &CycleEntry, violations: &Violations<'_>) -> HeadReport {
    let workload = loaded.snapshot.workload(considered.workload);
    let (reason, mut text) = reason(loaded, considered);
    let mut violated: Vec<String> = victims(considered).iter().flat_map(|&victim| violations.by(victim)).collect();
    violated.sort_unstable();
    violated.dedup();
    if !violated.is_empty() {
        text = format!("{text}; {}", violates(&violated));
    }
    let (verdict, victims, nominated) = match &considered.result {
        CycleResult::Decided(outcome) => {
            let Answer { outcome: name, victims, nominated } = named(loaded, &[], outcome);
            (format!("{name:?}"), victims, nominated)
        }
        CycleResult::Skipped(_) => ("Skipped".to_owned(), Vec::new(), BTreeMap::new()),
    };
    HeadReport {
        workload: loaded.names.workload(considered.workload).to_string(),
        queue: workload.queue.map(|queue| loaded.names.queue(queue).to_owned()).unwrap_or_default(),
        priority: workload.priority.0,
        verdict,
        reason,
        text,
        victims,
        nominated,
        admission: considered.assignment.as_ref().map(|given| admission(loaded, considered.workload, given)),
        borrowing_level: considered.assignment.as_ref().map(|given| given.borrowing),
    }
}

/// What makes a workload wait in a cycle, in a word if there is one, and in a sentence.
pub fn reason(loaded: &Loaded, considered: &CycleEntry) -> (Option<&'static str>, String) {
    match &considered.result {
        CycleResult::Decided(outcome) => decided(loaded, outcome, considered.assignment.as_ref()),
        CycleResult::Skipped(skip) => {
            let ReasonText { name, text, .. } = skipped(loaded, *skip);
            (Some(name), text)
        }
    }
}

fn decided(loaded: &Loaded, outcome: &Outcome, assignment: Option<&Assignment>) -> (Option<&'static str>, String) {
    let borrows = assignment.is_some_and(|assignment| assignment.borrowing > 0);
    match outcome {
        Outcome::Schedule(_) if borrows => (None, "it fits now, and borrows".to_owned()),
        Outcome::Schedule(_) => (None, "it fits now".to_owned()),
        Outcome::Preempt(_) => (None, "it is admitted in a later cycle, once its victims are gone".to_owned()),
        Outcome::Wait(law) | Outcome::Unschedulable(Some(law)) => {
            let ReasonText { name, text, .. } = reasons::law(law, &loaded.names);
            (Some(name), text)
        }
        Outcome::Unschedulable(None) => (None, "no lawful set of victims makes it fit".to_owned()),
    }
}

fn skipped(loaded: &Loaded, skip: SkipReason) -> ReasonText {
    let name = |workload: WorkloadId| loaded.names.workload(workload).to_string();
    match skip {
        SkipReason::BorrowingBlocked { by } => reason_text(
            "BorrowingBlocked",
            format!("it would borrow, and {} of its cohort, which need not, came first", name(by)),
        ),
        SkipReason::VictimTaken { by, victim } => {
            reason_text("VictimTaken", format!("{} is preempted for {} already", name(victim), name(by)))
        }
        SkipReason::QuotaTaken => reason_text("QuotaTaken", "those before it took what it asks for"),
    }
}

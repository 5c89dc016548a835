//! Why a workload is taken or spared: the law for each that stays, the flavors that were tried, and how each queue stands.

use crate::decision::{Outcome, Plan};
use crate::domains::Domain;
use crate::explanation::Recorder;
use crate::ids::{CellId, Timestamp, UnitId, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::eligibility::Claim;
use crate::policy::kueue::quota::Quota;
use crate::policy::kueue::{Placing, Search, flavors, joint};
use crate::snapshot::Snapshot;

use super::Kueue;

/// Explains an outcome of `decide`.
pub(super) fn explain<R: Recorder>(
    snapshot: &Snapshot,
    policy: &Kueue,
    preemptor: WorkloadId,
    now: Timestamp,
    outcome: &Outcome,
    recorder: &mut R,
) {
    let plan = match outcome {
        Outcome::Preempt(plan) => Some(plan),
        Outcome::Unschedulable(None) => None,
        Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(Some(_)) => return,
    };
    let workload = snapshot.workload(preemptor);
    let Some(queue) = workload.queue else {
        return;
    };
    let search = Search::new(snapshot, policy, preemptor, queue, now);
    let counts: Vec<i64> = workload.pod_sets.iter().map(|set| set.count).collect();
    let mut quota = Quota::new(snapshot);
    let mut tried = Vec::new();
    let assigned = flavors::assign(&search, &mut quota, &counts, Some(&mut tried));
    for tried in tried {
        recorder.flavor(tried);
    }
    let contested: Vec<CellId> = match (&assigned, policy.placement) {
        (None, _) => Vec::new(),
        (Some(assigned), Placing::QuotaOnly) => assigned.contested.clone(),
        (Some(assigned), Placing::Joint) => assigned.assignment.usage.iter().map(|(cell, _)| *cell).collect(),
    };
    let search = Search { contested: &contested, ..search };
    if let (Some(mut ground), Some(assigned), None) = (joint::ground(snapshot, policy), &assigned, plan) {
        let whole = Domain { part: None, nodes: snapshot.node_ids().collect() };
        if let Some(refusal) = joint::refusal(&search, &mut ground, assigned) {
            recorder.domain(&whole, &Err(refusal));
        }
    }
    for unit in snapshot.unit_ids() {
        let Some(candidate) = snapshot.unit(unit).workload else {
            continue;
        };
        if plan.is_some_and(|plan| plan.victims.contains(&unit)) {
            continue;
        }
        let at_threshold = || {
            let is_other = snapshot.workload(candidate).queue != Some(queue) && policy.fair_sharing.is_none();
            let law = search.borrowing_law(snapshot.workload(candidate)).filter(|_| is_other);
            law.filter(|law| matches!(law, Law::AboveThreshold { .. }))
        };
        if let Some(law) = search.eligibility(&mut quota, candidate, Claim::Reclaim).err().or_else(at_threshold) {
            recorder.spared(unit, law);
            continue;
        }
        let victims = plan.iter().flat_map(|plan: &&Plan| &plan.victims);
        let mut equal = victims.filter(|_| policy.placement == Placing::QuotaOnly);
        let is_equal = |victim: &&UnitId| {
            let victim = snapshot.unit(**victim).workload;
            victim.is_some_and(|victim| search.is_interchangeable(candidate, victim))
        };
        match equal.find(is_equal) {
            Some(&victim) => recorder.equal_cost(unit, victim),
            None => recorder.candidate(unit),
        }
    }
}

impl Search<'_> {
    /// Whether two candidates differ in nothing but their names and uids, as far as a decision by quota alone goes.
    fn is_interchangeable(&self, one: WorkloadId, other: WorkloadId) -> bool {
        let (first, second) = (self.snapshot.workload(one), self.snapshot.workload(other));
        let (Some(admission), Some(other_admission)) = (&first.admission, &second.admission) else {
            return false;
        };
        first.queue == second.queue
            && first.priority == second.priority
            && first.milestones == second.milestones
            && admission.usage == other_admission.usage
            && admission.since == other_admission.since
            && admission.evicted == other_admission.evicted
            && self.prefers(one) == self.prefers(other)
    }
}

//! Why a workload is taken or spared: the law for each that stays, the flavors that were tried, and how each queue stands.

use crate::decision::{Outcome, Plan};
use crate::domains::Domain;
use crate::explanation::Recorder;
use crate::ids::{CellId, QueueId, Timestamp, UnitId, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::quota::Quota;
use crate::policy::kueue::{Placing, Search, flavors, joint};
use crate::snapshot::Snapshot;
use crate::workloads::{BorrowWithin, Reclaim, Within};

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
        if let Some(law) = search.spares(&quota, candidate, &contested) {
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

    /// The law that spares a workload before anybody is taken.
    pub(super) fn spares(&self, quota: &Quota<'_>, id: WorkloadId, contested: &[CellId]) -> Option<Law> {
        let candidate = self.snapshot.workload(id);
        let theirs = candidate.queue?;
        let rules = &quota.rules.queues[self.queue.index()];
        let root = |id: QueueId| quota.tree.path(id).last();
        if root(theirs) != root(self.queue) {
            return Some(Law::OtherCohort);
        }
        if !self.holds(id, contested) {
            return Some(Law::NotContested);
        }
        if candidate.protected {
            return Some(Law::Protected);
        }
        let candidate_priority = Law::Priority { candidate: candidate.priority };
        if theirs == self.queue {
            let law = match rules.within {
                Within::Never => Law::KeepsPeace,
                Within::LowerPriority | Within::LowerOrNewerEqualPriority => candidate_priority,
            };
            return (!self.may_take_at_home(id)).then_some(law);
        }
        if quota.within(theirs, contested) {
            return Some(Law::WithinQuota { queue: theirs });
        }
        let above = quota.tree.path(theirs).skip(1).take_while(|&id| !quota.tree.path(self.queue).any(|own| own == id));
        if let Some(cohort) = above.into_iter().find(|&id| quota.within(id, contested)) {
            return Some(Law::WithinQuota { queue: cohort });
        }
        if !self.may_reclaim(id) {
            let law = if rules.reclaim == Reclaim::Never { Law::KeepsPeace } else { candidate_priority };
            return Some(law);
        }
        match rules.borrow {
            BorrowWithin::LowerPriority { threshold: Some(threshold) }
                if self.policy.fair_sharing.is_none() && candidate.priority > threshold =>
            {
                Some(Law::AboveThreshold { threshold })
            }
            BorrowWithin::LowerPriority { .. } | BorrowWithin::Never => None,
        }
    }
}

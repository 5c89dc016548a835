//! docs/rules/kueue.md#k13, docs/rules/kueue.md#k14, docs/rules/kueue-cohorts.md#c10, docs/rules/kueue-cohorts.md#c14,
//! docs/rules/kueue-cohorts.md#c15, docs/rules/kueue-cohorts.md#c17: whether a workload may be preempted, and for which reason. All laws of
//! the policy about candidates are here. The searches check single laws again when their result can have changed; `eligibility` checks all
//! of them.

use crate::explanation::Recorder;
use crate::ids::{QueueId, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::fair::compare_shares;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{PreemptionReason, Search, Strategy};
use crate::workloads::{BorrowWithinCohort, ReclaimWithinCohort, WithinClusterQueue, Workload};

/// How the preemptor claims quota that other queues use. In its own queue it preempts by priority, independent of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The preemptor's branch lent it.
    Reclaim,
    /// The preemptor must be within its nominal quota after the victims are gone.
    WithoutBorrowing,
    /// The preemptor will borrow.
    Borrowing,
    /// Under fair sharing: the preemptor's queue stays within its nominal quota, so that shares are not compared.
    FairReclaim,
    /// Under fair sharing: the shares of both branches are compared.
    FairShare(Strategy),
}

impl Search<'_> {
    /// The reason for which a workload may be preempted now, or the law that spares it. The result depends on the workloads taken so far.
    /// `usage` is changed and restored.
    pub(super) fn eligibility(
        &self,
        usage: &mut QuotaUsage<'_>,
        id: WorkloadId,
        claim: Claim,
    ) -> Result<PreemptionReason, Law> {
        let candidate = self.snapshot.workload(id);
        let queue = candidate.queue.ok_or(Law::NoQueue)?;
        if !self.is_in_tree(usage, queue) {
            return Err(Law::OtherCohort);
        }
        if let Some(law) = self.workload_law(id) {
            return Err(law);
        }
        let mut law = self.priority_law(queue, candidate);
        if queue != self.queue {
            law = self.queue_law(usage, queue, claim).or(law).or_else(|| match claim {
                Claim::Borrowing => self.borrowing_law(candidate),
                Claim::FairShare(strategy) => compare_shares(usage, self.queue, id, strategy).law(),
                Claim::Reclaim | Claim::WithoutBorrowing | Claim::FairReclaim => None,
            });
        }
        law.map_or_else(|| Ok(self.reason(queue, candidate, claim)), Err)
    }

    /// The reason for preempting a workload that no law spares.
    #[inline]
    pub(super) fn reason(&self, queue: QueueId, candidate: &Workload, claim: Claim) -> PreemptionReason {
        match claim {
            _ if queue == self.queue => PreemptionReason::InClusterQueue,
            Claim::FairShare(_) => PreemptionReason::InCohortFairSharing,
            Claim::Borrowing => PreemptionReason::InCohortReclaimWhileBorrowing,
            Claim::WithoutBorrowing if self.borrowing_law(candidate).is_none() => {
                PreemptionReason::InCohortReclaimWhileBorrowing
            }
            Claim::WithoutBorrowing | Claim::Reclaim | Claim::FairReclaim => PreemptionReason::InCohortReclamation,
        }
    }

    /// Reports a workload that no law spares.
    pub(super) fn report_candidate<R: Recorder>(&self, id: WorkloadId, recorder: &mut R) {
        if R::RECORDS {
            recorder.candidate(self.unit(id));
        }
    }

    /// Reports each of these workloads that a law spares now.
    pub(super) fn report_spared<R: Recorder>(
        &self,
        usage: &mut QuotaUsage<'_>,
        ids: &[WorkloadId],
        claim: Claim,
        recorder: &mut R,
    ) {
        if !R::RECORDS {
            return;
        }
        for &id in ids {
            if let Err(law) = self.eligibility(usage, id, claim) {
                recorder.spared(self.unit(id), law);
            }
        }
    }

    /// Reports each workload of the preemptor's tree that a law spares now; `claim` is by queue.
    pub(super) fn report_spared_in_tree<R: Recorder>(
        &self,
        usage: &mut QuotaUsage<'_>,
        claim: impl Fn(QueueId) -> Claim,
        recorder: &mut R,
    ) {
        if !R::RECORDS {
            return;
        }
        let mut unvisited = vec![usage.tree.root(self.queue)];
        while let Some(queue) = unvisited.pop() {
            unvisited.extend(usage.children(queue));
            self.report_spared(usage, usage.workloads_of(queue), claim(queue), recorder);
        }
    }

    /// Reports again the workloads that a law spared only because of others that were taken before them, after some of those were given
    /// back; the caller has removed the victims and no others.
    pub(super) fn report_again<R: Recorder>(
        &self,
        usage: &mut QuotaUsage<'_>,
        claim: impl Fn(QueueId) -> Claim,
        recorder: &mut R,
    ) {
        if !R::RECORDS {
            return;
        }
        for id in self.snapshot.workload_ids() {
            let queue = self.snapshot.workload(id).queue;
            let (Some(queue), Some(unit)) = (queue, self.snapshot.unit_of_workload(id)) else { continue };
            if let Some(Law::WithinQuota { has_lost: true, .. } | Law::FairShare { .. }) = recorder.law_of(unit) {
                match self.eligibility(usage, id, claim(queue)) {
                    Ok(_) => recorder.candidate(unit),
                    Err(law) => recorder.spared(unit, law),
                }
            }
        }
    }

    /// Whether a queue is in the preemptor's tree of cohorts.
    pub(super) fn is_in_tree(&self, usage: &QuotaUsage<'_>, queue: QueueId) -> bool {
        usage.tree.root(queue) == usage.tree.root(self.queue)
    }

    /// The law that spares a workload independent of its queue and priority.
    #[inline]
    pub(super) fn workload_law(&self, id: WorkloadId) -> Option<Law> {
        if !self.holds_contested(id) {
            return Some(Law::NotContested);
        }
        let workload = self.snapshot.workload(id);
        let protected = workload.protected.then_some(Law::ProtectedNamespace);
        protected.or(workload.set_aside.then_some(Law::SetAside { pod: None }))
    }

    /// Whether a workload uses any of the contested flavor-resource pairs.
    #[inline]
    fn holds_contested(&self, id: WorkloadId) -> bool {
        let admission = self.snapshot.workload(id).admission.as_ref();
        let mut usage = admission.into_iter().flat_map(|admission| &admission.usage);
        usage.any(|(pair, amount)| *amount > 0 && self.contested.contains(pair))
    }

    /// The law by which the preemptor's queue takes no workload of this priority and age from a queue, its own or another.
    #[inline]
    pub(super) fn priority_law(&self, queue: QueueId, candidate: &Workload) -> Option<Law> {
        let rules = self.rules();
        if queue == self.queue {
            own_queue_law(rules.within, self.workload, candidate)
        } else {
            reclaim_law(rules.reclaim, self.workload, candidate)
        }
    }

    /// The law that spares all workloads of another queue: the queue, or a cohort between it and the lowest shared cohort, does not borrow;
    /// under fair sharing of any pair, otherwise of the contested pairs.
    #[inline]
    pub(super) fn queue_law(&self, usage: &QuotaUsage<'_>, queue: QueueId, claim: Claim) -> Option<Law> {
        let is_shared = |id: QueueId| usage.tree.path(self.queue).any(|own| own == id);
        let borrows = |id: QueueId| match claim {
            Claim::FairReclaim | Claim::FairShare(_) => usage.is_borrowing(id),
            Claim::Reclaim | Claim::WithoutBorrowing | Claim::Borrowing => !usage.is_within_nominal(id, self.contested),
        };
        let within_quota = usage.tree.path(queue).take_while(|&id| !is_shared(id)).find(|&id| !borrows(id))?;
        Some(usage.within_quota(within_quota))
    }

    /// The law that spares a workload of another queue from a preemptor that borrows.
    #[inline]
    pub(super) fn borrowing_law(&self, candidate: &Workload) -> Option<Law> {
        match self.rules().borrow {
            BorrowWithinCohort::Never => Some(Law::QueuePolicyNever),
            BorrowWithinCohort::LowerPriority { threshold: Some(threshold) } if candidate.priority > threshold => {
                Some(Law::AboveThreshold { threshold })
            }
            BorrowWithinCohort::LowerPriority { .. } => lower_priority_law(self.workload, candidate),
        }
    }
}

/// docs/rules/kueue.md#k13
#[inline]
pub(super) fn own_queue_law(within: WithinClusterQueue, preemptor: &Workload, candidate: &Workload) -> Option<Law> {
    let newer = candidate.priority == preemptor.priority && candidate.created > preemptor.created;
    match within {
        WithinClusterQueue::Never => Some(Law::QueuePolicyNever),
        WithinClusterQueue::LowerOrNewerEqualPriority if newer => None,
        WithinClusterQueue::LowerPriority | WithinClusterQueue::LowerOrNewerEqualPriority => {
            lower_priority_law(preemptor, candidate)
        }
    }
}

/// docs/rules/kueue.md#k13
#[inline]
pub(super) fn reclaim_law(reclaim: ReclaimWithinCohort, preemptor: &Workload, candidate: &Workload) -> Option<Law> {
    match reclaim {
        ReclaimWithinCohort::Never => Some(Law::QueuePolicyNever),
        ReclaimWithinCohort::LowerPriority => lower_priority_law(preemptor, candidate),
        ReclaimWithinCohort::Any => None,
    }
}

#[inline]
fn lower_priority_law(preemptor: &Workload, candidate: &Workload) -> Option<Law> {
    let law = Law::Priority { candidate: candidate.priority };
    (candidate.priority >= preemptor.priority).then_some(law)
}

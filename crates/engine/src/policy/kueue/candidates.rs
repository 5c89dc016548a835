//! The candidates of one queue, in the order in which they are taken. If that is the order of the snapshot's index, nothing is sorted,
//! candidates are read only as far as the search gets, and a queue whose lowest priority is too high is skipped.

use std::borrow::Cow;

use crate::ids::{Priority, QueueId, WorkloadId};
use crate::policy::kueue::Search;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::workloads::{ReclaimWithinCohort, Sorting, WithinClusterQueue};

/// The candidates of a queue.
pub(super) struct QueueCandidates<'a> {
    pub queue: QueueId,
    workloads: Cow<'a, [WorkloadId]>,
    /// The highest priority of a victim.
    max_priority: i64,
    /// The index of the first candidate.
    pub first: usize,
}

impl<'a> QueueCandidates<'a> {
    /// `None` if the queue has no candidates.
    pub fn new(search: &Search<'_>, quota: &QuotaUsage<'a>, queue: QueueId) -> Option<Self> {
        let max_priority = search.max_victim_priority(queue)?;
        let admitted = quota.workloads_of(queue);
        let mut candidates = Self { queue, workloads: Cow::Borrowed(admitted), max_priority, first: 0 };
        let is_index_order = search.rules().sorting == Sorting::default() && search.preferred.is_empty();
        if !is_index_order || quota.rules.has_milestones[queue.index()] {
            let mut sorted: Vec<WorkloadId> =
                admitted.iter().copied().filter(|&id| search.may_take(queue, id)).collect();
            sorted.sort_by_cached_key(|&id| search.order(id));
            candidates = Self { workloads: Cow::Owned(sorted), max_priority: i64::MAX, ..candidates };
        }
        candidates.first = candidates.next(search, 0)?;
        Some(candidates)
    }

    pub fn workload(&self, index: usize) -> WorkloadId {
        self.workloads[index]
    }

    /// The workload at this index and those after it.
    pub fn rest(&self, from: usize) -> &[WorkloadId] {
        &self.workloads[from..]
    }

    /// The index of the next candidate, from this index on.
    pub fn next(&self, search: &Search<'_>, from: usize) -> Option<usize> {
        for (index, &id) in self.workloads.iter().enumerate().skip(from) {
            let workload = search.snapshot.workload(id);
            if i64::from(workload.priority.0) > self.max_priority {
                debug_assert!(search.priority_law(self.queue, workload).is_some(), "{id:?} may be taken");
                if workload.admission.as_ref().is_some_and(|admission| admission.evicted) {
                    continue;
                }
                return None; // the following workloads have no lower priority
            }
            if search.may_take(self.queue, id) {
                return Some(index);
            }
        }
        None
    }
}

impl Search<'_> {
    /// The highest priority of a victim in a queue, the preemptor's or another; `None` if the settings allow no victim there.
    fn max_victim_priority(&self, queue: QueueId) -> Option<i64> {
        let rules = self.rules();
        if queue == self.queue {
            own_queue_max_priority(rules.within, self.workload.priority)
        } else {
            reclaim_max_priority(rules.reclaim, self.workload.priority)
        }
    }

    /// Whether no law about the workload itself spares it; a law about its queue may.
    pub(super) fn may_take(&self, queue: QueueId, id: WorkloadId) -> bool {
        self.priority_law(queue, self.snapshot.workload(id)).is_none() && self.workload_law(id).is_none()
    }
}

fn own_queue_max_priority(within: WithinClusterQueue, preemptor: Priority) -> Option<i64> {
    match within {
        WithinClusterQueue::Never => None,
        WithinClusterQueue::LowerPriority => Some(i64::from(preemptor.0) - 1),
        WithinClusterQueue::LowerOrNewerEqualPriority => Some(i64::from(preemptor.0)),
    }
}

fn reclaim_max_priority(reclaim: ReclaimWithinCohort, preemptor: Priority) -> Option<i64> {
    match reclaim {
        ReclaimWithinCohort::Never => None,
        ReclaimWithinCohort::LowerPriority => Some(i64::from(preemptor.0) - 1),
        ReclaimWithinCohort::Any => Some(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Timestamp;
    use crate::laws::Law;
    use crate::policy::kueue::eligibility::{own_queue_law, reclaim_law};
    use crate::workloads::{OnPreemption, Workload};

    fn workload(priority: i32, created: i64) -> Workload {
        Workload {
            queue: None,
            admission: None,
            priority: Priority(priority),
            namespace_fits: true,
            invalid: false,
            protected: false,
            set_aside: false,
            created: Timestamp(created),
            active: true,
            waiting_since: None,
            preempts_from: None,
            rank: 0,
            pod_sets: Vec::new(),
            milestones: Vec::new(),
            on_preemption: OnPreemption::Requeue,
            ..Workload::default()
        }
    }

    /// Checks a priority bound against the law that it approximates.
    fn check(max_priority: Option<i64>, law: Option<Law>, candidate: &Workload) {
        let priority = Law::Priority { candidate: candidate.priority };
        match max_priority {
            None => assert_eq!(law, Some(Law::QueuePolicyNever)),
            Some(max_priority) if i64::from(candidate.priority.0) > max_priority => assert_eq!(law, Some(priority)),
            Some(_) => assert!(law.is_none_or(|law| law == priority)),
        }
    }

    #[test]
    fn workloads_above_the_bound_are_spared_by_their_priority() {
        let priorities = [i32::MIN, -1, 0, 1, i32::MAX];
        let pairs = priorities.iter().flat_map(|&own| priorities.map(|other| (own, other)));
        for ((own, other), created) in pairs.flat_map(|pair| [1, 2, 3].map(|created| (pair, created))) {
            let (preemptor, candidate) = (workload(own, 2), workload(other, created));
            for within in [
                WithinClusterQueue::Never,
                WithinClusterQueue::LowerPriority,
                WithinClusterQueue::LowerOrNewerEqualPriority,
            ] {
                let law = own_queue_law(within, &preemptor, &candidate);
                check(own_queue_max_priority(within, preemptor.priority), law, &candidate);
            }
            for reclaim in [ReclaimWithinCohort::Never, ReclaimWithinCohort::LowerPriority, ReclaimWithinCohort::Any] {
                let law = reclaim_law(reclaim, &preemptor, &candidate);
                check(reclaim_max_priority(reclaim, preemptor.priority), law, &candidate);
            }
        }
    }
}

//! The candidates of one queue in the order in which they are taken. Where that is the order in which the snapshot keeps them, nobody
//! is sorted and only those are looked at who are reached; and a queue whose lowest priority is out of reach is left at once.

use std::borrow::Cow;

use crate::ids::{Priority, QueueId, WorkloadId};
use crate::policy::kueue::Search;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::workloads::{ReclaimWithinCohort, Sorting, WithinClusterQueue};

/// A queue's candidates.
pub(super) struct QueueCandidates<'a> {
    pub queue: QueueId,
    workloads: Cow<'a, [WorkloadId]>,
    /// The highest priority that may be taken.
    max_priority: i64,
    /// Where the first candidate stands.
    pub first: usize,
}

impl<'a> QueueCandidates<'a> {
    /// `None` where nobody may be taken.
    pub fn new(search: &Search<'_>, quota: &QuotaUsage<'a>, queue: QueueId) -> Option<Self> {
        let reach = search.max_victim_priority(queue)?;
        let kept = quota.workloads_of(queue);
        let mut lane = Self { queue, workloads: Cow::Borrowed(kept), max_priority: reach, first: 0 };
        let is_kept_order = search.rules().sorting == Sorting::default() && search.preferred.is_empty();
        if !is_kept_order || quota.rules.has_milestones[queue.index()] {
            let mut sorted: Vec<WorkloadId> = kept.iter().copied().filter(|&id| search.may_take(queue, id)).collect();
            sorted.sort_by_cached_key(|&id| search.order(id));
            lane = Self { workloads: Cow::Owned(sorted), max_priority: i64::MAX, ..lane };
        }
        lane.first = lane.next(search, 0)?;
        Some(lane)
    }

    pub fn at(&self, at: usize) -> WorkloadId {
        self.workloads[at]
    }

    /// The workload at this place, and those behind it.
    pub fn rest(&self, from: usize) -> &[WorkloadId] {
        &self.workloads[from..]
    }

    /// Where the next candidate stands, at this place or behind it.
    pub fn next(&self, search: &Search<'_>, from: usize) -> Option<usize> {
        for (at, &id) in self.workloads.iter().enumerate().skip(from) {
            let workload = search.snapshot.workload(id);
            if i64::from(workload.priority.0) > self.max_priority {
                debug_assert!(search.priority_law(self.queue, workload).is_some(), "{id:?} may be taken");
                if workload.admission.as_ref().is_some_and(|admission| admission.evicted) {
                    continue;
                }
                return None; // whoever follows is no lower
            }
            if search.may_take(self.queue, id) {
                return Some(at);
            }
        }
        None
    }
}

impl Search<'_> {
    /// The highest priority that may be taken in a queue, the own or another; `None` where nobody may be.
    fn max_victim_priority(&self, queue: QueueId) -> Option<i64> {
        let rules = self.rules();
        if queue == self.queue {
            own_queue_max_priority(rules.within, self.workload.priority)
        } else {
            reclaim_max_priority(rules.reclaim, self.workload.priority)
        }
    }

    /// Whether no law about a workload itself spares it; its queue may.
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

    /// Checks a reach against the law that it is a shortcut for.
    fn check(reach: Option<i64>, law: Option<Law>, candidate: &Workload) {
        let priority = Law::Priority { candidate: candidate.priority };
        match reach {
            None => assert_eq!(law, Some(Law::QueuePolicyNever)),
            Some(reach) if i64::from(candidate.priority.0) > reach => assert_eq!(law, Some(priority)),
            Some(_) => assert!(law.is_none_or(|law| law == priority)),
        }
    }

    #[test]
    fn workloads_out_of_reach_are_spared_by_their_priority() {
        let priorities = [i32::MIN, -1, 0, 1, i32::MAX];
        let pairs = priorities.iter().flat_map(|&one| priorities.map(|other| (one, other)));
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

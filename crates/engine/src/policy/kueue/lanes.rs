//! The candidates of one queue in the order in which they are taken. Where that is the order in which the snapshot keeps them, nobody
//! is sorted and only those are looked at who are reached; and a queue whose lowest priority is out of reach is left at once.

use std::borrow::Cow;

use crate::ids::{QueueId, WorkloadId};
use crate::policy::kueue::Search;
use crate::policy::kueue::quota::Quota;
use crate::workloads::{Reclaim, Sorting, Within};

/// A queue's candidates.
pub(super) struct Lane<'a> {
    pub queue: QueueId,
    workloads: Cow<'a, [WorkloadId]>,
    /// The highest priority that may be taken.
    reach: i64,
    /// Where the first candidate stands.
    pub first: usize,
}

impl<'a> Lane<'a> {
    /// `None` where nobody may be taken.
    pub fn new(search: &Search<'_>, quota: &Quota<'a>, queue: QueueId) -> Option<Self> {
        let reach = search.reach(queue)?;
        let kept = quota.workloads_of(queue);
        let mut lane = Self { queue, workloads: Cow::Borrowed(kept), reach, first: 0 };
        let is_kept_order = search.rules().sorting == Sorting::default() && search.preferred.is_empty();
        if !is_kept_order || quota.rules.has_milestones[queue.index()] {
            let mut sorted: Vec<WorkloadId> = kept.iter().copied().filter(|&id| search.may_take(queue, id)).collect();
            sorted.sort_by_cached_key(|&id| search.order(id));
            lane = Self { workloads: Cow::Owned(sorted), reach: i64::MAX, ..lane };
        }
        lane.first = lane.next(search, 0)?;
        Some(lane)
    }

    pub fn at(&self, at: usize) -> WorkloadId {
        self.workloads[at]
    }

    /// Where the next candidate stands, at this place or behind it.
    pub fn next(&self, search: &Search<'_>, from: usize) -> Option<usize> {
        for (at, &id) in self.workloads.iter().enumerate().skip(from) {
            let workload = search.snapshot.workload(id);
            if i64::from(workload.priority.0) > self.reach {
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
    fn reach(&self, queue: QueueId) -> Option<i64> {
        let own = i64::from(self.workload.priority.0);
        if queue == self.queue {
            return match self.rules().within {
                Within::Never => None,
                Within::LowerPriority => Some(own - 1),
                Within::LowerOrNewerEqualPriority => Some(own),
            };
        }
        match self.rules().reclaim {
            Reclaim::Never => None,
            Reclaim::LowerPriority => Some(own - 1),
            Reclaim::Any => Some(i64::MAX),
        }
    }

    /// Whether no law about a workload itself spares it; its queue may.
    fn may_take(&self, queue: QueueId, id: WorkloadId) -> bool {
        self.priority_law(queue, self.snapshot.workload(id)).is_none() && self.workload_law(id).is_none()
    }
}

//! Workloads that wait and ask for the same. As long as the first of them gets nothing, neither do the others.

use crate::ids::{Priority, QueueId, TextId, Timestamp, WorkloadId};
use crate::policy::kueue::{Kueue, PlacementMode};
use crate::snapshot::Snapshot;
use crate::workloads::{PodSet, WithinClusterQueue};

/// What tells a workload that waits for quota from others, as far as a cycle minds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadClassKey {
    queue: Option<QueueId>,
    priority: Priority,
    active: bool,
    namespace_fits: bool,
    unsupported: Option<TextId>,
    invalid: bool,
    pod_sets: Vec<PodSet>,
    /// Where it may take those that are newer.
    created: Option<Timestamp>,
    /// Where it may take others only after a while.
    waiting_since: Option<Option<Timestamp>>,
}

impl WorkloadClassKey {
    /// Of a workload that holds no quota; `None` where its pods matter, too.
    pub fn of(snapshot: &Snapshot, policy: &Kueue, id: WorkloadId) -> Option<Self> {
        if policy.placement == PlacementMode::Joint {
            return None;
        }
        let workload = snapshot.workload(id);
        let rules = workload.queue.map(|queue| &snapshot.quota_rules().queues[queue.index()]);
        let minds_age = rules.is_some_and(|rules| rules.within == WithinClusterQueue::LowerOrNewerEqualPriority);
        let minds_wait = rules.is_some_and(|rules| rules.trigger_after_seconds > 0);
        Some(Self {
            queue: workload.queue,
            priority: workload.priority,
            active: workload.active,
            namespace_fits: workload.namespace_fits,
            unsupported: workload.unsupported,
            invalid: workload.invalid,
            pod_sets: workload.pod_sets.clone(),
            created: minds_age.then_some(workload.created),
            waiting_since: minds_wait.then_some(workload.waiting_since),
        })
    }
}

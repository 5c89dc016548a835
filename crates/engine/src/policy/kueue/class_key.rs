//! The equivalence class of a pending workload. While the first workload of a class cannot be admitted, neither can the others.

use crate::ids::{Priority, QueueId, TextId, Timestamp, WorkloadId};
use crate::policy::kueue::{Kueue, PlacementMode};
use crate::snapshot::Snapshot;
use crate::workloads::{PodSet, WithinClusterQueue};

/// The properties of a pending workload that a cycle reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadClassKey {
    queue: Option<QueueId>,
    priority: Priority,
    active: bool,
    namespace_fits: bool,
    unsupported: Option<TextId>,
    invalid: bool,
    pod_sets: Vec<PodSet>,
    /// Set if the queue may preempt newer workloads.
    created: Option<Timestamp>,
    /// Set if the queue delays preemption.
    waiting_since: Option<Option<Timestamp>>,
}

impl WorkloadClassKey {
    /// The key of a workload without quota; `None` under joint placement, where its pods matter too.
    pub fn of(snapshot: &Snapshot, policy: &Kueue, id: WorkloadId) -> Option<Self> {
        if policy.placement == PlacementMode::Joint {
            return None;
        }
        let workload = snapshot.workload(id);
        let rules = workload.queue.map(|queue| &snapshot.quota_rules().queues[queue.index()]);
        let depends_on_age = rules.is_some_and(|rules| rules.within == WithinClusterQueue::LowerOrNewerEqualPriority);
        let depends_on_wait = rules.is_some_and(|rules| rules.trigger_after_seconds > 0);
        Some(Self {
            queue: workload.queue,
            priority: workload.priority,
            active: workload.active,
            namespace_fits: workload.namespace_fits,
            unsupported: workload.unsupported,
            invalid: workload.invalid,
            pod_sets: workload.pod_sets.clone(),
            created: depends_on_age.then_some(workload.created),
            waiting_since: depends_on_wait.then_some(workload.waiting_since),
        })
    }
}

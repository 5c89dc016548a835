//! A queue independent of any policy.

use reprieve_engine::QueueId;
use reprieve_engine::queues::{Queue, QueuePriority, UNDEFINED};

use crate::Amounts;

/// A queue of any policy: a YuniKorn queue, an ElasticQuota, a ClusterQueue or a Cohort.
#[derive(Clone, Debug, Default)]
pub struct QueueSpec {
    /// The name, or the full path under YuniKorn.
    pub name: String,
    /// The index of the parent queue.
    pub parent: Option<usize>,
    /// The guaranteed amounts.
    pub guarantee: Amounts,
    /// The largest amounts that the queue may use.
    pub limit: Amounts,
}

impl QueueSpec {
    /// Returns the resources with a guarantee or a limit.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &String> {
        self.guarantee.keys().chain(self.limit.keys())
    }

    /// Returns the queue for the engine, with default rules.
    pub(crate) fn queue(&self, resources: &[String]) -> Queue {
        let by_resource = |amounts: &Amounts| -> Vec<i64> {
            resources.iter().map(|resource| amounts.get(resource).copied().unwrap_or(UNDEFINED)).collect()
        };
        Queue {
            parent: self.parent.map(QueueId::new),
            guarantee: by_resource(&self.guarantee),
            limit: by_resource(&self.limit),
            local_quota: vec![0; resources.len()],
            fence: false,
            preemptible: true,
            delay_micros: 0,
            priority: QueuePriority::Offset(0),
        }
    }
}

//! A queue as every policy has one.

use reprieve_engine::QueueId;
use reprieve_engine::queues::{Queue, QueuePriority, UNDEFINED};

use crate::Amounts;

/// A queue with its limits, whatever its policy calls it.
#[derive(Clone, Debug, Default)]
pub struct QueueSpec {
    /// Its name.
    pub name: String,
    /// The index of the queue above it.
    pub parent: Option<usize>,
    /// What it is guaranteed.
    pub guarantee: Amounts,
    /// What it may use at most.
    pub limit: Amounts,
}

impl QueueSpec {
    /// The resources that it has a limit of.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &String> {
        self.guarantee.keys().chain(self.limit.keys())
    }

    /// The queue as the engine has it, with no rules but its limits.
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

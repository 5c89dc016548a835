//! A scheduler does not evict a pod or an admitted workload again after it received the success of the eviction.

use std::collections::BTreeSet;

use reprieve_scheduler::{Action, Step};

use super::CheckResult;
use crate::virtual_cluster::VirtualCluster;

#[derive(Default)]
pub(super) struct NoDoubleEviction {
    /// The requested evictions: the incarnation of the scheduler, and the uid of the pod or the admission of the workload.
    requested: BTreeSet<(u64, String)>,
}

impl NoDoubleEviction {
    pub fn check(&mut self, cluster: &VirtualCluster, step: &Step) -> CheckResult {
        for (_, action) in &step.actions {
            let (victim, uid) = match action {
                Action::Evict { pod } | Action::SoftEvict { pod, .. } => (pod, pod.uid.clone()),
                Action::EvictWorkload { workload, .. } => (workload, cluster.process.admission_id(&workload.uid)),
                _ => continue,
            };
            let again = !self.requested.insert((cluster.process.incarnation, uid.clone()));
            if again && cluster.process.scheduler_knows_evicted(&uid) {
                return Err(format!("{} is evicted a second time", victim.name));
            }
        }
        Ok(())
    }
}

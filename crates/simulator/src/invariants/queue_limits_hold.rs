//! No queue uses more than its limit.

use reprieve_engine::Policy;
use reprieve_engine::queues::UNDEFINED;
use reprieve_loader::build::{OnInvalid, load};

use super::CheckResult;
use super::quota::Quota;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(cluster: &VirtualCluster) -> CheckResult {
    if matches!(cluster.setup.policy, Policy::Kubernetes(_)) {
        return Ok(());
    }
    if matches!(cluster.setup.policy, Policy::Kueue(_)) {
        return Quota::of(&cluster.objects())?.check();
    }
    let loaded = load(&cluster.objects(), OnInvalid::Quarantine).map_err(|error| error.to_string())?;
    let queues = loaded.snapshot.queues();
    // Under YuniKorn the limit of the root is the capacity of all nodes, which shrinks when a node is lost.
    let is_yunikorn = matches!(cluster.setup.policy, Policy::YuniKorn(_));
    for id in queues.ids().filter(|id| queues.get(*id).parent.is_some() || !is_yunikorn) {
        for (resource, (used, limit)) in queues.used(id).iter().zip(&queues.get(id).limit).enumerate() {
            if *limit != UNDEFINED && used > limit {
                let queue = loaded.names.queue(id);
                return Err(format!("queue {queue} uses {used} of resource {resource}, more than its limit {limit}"));
            }
        }
    }
    Ok(())
}

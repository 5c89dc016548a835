//! No queue is over its ceiling.

use reprieve_engine::policy::Policy;
use reprieve_engine::queues::UNDEFINED;
use reprieve_loader::build::{OnInvalid, load};

use super::Held;
use super::quota::Quota;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(world: &VirtualCluster) -> Held {
    if matches!(world.setup.policy, Policy::Kubernetes(_)) {
        return Ok(());
    }
    if matches!(world.setup.policy, Policy::Kueue(_)) {
        return Quota::of(&world.objects())?.check();
    }
    let loaded = load(&world.objects(), OnInvalid::Live).map_err(|error| error.to_string())?;
    let queues = loaded.snapshot.queues();
    // There the root's ceiling is what the nodes offer, and nodes may vanish.
    let is_yunikorn = matches!(world.setup.policy, Policy::YuniKorn);
    for id in queues.ids().filter(|id| queues.get(*id).parent.is_some() || !is_yunikorn) {
        for (at, (used, ceiling)) in queues.used(id).iter().zip(&queues.get(id).limit).enumerate() {
            if *ceiling != UNDEFINED && used > ceiling {
                let queue = loaded.names.queue(id);
                return Err(format!("queue {queue} may use {ceiling} of resource {at}, and uses {used}"));
            }
        }
    }
    Ok(())
}

//! A gang that yields whole is not evicted in part.

use std::collections::BTreeSet;

use reprieve_api::meta::NamespacedName;
use reprieve_engine::policy::Policy;
use reprieve_scheduler::Step;

use super::Held;
use super::no_second_preemption::evicted;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(world: &VirtualCluster, step: &Step) -> Held {
    let evicted: BTreeSet<&NamespacedName> = step.actions.iter().filter_map(|(_, action)| evicted(action)).collect();
    if evicted.is_empty() || !matches!(world.setup.policy, Policy::Kubernetes(_)) {
        return Ok(());
    }
    for (job, _) in world.gangs().filter(|(_, gang)| gang.whole) {
        let pods = &job.parts[0].pods;
        let stays = |pod: &&NamespacedName| {
            let pod = world.scheduler().live().pod(pod);
            pod.is_some_and(|pod| pod.node_name.is_some() && pod.metadata.deletion_timestamp.is_none())
        };
        if pods.keys().any(|pod| evicted.contains(pod))
            && let Some(pod) = pods.keys().filter(stays).find(|pod| !evicted.contains(pod))
        {
            return Err(format!("part of gang {} is evicted, and {pod} stays", job.submission.name));
        }
    }
    Ok(())
}

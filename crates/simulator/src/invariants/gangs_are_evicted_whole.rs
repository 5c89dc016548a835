//! A gang with the disruption mode `All` is not evicted in part.

use std::collections::BTreeSet;

use reprieve_api::NamespacedName;
use reprieve_engine::Policy;
use reprieve_scheduler::Step;

use super::CheckResult;
use super::no_second_preemption::evicted;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(cluster: &VirtualCluster, step: &Step) -> CheckResult {
    let evicted: BTreeSet<&NamespacedName> = step.actions.iter().filter_map(|(_, action)| evicted(action)).collect();
    if evicted.is_empty() || !matches!(cluster.setup.policy, Policy::Kubernetes(_)) {
        return Ok(());
    }
    for (job, _) in cluster.gangs().filter(|(_, gang)| gang.whole) {
        let pods = &job.parts[0].pods; // a gang is in one part
        let is_running = |pod: &&NamespacedName| {
            let pod = cluster.scheduler().live().pod(pod);
            pod.is_some_and(|pod| pod.node_name.is_some() && pod.metadata.deletion_timestamp.is_none())
        };
        if pods.keys().any(|pod| evicted.contains(pod))
            && let Some(pod) = pods.keys().filter(is_running).find(|pod| !evicted.contains(pod))
        {
            return Err(format!("part of gang {} is evicted, but pod {pod} is not", job.submission.name));
        }
    }
    Ok(())
}

//! A gang with the disruption mode `All` is not evicted in part, and under `wholeGangs` of policy Koordinator a gang that runs does not fall
//! below its minimum, unless all of it is evicted.

use std::collections::BTreeSet;

use reprieve_api::NamespacedName;
use reprieve_engine::Policy;
use reprieve_scheduler::Step;

use super::CheckResult;
use super::no_second_preemption::{evicted, is_terminating};
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(cluster: &VirtualCluster, step: &Step) -> CheckResult {
    let evicted: BTreeSet<&NamespacedName> = step.actions.iter().filter_map(|(_, action)| evicted(action)).collect();
    if evicted.is_empty() {
        return Ok(());
    }
    for (job, gang) in cluster.gangs() {
        let minimum = match cluster.setup.policy {
            Policy::Kubernetes(_) => gang.whole.then_some(usize::MAX),
            Policy::Koordinator(policy) => policy.whole_gangs.then_some(gang.min),
            Policy::YuniKorn(_) | Policy::Kueue(_) => None,
        };
        let Some(minimum) = minimum else { continue };
        let pods = &job.parts[0].pods;
        let is_running = |pod: &&NamespacedName| {
            let is_bound = cluster.scheduler().live().pod(pod).is_some_and(|pod| pod.node_name.is_some());
            is_bound && !is_terminating(cluster, pod)
        };
        let n_evicted = pods.keys().filter(|pod| evicted.contains(pod)).count();
        let remaining: Vec<&NamespacedName> =
            pods.keys().filter(is_running).filter(|pod| !evicted.contains(pod)).collect();
        // A gang that ran below its minimum before has nothing to lose.
        let ran = minimum == usize::MAX || remaining.len() + n_evicted >= minimum;
        if let Some(pod) = remaining.first().filter(|_| n_evicted > 0 && ran && remaining.len() < minimum) {
            return Err(format!("part of gang {} is evicted, but pod {pod} is not", job.submission.name));
        }
    }
    Ok(())
}

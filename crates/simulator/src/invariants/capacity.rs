//! The pods on a node request no more than its allocatable resources. The hostile tenant has a node of its own.

use std::collections::BTreeMap;

use reprieve_api::Object;
use reprieve_loader::Amounts;
use reprieve_loader::requests;

use super::CheckResult;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(cluster: &VirtualCluster) -> CheckResult {
    let objects = cluster.objects();
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    for pod in objects.pods.iter().map(|pod| &pod.object).filter(|pod| !pod.is_finished()) {
        let Some(node) = pod.node_name.as_deref() else { continue };
        let used = used.entry(node).or_default();
        for (resource, amount) in requests::requests(pod).map_err(|error| error.to_string())? {
            *used.entry(resource).or_default() += amount;
        }
        *used.entry("pods".to_owned()).or_default() += 1;
    }
    for object in cluster.api.all() {
        let Object::Node(node) = object else { continue };
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let limits = requests::amounts(&allocatable, "status.allocatable").map_err(|error| error.to_string())?;
        for (resource, amount) in used.remove(name).unwrap_or_default() {
            let limit = limits.get(&resource).copied().unwrap_or(0);
            if amount > limit {
                return Err(format!("node {name}: {amount} of {resource} used, {limit} allocatable"));
            }
        }
    }
    Ok(())
}

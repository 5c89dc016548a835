//! No node is over its capacity.

use std::collections::BTreeMap;

use reprieve_api::kinds::Object;
use reprieve_loader::requests::{self, Amounts};

use super::Held;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(world: &VirtualCluster) -> Held {
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    for pod in world.api.pods().filter(|pod| !pod.is_finished()) {
        let Some(node) = pod.node_name.as_deref() else { continue };
        let used = used.entry(node).or_default();
        for (resource, amount) in requests::requests(pod).map_err(|error| error.to_string())? {
            *used.entry(resource).or_default() += amount;
        }
        *used.entry("pods".to_owned()).or_default() += 1;
    }
    for object in world.api.all() {
        let Object::Node(node) = object else { continue };
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let offered = requests::amounts(&allocatable, "status.allocatable").map_err(|error| error.to_string())?;
        for (resource, amount) in used.remove(name).unwrap_or_default() {
            let offered = offered.get(&resource).copied().unwrap_or(0);
            if amount > offered {
                return Err(format!("node {name} has {offered} of {resource}, and {amount} is used"));
            }
        }
    }
    Ok(())
}

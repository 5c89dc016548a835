//! The pod group of a pod, in every version of the API.

use serde_json::{Value, json};

use crate::{NamespacedName, Pod};

/// Returns the group that a pod names.
pub fn group_of(pod: &Pod) -> Option<NamespacedName> {
    let name = pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_ref()?;
    Some(NamespacedName::new(pod.metadata.namespace.as_deref().unwrap_or_default(), name))
}

/// Converts `spec.workloadRef` of an earlier API version into `spec.schedulingGroup`.
pub fn name_group_of(pod: &mut Value) {
    let text = |field: &str| pod.pointer(&format!("/spec/workloadRef/{field}")).and_then(Value::as_str);
    if let (Some(workload), Some(group)) = (text("name"), text("podGroup")) {
        let name = member_group(workload, group, text("podGroupReplicaKey"));
        pod["spec"]["schedulingGroup"] = json!({ "podGroupName": name });
    }
}

/// Returns the name of a Workload's pod group: `WORKLOAD-GROUP`, followed by the key of the replica if there are several.
pub fn member_group(workload: &str, group: &str, replica: Option<&str>) -> String {
    match replica.filter(|replica| !replica.is_empty()) {
        Some(replica) => format!("{workload}-{group}-{replica}"),
        None => format!("{workload}-{group}"),
    }
}

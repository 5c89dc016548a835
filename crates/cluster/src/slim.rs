//! What is kept of an object: in a large cluster there are many, and no decision reads most of what they say.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use reprieve_objects::object::Object;
use reprieve_objects::pod::{ContainerStatus, Pod};

/// The conditions of a pod that a decision reads.
const READ: [&str; 3] = ["PodScheduled", "DisruptionTarget", "PodResizePending"];
/// What `kubectl apply` remembers: the object once more.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object without what no decision reads.
pub fn slim(mut object: Object) -> Object {
    let metadata = object.metadata_mut();
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(APPLIED);
    }
    match &mut object {
        Object::Pod(pod) => slim_pod(Arc::make_mut(pod)),
        Object::Node(node) => slim_node(Arc::make_mut(node)),
        _ => {}
    }
    object
}

fn slim_pod(pod: &mut Pod) {
    if let Some(spec) = &mut pod.spec {
        spec.containers.shrink_to_fit();
        spec.tolerations.iter_mut().for_each(Vec::shrink_to_fit);
    }
    if let Some(status) = &mut pod.status {
        keep(&mut status.conditions, |condition| READ.contains(&condition.type_.as_str()));
        let says = |one: &ContainerStatus| one.allocated_resources.is_some() || one.resources.is_some();
        keep(&mut status.container_statuses, says);
        keep(&mut status.init_container_statuses, says);
    }
}

/// Keeps those of a list that are read, and no room for more: what it is made of has some for several.
fn keep<T>(list: &mut Option<Vec<T>>, is_read: impl Fn(&T) -> bool) {
    if let Some(items) = list {
        items.retain(is_read);
        items.shrink_to_fit();
    }
    list.take_if(|items| items.is_empty());
}

fn slim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        *status = NodeStatus {
            allocatable: status.allocatable.take(),
            capacity: status.capacity.take(),
            ..NodeStatus::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_decision_reads_is_not_kept() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {APPLIED: "{}", "scheduling.example/asked": "for"}},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}, {"name": "other"}],
            },
        }))
        .expect("a pod");
        let kept: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {"scheduling.example/asked": "for"}},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}],
            },
        }))
        .expect("a pod");
        assert_eq!(slim(Object::from(pod)), Object::from(kept));
    }

    #[test]
    fn a_list_takes_no_more_than_it_needs() {
        let mut list = Some(vec![1, 2, 3, 4]);
        keep(&mut list, |item| *item == 1);
        assert_eq!(list.as_ref().map(|list| (list.len(), list.capacity())), Some((1, 1)));
        keep(&mut list, |_| false);
        assert_eq!(list, None);
    }

    #[test]
    fn of_a_node_its_labels_taints_and_what_it_offers_are_kept() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": {"zone": "a"}},
            "spec": {"unschedulable": true},
            "status": {
                "allocatable": {"cpu": "4"},
                "capacity": {"cpu": "5"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "images": [{"names": ["i"]}],
            },
        }))
        .expect("a node");
        let kept: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": {"zone": "a"}},
            "spec": {"unschedulable": true},
            "status": {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "5"}},
        }))
        .expect("a node");
        assert_eq!(slim(Object::from(node)), Object::from(kept));
    }
}

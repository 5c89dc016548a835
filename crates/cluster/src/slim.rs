//! What is kept of an object: in a large cluster there are many, and no decision reads most of what they say.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Node, NodeStatus, Pod, PodCondition, PodStatus};
use reprieve_objects::object::Object;

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
        spec.volumes = None;
        spec.containers = containers(std::mem::take(&mut spec.containers));
        spec.init_containers = spec.init_containers.take().map(containers);
    }
    if let Some(status) = &mut pod.status {
        let kept = |condition: &PodCondition| READ.contains(&condition.type_.as_str());
        let conditions = status.conditions.take().map(|all| fitted(all.into_iter().filter(kept)));
        *status = PodStatus {
            phase: status.phase.take(),
            nominated_node_name: status.nominated_node_name.take(),
            start_time: status.start_time.take(),
            resources: status.resources.take(),
            allocated_resources: status.allocated_resources.take(),
            container_statuses: resized(status.container_statuses.take()),
            init_container_statuses: resized(status.init_container_statuses.take()),
            conditions,
            ..PodStatus::default()
        };
    }
}

fn containers(all: Vec<Container>) -> Vec<Container> {
    fitted(all.into_iter().map(|container| Container {
        name: container.name,
        image: container.image,
        resources: container.resources,
        ports: container.ports,
        restart_policy: container.restart_policy,
        ..Container::default()
    }))
}

/// A list that takes no more than it needs: what it is made of has room for several more.
fn fitted<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = items.collect();
    list.shrink_to_fit();
    list
}

/// Those of the containers that say what they were given.
fn resized(statuses: Option<Vec<ContainerStatus>>) -> Option<Vec<ContainerStatus>> {
    let says = |status: &ContainerStatus| status.allocated_resources.is_some() || status.resources.is_some();
    let kept = statuses?.into_iter().filter(says).map(|status| ContainerStatus {
        name: status.name,
        allocated_resources: status.allocated_resources,
        resources: status.resources,
        ..ContainerStatus::default()
    });
    Some(fitted(kept)).filter(|kept| !kept.is_empty())
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
            "metadata": {
                "name": "a",
                "managedFields": [{"manager": "x"}],
                "annotations": {APPLIED: "{}", "scheduling.example/asked": "for"},
            },
            "spec": {
                "nodeName": "n",
                "volumes": [{"name": "v"}],
                "containers": [{
                    "name": "main",
                    "image": "i",
                    "command": ["sh"],
                    "env": [{"name": "A"}],
                    "resources": {"requests": {"cpu": "1"}},
                    "ports": [{"containerPort": 1, "hostPort": 1}],
                }],
            },
            "status": {
                "phase": "Running",
                "podIP": "10.0.0.1",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [
                    {"name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 3,
                     "allocatedResources": {"cpu": "2"}},
                    {"name": "other", "image": "i", "imageID": "", "ready": true, "restartCount": 0},
                ],
            },
        }))
        .expect("a pod");
        let kept: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {"scheduling.example/asked": "for"}},
            "spec": {
                "nodeName": "n",
                "containers": [{
                    "name": "main",
                    "image": "i",
                    "resources": {"requests": {"cpu": "1"}},
                    "ports": [{"containerPort": 1, "hostPort": 1}],
                }],
            },
            "status": {
                "phase": "Running",
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [
                    {"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                     "allocatedResources": {"cpu": "2"}},
                ],
            },
        }))
        .expect("a pod");
        assert_eq!(slim(Object::from(pod)), Object::from(kept));
    }

    #[test]
    fn a_list_takes_no_more_than_it_needs() {
        let list = fitted(vec![1, 2, 3, 4].into_iter().filter(|item| *item == 1));
        assert_eq!((list.len(), list.capacity()), (1, 1));
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

//! Reduces the memory of objects: removes the fields that no decision reads, and shares equal pod specs. The watches, lists and reads of
//! single objects trim every object.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use reprieve_api::pod::{ContainerStatus, VICTIM};
use reprieve_api::{Object, Pod, PodSpec};

/// The conditions of a pod that a decision reads.
const READ_CONDITIONS: [&str; 4] = ["PodScheduled", "DisruptionTarget", VICTIM, "PodResizePending"];
/// The number of unused specs that are kept before they are removed from the map.
const MIN_UNUSED_KEPT: usize = 100;
/// The annotation with which `kubectl apply` stores a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Trims objects, and remembers pod specs to share them.
#[derive(Default)]
pub struct ObjectTrimmer {
    /// Pod specs by digest: the pods of one controller have equal specs.
    specs: HashMap<u64, Weak<PodSpec>>,
    /// The map is cleaned up when it exceeds this size.
    cleanup_size: usize,
}

impl ObjectTrimmer {
    /// Removes the fields that no decision reads, and shares the pod's spec with equal pods.
    pub fn trim(&mut self, mut object: Object) -> Object {
        let metadata = object.metadata_mut();
        metadata.managed_fields = None;
        if let Some(annotations) = &mut metadata.annotations {
            annotations.remove(LAST_APPLIED);
        }
        match &mut object {
            Object::Pod(pod) => {
                let pod = Arc::make_mut(pod);
                trim_pod(pod);
                pod.spec = pod.spec.take().map(|spec| self.share(spec));
            }
            Object::Node(node) => trim_node(Arc::make_mut(node)),
            _ => {}
        }
        object
    }

    fn share(&mut self, spec: Arc<PodSpec>) -> Arc<PodSpec> {
        let digest = digest(&spec);
        if let Some(known) = self.specs.get(&digest).and_then(Weak::upgrade).filter(|known| *known == spec) {
            return known;
        }
        self.specs.insert(digest, Arc::downgrade(&spec));
        if self.specs.len() > self.cleanup_size {
            self.specs.retain(|_, spec| spec.strong_count() > 0);
            self.cleanup_size = 2 * self.specs.len() + MIN_UNUSED_KEPT;
        }
        spec
    }
}

/// A digest of the fields in which specs often differ. Different specs may have the same digest.
fn digest(spec: &PodSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    (spec.priority, &spec.scheduler_name, &spec.node_selector).hash(&mut hasher);
    spec.scheduling_group.as_ref().map(|group| &group.pod_group_name).hash(&mut hasher);
    for container in &spec.containers {
        (&container.name, &container.image).hash(&mut hasher);
        let requests = container.resources.iter().filter_map(|resources| resources.requests.as_ref());
        requests.flatten().for_each(|(resource, quantity)| (resource, &quantity.0).hash(&mut hasher));
    }
    hasher.finish()
}

fn trim_pod(pod: &mut Pod) {
    if let Some(spec) = pod.spec.as_mut().map(Arc::make_mut) {
        spec.containers.shrink_to_fit();
        spec.tolerations.iter_mut().for_each(Vec::shrink_to_fit);
    }
    if let Some(status) = &mut pod.status {
        keep(&mut status.conditions, |condition| READ_CONDITIONS.contains(&condition.type_.as_str()));
        let has_resources =
            |status: &ContainerStatus| status.allocated_resources.is_some() || status.resources.is_some();
        keep(&mut status.container_statuses, has_resources);
        keep(&mut status.init_container_statuses, has_resources);
    }
}

/// Keeps the items that a decision reads, without spare capacity, and `None` instead of an empty list.
fn keep<T>(list: &mut Option<Vec<T>>, is_read: impl Fn(&T) -> bool) {
    if let Some(items) = list {
        items.retain(is_read);
        items.shrink_to_fit();
    }
    list.take_if(|items| items.is_empty());
}

fn trim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        let allocatable = status.allocatable.take();
        let capacity = status.capacity.take().filter(|_| allocatable.is_none());
        *status = NodeStatus { allocatable, capacity, ..NodeStatus::default() };
    }
}

/// Makes API defaults explicit that differ from those of a file: a ClusterQueue of the API without a namespace selector selects no namespace.
pub fn apply_api_defaults(object: &mut Object) {
    if let Object::ClusterQueue(queue) = object
        && queue.spec.namespace_selector.is_none()
    {
        Arc::make_mut(queue).spec.namespace_selector = Some(None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_no_decision_reads_are_removed() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: "{}", "example.com/owner": "team"}},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}, {"name": "other"}],
            },
        }))
        .expect("a pod");
        let kept: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {"example.com/owner": "team"}},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}],
            },
        }))
        .expect("a pod");
        assert_eq!(ObjectTrimmer::default().trim(Object::from(pod)), Object::from(kept));
    }

    #[test]
    fn equal_pods_share_their_spec() {
        let mut trimmer = ObjectTrimmer::default();
        let mut trimmed = |name: &str, node: Option<&str>, grace: i64| {
            let spec =
                json!({"nodeName": node, "containers": [{"name": "main"}], "terminationGracePeriodSeconds": grace});
            let pod = json!({"metadata": {"name": name}, "spec": spec});
            match trimmer.trim(Object::from(serde_json::from_value::<Pod>(pod).expect("a pod"))) {
                Object::Pod(pod) => pod,
                other => panic!("{other:?} is no pod"),
            }
        };
        let shared = |a: &Pod, b: &Pod| match (&a.spec, &b.spec) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let (a, b, other) = (trimmed("a", None, 30), trimmed("b", Some("node"), 30), trimmed("c", None, 60));
        assert!(shared(&a, &b) && !shared(&a, &other));
        assert_eq!((a.node_name.as_deref(), b.node_name.as_deref()), (None, Some("node")));
        assert_eq!(other.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds), Some(60));
        for index in 0..1_000 {
            trimmed(&format!("pod-{index}"), None, 100 + index);
        }
        assert!(shared(&trimmed("d", None, 60), &trimmed("e", None, 60)));
        let mut trimmer = ObjectTrimmer::default();
        for index in 0..1_000 {
            let containers = json!([{"name": format!("main-{index}")}]);
            let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers}});
            trimmer.trim(Object::from(serde_json::from_value::<Pod>(pod).expect("a pod")));
        }
        assert!(trimmer.specs.len() <= MIN_UNUSED_KEPT + 1, "{} unused specs are kept", trimmer.specs.len());
    }

    #[test]
    fn trimmed_list_has_no_spare_capacity() {
        let mut list = Some(vec![1, 2, 3, 4]);
        keep(&mut list, |item| *item == 1);
        assert_eq!(list.as_ref().map(|list| (list.len(), list.capacity())), Some((1, 1)));
        keep(&mut list, |_| false);
        assert_eq!(list, None);
    }

    #[test]
    fn trimmed_node_keeps_labels_taints_and_allocatable() {
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
            "status": {"allocatable": {"cpu": "4"}},
        }))
        .expect("a node");
        assert_eq!(ObjectTrimmer::default().trim(Object::from(node)), Object::from(kept));
    }
}

//! What is kept of an object: in a large cluster there are many, and no decision reads most of what they say.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use reprieve_api::kinds::Object;
use reprieve_api::pod::{ContainerStatus, Pod, PodSpec};

/// The conditions of a pod that a decision reads.
const READ: [&str; 3] = ["PodScheduled", "DisruptionTarget", "PodResizePending"];
/// How many specs that nobody has any more are kept at least.
const FORGOTTEN: usize = 100;
/// What `kubectl apply` remembers: the object once more.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Keeps objects.
#[derive(Default)]
pub struct ObjectTrimmer {
    /// What pods ask for, by a digest of it: most ask for the very same as others do.
    specs: HashMap<u64, Weak<PodSpec>>,
    /// With so many it is time to forget those that no pod has any more.
    full: usize,
}

impl ObjectTrimmer {
    /// The object without what no decision reads, and with what it has in common with others.
    pub fn trim(&mut self, mut object: Object) -> Object {
        let metadata = object.metadata_mut();
        metadata.managed_fields = None;
        if let Some(annotations) = &mut metadata.annotations {
            annotations.remove(APPLIED);
        }
        match &mut object {
            Object::Pod(pod) => {
                let pod = Arc::make_mut(pod);
                slim_pod(pod);
                pod.spec = pod.spec.take().map(|spec| self.share(spec));
            }
            Object::Node(node) => slim_node(Arc::make_mut(node)),
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
        if self.specs.len() > self.full {
            self.specs.retain(|_, spec| spec.strong_count() > 0);
            self.full = 2 * self.specs.len() + FORGOTTEN;
        }
        spec
    }
}

/// Of the fields in which specs often differ: two with one digest may differ all the same.
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

fn slim_pod(pod: &mut Pod) {
    if let Some(spec) = pod.spec.as_mut().map(Arc::make_mut) {
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
        let allocatable = status.allocatable.take();
        let capacity = status.capacity.take().filter(|_| allocatable.is_none());
        *status = NodeStatus { allocatable, capacity, ..NodeStatus::default() };
    }
}

/// Says what the API means by a field that is left out, where a file means something else by it: a ClusterQueue without a selector takes
/// nobody, which Kueue reads as null.
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
        assert_eq!(ObjectTrimmer::default().trim(Object::from(pod)), Object::from(kept));
    }

    #[test]
    fn pods_that_ask_for_the_same_share_what_says_so() {
        let mut slim = ObjectTrimmer::default();
        let mut keep = |name: &str, node: Option<&str>, grace: i64| {
            let spec =
                json!({"nodeName": node, "containers": [{"name": "main"}], "terminationGracePeriodSeconds": grace});
            let pod = json!({"metadata": {"name": name}, "spec": spec});
            match slim.trim(Object::from(serde_json::from_value::<Pod>(pod).expect("a pod"))) {
                Object::Pod(pod) => pod,
                other => panic!("{other:?} is no pod"),
            }
        };
        let shared = |a: &Pod, b: &Pod| match (&a.spec, &b.spec) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let (a, b, other) = (keep("a", None, 30), keep("b", Some("node"), 30), keep("c", None, 60));
        assert!(shared(&a, &b) && !shared(&a, &other));
        assert_eq!((a.node_name.as_deref(), b.node_name.as_deref()), (None, Some("node")));
        assert_eq!(other.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds), Some(60));
        for at in 0..1_000 {
            keep(&format!("one-{at}"), None, 100 + at);
        }
        assert!(shared(&keep("d", None, 60), &keep("e", None, 60)));
        let mut slim = ObjectTrimmer::default();
        for at in 0..1_000 {
            let containers = json!([{"name": format!("main-{at}")}]);
            let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers}});
            slim.trim(Object::from(serde_json::from_value::<Pod>(pod).expect("a pod")));
        }
        assert!(slim.specs.len() <= FORGOTTEN + 1, "{} are kept of which none is used", slim.specs.len());
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
            "status": {"allocatable": {"cpu": "4"}},
        }))
        .expect("a node");
        assert_eq!(ObjectTrimmer::default().trim(Object::from(node)), Object::from(kept));
    }
}

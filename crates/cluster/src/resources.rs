//! Where the API has the objects of each kind, and which kinds a policy reads.

use k8s_openapi::api::core::v1::ObjectReference;
use reprieve_engine::policy::Policy;
use reprieve_objects::object::{Key, Kind};

/// Where the API has the objects of a kind.
pub struct Resource {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    namespaced: bool,
}

/// The ConfigMap with YuniKorn's queues: the only one that is read.
pub const QUEUES: &str = "yunikorn-configs";

/// Where the objects of a kind are.
pub fn resource(kind: Kind) -> Resource {
    let (group, version, plural, name, namespaced) = match kind {
        Kind::Namespace => ("", "v1", "namespaces", "Namespace", false),
        Kind::Node => ("", "v1", "nodes", "Node", false),
        Kind::PriorityClass => ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false),
        Kind::LimitRange => ("", "v1", "limitranges", "LimitRange", true),
        Kind::RuntimeClass => ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false),
        Kind::ConfigMap => ("", "v1", "configmaps", "ConfigMap", true),
        Kind::Budget => ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true),
        Kind::PodGroup => ("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", true),
        Kind::ResourceFlavor => ("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor", false),
        Kind::ClusterQueue => ("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", false),
        Kind::Cohort => ("kueue.x-k8s.io", "v1beta2", "cohorts", "Cohort", false),
        Kind::LocalQueue => ("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue", true),
        Kind::WorkloadPriorityClass => {
            ("kueue.x-k8s.io", "v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", false)
        }
        Kind::Workload => ("kueue.x-k8s.io", "v1beta2", "workloads", "Workload", true),
        Kind::ElasticQuota => ("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota", true),
        Kind::JobGroup => ("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup", true),
        Kind::Job => ("batch", "v1", "jobs", "Job", true),
        Kind::Pod => ("", "v1", "pods", "Pod", true),
    };
    Resource { group, version, plural, kind: name, namespaced }
}

/// The kinds that a scheduler of this policy reads.
pub fn kinds(policy: &Policy) -> Vec<Kind> {
    let mut kinds = vec![Kind::Namespace, Kind::Node, Kind::PriorityClass, Kind::Budget, Kind::Pod];
    kinds.extend_from_slice(own_kinds(policy));
    kinds
}

/// Those of them that only this policy reads.
fn own_kinds(policy: &Policy) -> &'static [Kind] {
    match policy {
        Policy::Kubernetes(_) => &[Kind::PodGroup],
        Policy::YuniKorn => &[Kind::ConfigMap],
        Policy::Koordinator(_) => &[Kind::ElasticQuota, Kind::JobGroup],
        Policy::Kueue(_) => &[
            Kind::ResourceFlavor,
            Kind::ClusterQueue,
            Kind::Cohort,
            Kind::LocalQueue,
            Kind::WorkloadPriorityClass,
            Kind::Workload,
            Kind::Job,
            Kind::LimitRange,
            Kind::RuntimeClass,
        ],
    }
}

impl Resource {
    /// `v1`, or group and version.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of all of them, or of those in a namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("/{root}/{}/namespaces/{namespace}/{}", self.api_version(), self.plural),
            None => format!("/{root}/{}/{}", self.api_version(), self.plural),
        }
    }

    /// A reference to one of them.
    pub fn reference(&self, key: &Key, uid: Option<String>) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version()),
            kind: Some(self.kind.to_owned()),
            name: Some(key.name.name.clone()),
            namespace: self.namespaced.then(|| key.name.namespace.clone()),
            uid,
            ..ObjectReference::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        for (kind, namespace, path) in [
            (Kind::Pod, None, "/api/v1/pods"),
            (Kind::Pod, Some("a"), "/api/v1/namespaces/a/pods"),
            (Kind::Node, Some("a"), "/api/v1/nodes"),
            (Kind::LimitRange, Some("a"), "/api/v1/namespaces/a/limitranges"),
            (Kind::RuntimeClass, Some("a"), "/apis/node.k8s.io/v1/runtimeclasses"),
            (Kind::Workload, Some("a"), "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads"),
            (Kind::JobGroup, None, "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups"),
        ] {
            assert_eq!(resource(kind).path(namespace), path);
        }
    }
}

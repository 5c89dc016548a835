//! The table of all kinds of objects that Reprieve reads. Reading files, watching, recording, shuffling, the RBAC rules and the list in the
//! documents are derived from it. CONTRIBUTING.md describes how to add a kind.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::{DeserializeSeed, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{NamespacedName, pod_group};

/// Passes the table to a macro. `stored` kinds are part of [`crate::object_set::ObjectSet`]; only a scheduler reads `watched` kinds.
///
/// Each row: the kind, the path of its type, its list in `ObjectSet`, then the name, group, version, plural and scope of its API resource,
/// the policy that reads it, and whether a cluster may lack it.
macro_rules! kind_table {
    ($then:ident) => {
        $then! {
            stored {
                Node(k8s_openapi::api::core::v1::Node) nodes:
                    "Node" "" "v1" "nodes" Cluster All Required;
                Namespace(k8s_openapi::api::core::v1::Namespace) namespaces:
                    "Namespace" "" "v1" "namespaces" Cluster All Required;
                PriorityClass(k8s_openapi::api::scheduling::v1::PriorityClass) priority_classes:
                    "PriorityClass" "scheduling.k8s.io" "v1" "priorityclasses" Cluster All Required;
                LimitRange(k8s_openapi::api::core::v1::LimitRange) limit_ranges:
                    "LimitRange" "" "v1" "limitranges" Namespaced Kueue Completes;
                RuntimeClass(k8s_openapi::api::node::v1::RuntimeClass) runtime_classes:
                    "RuntimeClass" "node.k8s.io" "v1" "runtimeclasses" Cluster Kueue Completes;
                PodDisruptionBudget(k8s_openapi::api::policy::v1::PodDisruptionBudget) budgets:
                    "PodDisruptionBudget" "policy" "v1" "poddisruptionbudgets" Namespaced All Required;
                ConfigMap(k8s_openapi::api::core::v1::ConfigMap) config_maps:
                    "ConfigMap" "" "v1" "configmaps" Namespaced YuniKorn Required;
                ElasticQuota(crate::koordinator::ElasticQuota) elastic_quotas:
                    "ElasticQuota" "scheduling.sigs.k8s.io" "v1alpha1" "elasticquotas" Namespaced Koordinator Required;
                KoordinatorPodGroup(crate::koordinator::KoordinatorPodGroup) koordinator_pod_groups:
                    "PodGroup" "scheduling.sigs.k8s.io" "v1alpha1" "podgroups" Namespaced Koordinator Required;
                ResourceFlavor(crate::kueue::ResourceFlavor) resource_flavors:
                    "ResourceFlavor" "kueue.x-k8s.io" "v1beta2" "resourceflavors" Cluster Kueue Required;
                Cohort(crate::kueue::Cohort) cohorts:
                    "Cohort" "kueue.x-k8s.io" "v1beta2" "cohorts" Cluster Kueue Required;
                ClusterQueue(crate::kueue::ClusterQueue) cluster_queues:
                    "ClusterQueue" "kueue.x-k8s.io" "v1beta2" "clusterqueues" Cluster Kueue Required;
                LocalQueue(crate::kueue::LocalQueue) local_queues:
                    "LocalQueue" "kueue.x-k8s.io" "v1beta2" "localqueues" Namespaced Kueue Required;
                WorkloadPriorityClass(crate::kueue::WorkloadPriorityClass) workload_classes:
                    "WorkloadPriorityClass" "kueue.x-k8s.io" "v1beta2" "workloadpriorityclasses" Cluster Kueue Required;
                KueueWorkload(crate::kueue::KueueWorkload) kueue_workloads:
                    "Workload" "kueue.x-k8s.io" "v1beta2" "workloads" Namespaced Kueue Required;
                Workload(crate::workload::Workload) workloads:
                    "Workload" "scheduling.k8s.io" "v1beta1" "workloads" Namespaced AllButKueue Optional;
                PodGroup(k8s_openapi::api::scheduling::v1beta1::PodGroup) pod_groups:
                    "PodGroup" "scheduling.k8s.io" "v1beta1" "podgroups" Namespaced AllButKueue Optional;
                DaemonSet(crate::owners::DaemonSet) daemon_sets:
                    "DaemonSet" "apps" "v1" "daemonsets" Namespaced YuniKorn Required;
                StatefulSet(crate::owners::StatefulSet) stateful_sets:
                    "StatefulSet" "apps" "v1" "statefulsets" Namespaced AllButKueue Optional;
                OwnerJob(crate::owners::OwnerJob) owner_jobs:
                    "Job" "batch" "v1" "jobs" Namespaced AllButKueue Optional;
                JobSet(crate::owners::JobSet) job_sets:
                    "JobSet" "jobset.x-k8s.io" "v1alpha2" "jobsets" Namespaced AllButKueue Optional;
                LeaderWorkerSet(crate::owners::LeaderWorkerSet) leader_worker_sets:
                    "LeaderWorkerSet" "leaderworkerset.x-k8s.io" "v1" "leaderworkersets" Namespaced AllButKueue Optional;
                MpiJob(crate::owners::MpiJob) mpi_jobs:
                    "MPIJob" "kubeflow.org" "v2beta1" "mpijobs" Namespaced AllButKueue Optional;
                RayCluster(crate::owners::RayCluster) ray_clusters:
                    "RayCluster" "ray.io" "v1" "rayclusters" Namespaced AllButKueue Optional;
                TrainJob(crate::owners::TrainJob) train_jobs:
                    "TrainJob" "trainer.kubeflow.org" "v1alpha1" "trainjobs" Namespaced AllButKueue Optional;
                Pod(crate::Pod) pods:
                    "Pod" "" "v1" "pods" Namespaced All Required;
            }
            watched {
                Job(k8s_openapi::api::batch::v1::Job):
                    "Job" "batch" "v1" "jobs" Namespaced Kueue Required;
            }
        }
    };
}
pub(crate) use kind_table;

/// The API resource of a kind, and the policy that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The name of the kind, as in `kind: Pod`.
    pub kind: &'static str,
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version that is requested from a cluster. Files may have any version, and so may clusters if `need` is [`Need::Optional`].
    pub version: &'static str,
    /// The name in API paths.
    pub plural: &'static str,
    /// Whether the objects have a namespace.
    pub scope: Scope,
    /// The policy that reads the kind.
    pub reader: Reader,
    /// Whether a cluster may lack the kind.
    pub need: Need,
}

/// Whether the objects of a kind have a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The objects have no namespace.
    Cluster,
    /// The objects have a namespace.
    Namespaced,
}

macro_rules! readers {
    ($($(#[$comment:meta])+ $name:ident,)+) => {
        /// The policy that reads a kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reader {
            $($(#[$comment])+ $name,)+
        }

        impl Reader {
            /// All readers.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}
readers! {
    /// Every policy.
    All,
    /// The policies that choose pods as victims, and so whole groups: Kubernetes, YuniKorn and Koordinator.
    AllButKueue,
    /// Only Kubernetes.
    Kubernetes,
    /// Only YuniKorn.
    YuniKorn,
    /// Only Koordinator.
    Koordinator,
    /// Only Kueue.
    Kueue,
}

impl Reader {
    /// The name of the policy; `None` for several policies.
    pub const fn policy(self) -> Option<&'static str> {
        match self {
            Self::All | Self::AllButKueue => None,
            Self::Kubernetes => Some("Kubernetes"),
            Self::YuniKorn => Some("YuniKorn"),
            Self::Koordinator => Some("Koordinator"),
            Self::Kueue => Some("Kueue"),
        }
    }

    /// Whether a policy, given as the reader that stands for it alone, is among these policies.
    pub fn includes(self, policy: Self) -> bool {
        match self {
            Self::All => true,
            Self::AllButKueue => policy != Self::Kueue,
            Self::Kubernetes | Self::YuniKorn | Self::Koordinator | Self::Kueue => self == policy,
        }
    }
}

/// Whether a cluster may lack a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The policy cannot work without it.
    Required,
    /// A cluster that does not serve the kind has no such objects.
    Optional,
    /// The kind only completes pods that do not exist yet: those of workloads, and under every policy those of `plan --submit`. The policy
    /// works without the kind, and without the permission to read it.
    Completes,
}

macro_rules! kinds {
    (stored { $($stored:tt)+ } watched { $($watched:tt)+ }) => {
        kinds!(@all $($stored)+ $($watched)+);
        kinds!(@stored $($stored)+);
    };
    (@stored $($kind:ident($type:ty) $list:ident: $name:literal $group:literal $($rest:literal)+ $($how:ident)+;)+) => {
        impl Kind {
            /// The kinds that [`crate::object_set::ObjectSet`] stores.
            pub const STORED: &[Self] = &[$(Self::$kind,)+];

            /// The stored kind of this group and name, in any version.
            pub fn stored(group: &str, name: &str) -> Option<Self> {
                match (group, name) {
                    $(($group, $name) => Some(Self::$kind),)+
                    _ => None,
                }
            }
        }
    };
    (@all $($kind:ident($type:ty) $($list:ident)?:
        $name:literal $group:literal $version:literal $plural:literal $scope:ident $reader:ident $need:ident;)+) => {
        /// A kind of object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($kind,)+
        }

        impl Kind {
            /// All kinds, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// Returns the API resource of the kind.
            pub const fn resource(self) -> Resource {
                match self {
                    $(Self::$kind => Resource {
                        kind: $name, group: $group, version: $version, plural: $plural,
                        scope: Scope::$scope, reader: Reader::$reader, need: Need::$need,
                    },)+
                }
            }
        }

        /// An object of any kind.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Object {
            $($kind(Arc<$type>),)+
        }

        impl Object {
            /// Returns the kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind,)+
                }
            }

            /// Returns the metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self {
                    $(Self::$kind(object) => &object.metadata,)+
                }
            }

            /// Returns the metadata for changes.
            pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $(Self::$kind(object) => &mut Arc::make_mut(object).metadata,)+
                }
            }
        }

        impl Serialize for Object {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$kind(object) => object.as_ref().serialize(serializer),)+
                }
            }
        }

        /// Decodes an object of this kind.
        impl<'de> DeserializeSeed<'de> for Kind {
            type Value = Object;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
                if self == Self::PodGroup {
                    let mut group = serde_json::Value::deserialize(deserializer)?;
                    pod_group::convert(&mut group);
                    return serde_json::from_value(group).map(|group| Object::PodGroup(Arc::new(group))).map_err(D::Error::custom);
                }
                match self {
                    $(Self::$kind => <$type>::deserialize(deserializer).map(Object::from),)+
                }
            }
        }

        $(
            impl OfKind for $type {
                const KIND: Kind = Kind::$kind;

                fn metadata(&self) -> &ObjectMeta {
                    &self.metadata
                }
            }

            impl From<$type> for Object {
                fn from(object: $type) -> Self {
                    Self::$kind(Arc::new(object))
                }
            }

            impl From<Arc<$type>> for Object {
                fn from(object: Arc<$type>) -> Self {
                    Self::$kind(object)
                }
            }
        )+
    };
}
kind_table!(kinds);

impl Kind {
    /// Whether objects of the kind define the queues of a policy.
    pub fn defines_queues(self) -> bool {
        matches!(self, Self::ConfigMap | Self::ElasticQuota | Self::ClusterQueue)
    }
}

impl Resource {
    /// Returns the `apiVersion`: the version, with the group unless it is the core group.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the API path of all objects of the kind, or of those in a namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        self.path_in(self.version, namespace)
    }

    /// Returns the API path in another version.
    pub fn path_in(&self, version: &str, namespace: Option<&str>) -> String {
        let root = match self.group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace.filter(|_| self.scope == Scope::Namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// Returns a reference to an object of the kind, for events.
    pub fn reference(&self, key: &ObjectKey, uid: Option<String>) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version()),
            kind: Some(self.kind.to_owned()),
            name: Some(key.name.name.clone()),
            namespace: (self.scope == Scope::Namespaced).then(|| key.name.namespace.clone()),
            uid,
            ..ObjectReference::default()
        }
    }
}

/// An object of a kind of the table.
pub trait OfKind {
    /// The kind.
    const KIND: Kind;
    /// Returns the metadata.
    fn metadata(&self) -> &ObjectMeta;
}

/// Identifies an object: kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The kind.
    pub kind: Kind,
    /// The namespace and name.
    pub name: NamespacedName,
}

impl ObjectKey {
    /// Returns the key with these parts.
    pub fn new(kind: Kind, name: NamespacedName) -> Self {
        Self { kind, name }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.name)
    }
}

impl Object {
    /// Decodes an object from JSON.
    pub fn from_json(kind: Kind, text: &str) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(text);
        let object = kind.deserialize(&mut json)?;
        json.end().map(|()| object)
    }

    /// Returns the key of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.kind(), NamespacedName::from_meta(self.metadata()))
    }

    /// Returns the resource version as a number, which grows with each change; 0 if there is none. Kubernetes allows clients to compare the
    /// resource versions of one kind since 1.35.
    pub fn version(&self) -> u64 {
        self.metadata().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
    }

    /// Returns the uid; a recreated object with the same name has another one.
    pub fn uid(&self) -> &str {
        self.metadata().uid.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        for (kind, namespace, path) in [
            (Kind::Pod, None, "/api/v1/pods"),
            (Kind::Pod, Some("a"), "/api/v1/namespaces/a/pods"),
            (Kind::Node, Some("a"), "/api/v1/nodes"),
            (Kind::LimitRange, Some("a"), "/api/v1/namespaces/a/limitranges"),
            (Kind::RuntimeClass, Some("a"), "/apis/node.k8s.io/v1/runtimeclasses"),
            (Kind::KueueWorkload, Some("a"), "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/workloads"),
            (Kind::Workload, None, "/apis/scheduling.k8s.io/v1beta1/workloads"),
            (Kind::KoordinatorPodGroup, None, "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups"),
        ] {
            assert_eq!(kind.resource().path(namespace), path);
        }
    }

    #[test]
    fn no_two_kinds_share_a_name_in_a_group() {
        for &kind in Kind::STORED {
            let resource = kind.resource();
            assert_eq!(Kind::stored(resource.group, resource.kind), Some(kind));
        }
        assert_eq!(Kind::stored("batch", "Job"), None, "Jobs of files are submitted, not read");
    }
}

//! One object of any kind that a scheduler reads, and what it is called.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Node};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer};

use crate::koordinator::{ElasticQuota, JobGroup};
use crate::kueue::{ClusterQueue, Cohort, KueueWorkload, LocalQueue, ResourceFlavor, WorkloadPriorityClass};
use crate::meta::FullName;
use crate::pod::Pod;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($type:ty)),+ $(,)?) => {
        /// What sort of object it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),+];
        }

        /// An object as the API has it.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object {
            $($(#[$doc])* $kind(Arc<$type>),)+
        }

        impl Object {
            /// From its text.
            pub fn from_json(kind: Kind, text: &str) -> Result<Self, serde_json::Error> {
                let mut json = serde_json::Deserializer::from_str(text);
                let object = kind.deserialize(&mut json)?;
                json.end().map(|()| object)
            }

            /// What sort of object it is.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind,)+
                }
            }

            /// Its metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self {
                    $(Self::$kind(object) => &object.metadata,)+
                }
            }

            /// Its metadata, to be changed.
            pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $(Self::$kind(object) => &mut Arc::make_mut(object).metadata,)+
                }
            }
        }

        /// Reads an object of this kind.
        impl<'de> DeserializeSeed<'de> for Kind {
            type Value = Object;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
                match self {
                    $(Self::$kind => <$type>::deserialize(deserializer).map(Object::from),)+
                }
            }
        }

        $(
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

kinds! {
    /// `v1` Namespace.
    Namespace(Namespace),
    /// `v1` Node.
    Node(Node),
    /// `scheduling.k8s.io/v1` PriorityClass.
    PriorityClass(PriorityClass),
    /// `v1` LimitRange.
    LimitRange(LimitRange),
    /// `node.k8s.io/v1` RuntimeClass.
    RuntimeClass(RuntimeClass),
    /// `v1` ConfigMap.
    ConfigMap(ConfigMap),
    /// `policy/v1` PodDisruptionBudget.
    Budget(PodDisruptionBudget),
    /// `scheduling.k8s.io/v1beta1` PodGroup.
    PodGroup(PodGroup),
    /// `kueue.x-k8s.io` ResourceFlavor.
    ResourceFlavor(ResourceFlavor),
    /// `kueue.x-k8s.io` ClusterQueue.
    ClusterQueue(ClusterQueue),
    /// `kueue.x-k8s.io` Cohort.
    Cohort(Cohort),
    /// `kueue.x-k8s.io` LocalQueue.
    LocalQueue(LocalQueue),
    /// `kueue.x-k8s.io` WorkloadPriorityClass.
    WorkloadPriorityClass(WorkloadPriorityClass),
    /// `kueue.x-k8s.io` Workload.
    Workload(KueueWorkload),
    /// `scheduling.sigs.k8s.io` ElasticQuota.
    ElasticQuota(ElasticQuota),
    /// `scheduling.sigs.k8s.io` PodGroup.
    JobGroup(JobGroup),
    /// `batch/v1` Job.
    Job(Job),
    /// `v1` Pod.
    Pod(Pod),
}

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// What sort of object it is.
    pub kind: Kind,
    /// Its namespace and name.
    pub name: FullName,
}

impl Key {
    /// From its parts.
    pub fn new(kind: Kind, name: FullName) -> Self {
        Self { kind, name }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.name)
    }
}

impl Object {
    /// What it is called.
    pub fn key(&self) -> Key {
        Key::new(self.kind(), FullName::of(self.metadata()))
    }

    /// Its version: later ones are larger. 0 where it has none.
    pub fn version(&self) -> u64 {
        self.metadata().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
    }

    /// What sets it apart from others of its name.
    pub fn uid(&self) -> &str {
        self.metadata().uid.as_deref().unwrap_or_default()
    }
}

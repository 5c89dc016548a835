//! What waits to be scheduled, by name.

use std::fmt;

use reprieve_api::{Kind, NamespacedName, ObjectKey, Pod, group_of, job_of};
use reprieve_engine::policy::Policy;

/// A unit by name: a pod alone, or all that are placed with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitRef {
    /// A pod alone.
    Pod(NamespacedName),
    /// A PodGroup of Kubernetes.
    Group(NamespacedName),
    /// A job of Koordinator.
    Job(NamespacedName),
    /// A workload of Kueue that waits for quota.
    Workload(NamespacedName),
    /// A `batch/v1` Job whose workload is to be kept in step with it.
    BatchJob(NamespacedName),
}

impl UnitRef {
    /// The unit that a pod is placed with.
    pub fn of(pod: &Pod, policy: &Policy) -> Self {
        let alone = || Self::Pod(NamespacedName::from_meta(&pod.metadata));
        match policy {
            Policy::Kubernetes(_) => group_of(pod).map_or_else(alone, Self::Group),
            Policy::Koordinator(_) => job_of(pod).map_or_else(alone, Self::Job),
            Policy::YuniKorn | Policy::Kueue(_) => alone(),
        }
    }

    /// The object that it is.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Pod(name) => ObjectKey::new(Kind::Pod, name.clone()),
            Self::Group(name) => ObjectKey::new(Kind::PodGroup, name.clone()),
            Self::Job(name) => ObjectKey::new(Kind::KoordinatorPodGroup, name.clone()),
            Self::Workload(name) => ObjectKey::new(Kind::KueueWorkload, name.clone()),
            Self::BatchJob(name) => ObjectKey::new(Kind::Job, name.clone()),
        }
    }

    /// Reads what [`fmt::Display`] writes: `KIND NAMESPACE/NAME`. This is a protocol: the annotation `reprieve.dev/preempted-for` of a
    /// victim has this form, and a scheduler reads it that another one, perhaps of another version, wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(' ')?;
        let (namespace, name) = name.split_once('/')?;
        let name = NamespacedName::new(namespace, name);
        match kind {
            "Pod" => Some(Self::Pod(name)),
            "PodGroup" => Some(Self::Group(name)),
            "Job" => Some(Self::Job(name)),
            "Workload" => Some(Self::Workload(name)),
            "BatchJob" => Some(Self::BatchJob(name)),
            _ => None,
        }
    }
}

impl fmt::Display for UnitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(name) => write!(f, "Pod {name}"),
            Self::Group(name) => write!(f, "PodGroup {name}"),
            Self::Job(name) => write!(f, "Job {name}"),
            Self::Workload(name) => write!(f, "Workload {name}"),
            Self::BatchJob(name) => write!(f, "BatchJob {name}"),
        }
    }
}

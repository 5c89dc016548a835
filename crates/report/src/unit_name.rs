//! What waits to be scheduled, by name.

use std::fmt;

use reprieve_api::{FullName, Key, Kind, Pod, group_of, job_of};
use reprieve_engine::policy::Policy;

/// A unit by name: a pod alone, or all that are placed with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitName {
    /// A pod alone.
    Pod(FullName),
    /// A PodGroup of Kubernetes.
    Group(FullName),
    /// A job of Koordinator.
    Job(FullName),
    /// A workload of Kueue that waits for quota.
    Workload(FullName),
    /// A `batch/v1` Job whose workload is to be kept in step with it.
    BatchJob(FullName),
}

impl UnitName {
    /// The unit that a pod is placed with.
    pub fn of(pod: &Pod, policy: &Policy) -> Self {
        let alone = || Self::Pod(FullName::of(&pod.metadata));
        match policy {
            Policy::Kubernetes(_) => group_of(pod).map_or_else(alone, Self::Group),
            Policy::Koordinator(_) => job_of(pod).map_or_else(alone, Self::Job),
            Policy::YuniKorn | Policy::Kueue(_) => alone(),
        }
    }

    /// The object that it is.
    pub fn key(&self) -> Key {
        match self {
            Self::Pod(name) => Key::new(Kind::Pod, name.clone()),
            Self::Group(name) => Key::new(Kind::PodGroup, name.clone()),
            Self::Job(name) => Key::new(Kind::JobGroup, name.clone()),
            Self::Workload(name) => Key::new(Kind::KueueWorkload, name.clone()),
            Self::BatchJob(name) => Key::new(Kind::Job, name.clone()),
        }
    }

    /// Reads what [`fmt::Display`] writes: `KIND NAMESPACE/NAME`. This is a protocol: the annotation `reprieve.dev/preempted-for` of a
    /// victim has this form, and a scheduler reads it that another one, perhaps of another version, wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(' ')?;
        let (namespace, name) = name.split_once('/')?;
        let name = FullName::new(namespace, name);
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

impl fmt::Display for UnitName {
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

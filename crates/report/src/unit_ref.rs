//! References to pending units by kind and name.

use std::fmt;

use reprieve_api::{Kind, NamespacedName, ObjectKey, Pod, group_of, job_of};
use reprieve_engine::Policy;

/// A unit by name: a single pod, or the pods that are placed together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitRef {
    /// A pod that belongs to no group.
    Pod(NamespacedName),
    /// A Kubernetes PodGroup.
    Group(NamespacedName),
    /// A Koordinator job.
    Job(NamespacedName),
    /// A Kueue Workload.
    Workload(NamespacedName),
    /// A `batch/v1` Job whose Workload the scheduler keeps in sync.
    BatchJob(NamespacedName),
}

impl UnitRef {
    /// The unit that a pod belongs to under a policy.
    pub fn of(pod: &Pod, policy: &Policy) -> Self {
        let alone = || Self::Pod(NamespacedName::from_meta(&pod.metadata));
        match policy {
            Policy::Kubernetes(_) => group_of(pod).map_or_else(alone, Self::Group),
            Policy::Koordinator(_) => job_of(pod).map_or_else(alone, Self::Job),
            Policy::YuniKorn(_) | Policy::Kueue(_) => alone(),
        }
    }

    /// The kind and the name of the object.
    pub fn key(&self) -> ObjectKey {
        let (kind, _, name) = self.parts();
        ObjectKey::new(kind, name.clone())
    }

    /// The kind in text.
    pub fn kind_name(&self) -> &'static str {
        self.parts().1
    }

    /// The kind, its name in text, and the name of the object. In text a Koordinator job is `Job`, as in the conditions and labels of its
    /// victims; a `batch/v1` Job, which is never a preemptor, is `BatchJob`.
    fn parts(&self) -> (Kind, &'static str, &NamespacedName) {
        match self {
            Self::Pod(name) => (Kind::Pod, "Pod", name),
            Self::Group(name) => (Kind::PodGroup, "PodGroup", name),
            Self::Job(name) => (Kind::KoordinatorPodGroup, "Job", name),
            Self::Workload(name) => (Kind::KueueWorkload, "Workload", name),
            Self::BatchJob(name) => (Kind::Job, "BatchJob", name),
        }
    }

    /// Parses the form that [`fmt::Display`] writes, `KIND NAMESPACE/NAME`. The message of a victim's condition `reprieve.dev/PreemptedFor`
    /// has this form.
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
        let (_, kind, name) = self.parts();
        write!(f, "{kind} {name}")
    }
}

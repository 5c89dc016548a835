//! Finds the scheduler of each gang. Members of a gang that name another scheduler are not placed with it.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::Policy;

use reprieve_api::{Kind, NamespacedName, ObjectKey, ObjectSet, Pod, group_of, job_of};

/// The default `schedulerName` of Reprieve.
pub const DEFAULT_SCHEDULER_NAME: &str = "reprieve";
/// The scheduler of pods without `schedulerName`.
const UNNAMED: &str = "default-scheduler";

/// The scheduler for which a decision is made.
#[derive(Clone, Debug)]
pub enum Schedulers {
    /// The scheduler of this name.
    Named(String),
    /// No name is given: the scheduler of each gang.
    ByGang(BTreeMap<NamespacedName, String>),
}

impl Schedulers {
    /// Without a name, the scheduler of a gang is [`DEFAULT_SCHEDULER_NAME`] if a pending member names it, else `default-scheduler` if a
    /// pending member names that, else the first by name.
    pub fn new(objects: &ObjectSet, policy: &Policy, name: Option<&str>) -> Self {
        if let Some(name) = name {
            return Self::Named(name.to_owned());
        }
        let mut named: BTreeMap<NamespacedName, BTreeSet<&str>> = BTreeMap::new();
        for pod in objects.pods.iter().map(|pod| &*pod.object).filter(|pod| is_pending(pod)) {
            if let Some(ObjectKey { name: gang, .. }) = gang_of(pod, policy) {
                named.entry(gang).or_default().insert(scheduler_of(pod));
            }
        }
        let choose = |names: BTreeSet<&str>| {
            let first = names.first().copied().unwrap_or_default();
            [DEFAULT_SCHEDULER_NAME, UNNAMED].into_iter().find(|name| names.contains(name)).unwrap_or(first).to_owned()
        };
        Self::ByGang(named.into_iter().map(|(gang, names)| (gang, choose(names))).collect())
    }

    /// Whether a pod is a member of a gang and names another scheduler.
    pub fn names_other_scheduler(&self, pod: &Pod, policy: &Policy) -> bool {
        let own = scheduler_of(pod);
        gang_of(pod, policy).is_some_and(|ObjectKey { name: gang, .. }| match self {
            Self::Named(name) => name != own,
            Self::ByGang(names) => names.get(&gang).is_some_and(|name| name != own),
        })
    }

    /// Whether a pod names another scheduler than the one that decides. If no name is given, no pod does.
    pub fn is_foreign(&self, pod: &Pod) -> bool {
        matches!(self, Self::Named(name) if name != scheduler_of(pod))
    }

    /// Returns the name of the scheduler that decides.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::ByGang(_) => DEFAULT_SCHEDULER_NAME,
        }
    }
}

/// Returns the group or job as part of which the policy places a pod.
pub fn gang_of(pod: &Pod, policy: &Policy) -> Option<ObjectKey> {
    match policy {
        Policy::Kubernetes(_) => Some(ObjectKey::new(Kind::PodGroup, group_of(pod)?)),
        Policy::Koordinator(_) => Some(ObjectKey::new(Kind::KoordinatorPodGroup, job_of(pod)?)),
        Policy::YuniKorn(_) | Policy::Kueue(_) => None,
    }
}

fn is_pending(pod: &Pod) -> bool {
    pod.node_name.as_ref().is_none_or(String::is_empty) && pod.metadata.deletion_timestamp.is_none()
}

fn scheduler_of(pod: &Pod) -> &str {
    let name = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
    name.filter(|name| !name.is_empty()).unwrap_or(UNNAMED)
}

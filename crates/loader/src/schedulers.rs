//! Which scheduler is to place a pod: members of a gang that name another scheduler are not placed with it.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::policy::Policy;

use reprieve_api::{NamespacedName, ObjectSet, Pod, group_of, job_of};

/// The name that pods give Reprieve's scheduler unless it is configured otherwise.
pub const DEFAULT_SCHEDULER_NAME: &str = "reprieve";
/// The scheduler of pods that name none.
const UNNAMED: &str = "default-scheduler";

/// Whose pods a decision places.
#[derive(Clone, Debug)]
pub enum Schedulers {
    /// Those that name this scheduler.
    Named(String),
    /// Those of the scheduler that a gang belongs to, where it is not said which scheduler decides.
    ByGang(BTreeMap<NamespacedName, String>),
}

impl Schedulers {
    /// The scheduler of this name, or, where none is given, that of each gang: [`DEFAULT_SCHEDULER_NAME`] if a pending member names it,
    /// else `default-scheduler` if one does, else the first by name.
    pub fn new(objects: &ObjectSet, policy: &Policy, name: Option<&str>) -> Self {
        if let Some(name) = name {
            return Self::Named(name.to_owned());
        }
        let mut named: BTreeMap<NamespacedName, BTreeSet<&str>> = BTreeMap::new();
        for pod in objects.pods.iter().map(|pod| &*pod.object).filter(|pod| is_pending(pod)) {
            if let Some(gang) = gang_of(pod, policy) {
                named.entry(gang).or_default().insert(scheduler_of(pod));
            }
        }
        let choose = |names: BTreeSet<&str>| {
            let first = names.first().copied().unwrap_or_default();
            [DEFAULT_SCHEDULER_NAME, UNNAMED].into_iter().find(|name| names.contains(name)).unwrap_or(first).to_owned()
        };
        Self::ByGang(named.into_iter().map(|(gang, names)| (gang, choose(names))).collect())
    }

    /// Whether a pod is a member of a gang, and names another scheduler.
    pub fn names_other_scheduler(&self, pod: &Pod, policy: &Policy) -> bool {
        let own = scheduler_of(pod);
        gang_of(pod, policy).is_some_and(|gang| match self {
            Self::Named(name) => name != own,
            Self::ByGang(names) => names.get(&gang).is_some_and(|name| name != own),
        })
    }

    /// The name of the scheduler that decides.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::ByGang(_) => DEFAULT_SCHEDULER_NAME,
        }
    }
}

/// The group or job that the policy places a pod with.
fn gang_of(pod: &Pod, policy: &Policy) -> Option<NamespacedName> {
    match policy {
        Policy::Kubernetes(_) => group_of(pod),
        Policy::Koordinator(_) => job_of(pod),
        Policy::YuniKorn | Policy::Kueue(_) => None,
    }
}

fn is_pending(pod: &Pod) -> bool {
    pod.node_name.as_ref().is_none_or(String::is_empty) && pod.metadata.deletion_timestamp.is_none()
}

fn scheduler_of(pod: &Pod) -> &str {
    let name = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
    name.filter(|name| !name.is_empty()).unwrap_or(UNNAMED)
}

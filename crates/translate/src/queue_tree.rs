//! The queues of a cluster independent of any policy: a tree in which each queue has a guarantee and a limit. `translation` reads it from
//! objects, `simulator` from a scenario.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::NamespacedName;
use reprieve_api::koordinator::QUOTA;
use reprieve_engine::Policy;
use reprieve_loader::QueueSpec;

use crate::kueue_objects::ROOT;

/// The label of a pod that names its LocalQueue.
pub(crate) const LOCAL_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The queues of a cluster, and which of them each pod uses.
#[derive(Clone, Debug, Default)]
pub struct NeutralQueues {
    /// INVARIANT: no two have the same name, and no queue is above itself.
    pub(crate) queues: Vec<QueueSpec>,
    /// The index of each pod's queue.
    pub(crate) of_pod: BTreeMap<NamespacedName, usize>,
}

impl FromIterator<QueueSpec> for NeutralQueues {
    fn from_iter<I: IntoIterator<Item = QueueSpec>>(queues: I) -> Self {
        Self { queues: queues.into_iter().collect(), of_pod: BTreeMap::new() }
    }
}

impl NeutralQueues {
    /// Whether there are no queues.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Finds a queue by name.
    pub fn get(&self, name: &str) -> Option<&QueueSpec> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// Returns the label by which a pod names its queue under a policy. A name that is a full path already stays.
    pub fn label(&self, name: &str, policy: &Policy) -> Option<(String, String)> {
        let (key, value) = match policy {
            Policy::Kubernetes(_) => return None,
            Policy::YuniKorn(_) => ("queue", self.path(name)),
            Policy::Koordinator(_) => (QUOTA, name.to_owned()),
            Policy::Kueue(_) => (LOCAL_QUEUE, name.to_owned()),
        };
        Some((key.to_owned(), value))
    }

    fn path(&self, name: &str) -> String {
        if name.starts_with("root.") {
            return name.to_owned();
        }
        let parent = self.get(name).and_then(|queue| queue.parent);
        format!("{}.{name}", parent.map_or_else(|| "root".to_owned(), |parent| self.path(&self.queues[parent].name)))
    }

    pub(crate) fn queue_of(&self, pod: &NamespacedName) -> Option<&str> {
        self.of_pod.get(pod).map(|&index| self.queues[index].name.as_str())
    }

    pub(crate) fn children(&self, of: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        (0..self.queues.len()).filter(move |&index| self.queues[index].parent == of)
    }

    pub(crate) fn has_children(&self, index: usize) -> bool {
        self.children(Some(index)).next().is_some()
    }

    /// Returns the resources for which any queue has a guarantee or a limit.
    pub(crate) fn resources(&self) -> BTreeSet<&str> {
        let names = self.queues.iter().flat_map(|queue| queue.guarantee.keys().chain(queue.limit.keys()));
        names.map(String::as_str).collect()
    }

    pub(crate) fn guarantee(&self, index: usize, resource: &str) -> i64 {
        self.queues[index].guarantee.get(resource).copied().unwrap_or(0)
    }

    /// Returns the sum of the children's guarantees.
    pub(crate) fn guaranteed_below(&self, index: Option<usize>, resource: &str) -> i64 {
        self.children(index).fold(0, |sum: i64, child| sum.saturating_add(self.guarantee(child, resource)))
    }

    /// Raises the guarantee of each queue to at least the sum of its children's.
    pub(crate) fn with_guarantees_of_children(&self) -> Self {
        let mut raised = self.clone();
        for index in self.children(None) {
            raised.raise_guarantees(index, &self.resources());
        }
        raised
    }

    fn raise_guarantees(&mut self, index: usize, resources: &BTreeSet<&str>) {
        let children: Vec<usize> = self.children(Some(index)).collect();
        for child in children {
            self.raise_guarantees(child, resources);
        }
        for &resource in resources {
            let below = self.guaranteed_below(Some(index), resource);
            if below > self.guarantee(index, resource) {
                self.queues[index].guarantee.insert(resource.to_owned(), below);
            }
        }
    }
}

/// Adds a leaf queue `PARENT-own` without a guarantee below each parent that pods use, because not every policy allows pods in a parent. Returns the
/// index of the leaf by that of its parent.
pub(crate) fn add_leaf_queues(queues: &mut Vec<QueueSpec>, used: BTreeSet<usize>) -> BTreeMap<usize, usize> {
    let parents: BTreeSet<usize> = queues.iter().filter_map(|queue| queue.parent).collect();
    let mut leaves = BTreeMap::new();
    for &parent in parents.intersection(&used) {
        leaves.insert(parent, queues.len());
        let name = format!("{}-own", queues[parent].name);
        queues.push(QueueSpec { name, parent: Some(parent), ..QueueSpec::default() });
    }
    leaves
}

/// Gives queues names that every policy accepts: the last part of the path, lowercase, with a number if another queue has that name.
pub(crate) fn rename(queues: &mut [QueueSpec]) {
    let mut taken: BTreeSet<String> = BTreeSet::from(["root".to_owned(), ROOT.to_owned()]);
    for queue in queues {
        let last = queue.name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let numbered = (2..).map(|n| format!("{plain}-{n}"));
        let name = std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name));
        queue.name = name.expect("one of infinitely many names is free");
        taken.insert(queue.name.clone());
    }
}

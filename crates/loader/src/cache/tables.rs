//! The tables of a [`super::SnapshotCache`]: what a refresh builds, and what changes of single pods update.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use reprieve_api::NamespacedName;
use reprieve_engine::{ApplicationId, NodeId, PodId, Timestamp, WorkloadId};

use crate::shape::Interners;
use crate::{Loaded, SnapshotBuilder, nth_rank};

/// The largest distance of a new rank from the rank before it. Names often arrive in order, and the rest of the gap is for later names.
const MAX_RANK_STEP: u64 = 1 << 16;

pub(super) struct Tables {
    pub(super) loaded: Loaded,
    pub(super) builder: SnapshotBuilder,
    /// Ids of deleted pods.
    pub(super) free_pods: Vec<PodId>,
    /// Ids of deleted workloads.
    pub(super) free_workloads: Vec<WorkloadId>,
    /// The pods of each application, the oldest first.
    applications: BTreeMap<ApplicationId, BTreeSet<(Timestamp, u64, PodId)>>,
    /// The numbers of resources, topologies, namespaces and selected label keys at the last rebuild.
    sizes: [usize; 4],
}

impl Tables {
    pub(super) fn new((loaded, builder): (Loaded, SnapshotBuilder)) -> Self {
        let (free_pods, free_workloads, applications) = (Vec::new(), Vec::new(), BTreeMap::new());
        let sizes = sizes(&builder);
        let mut tables = Self { loaded, builder, free_pods, free_workloads, applications, sizes };
        tables.index_applications();
        tables
    }

    /// Whether objects since the last rebuild have a resource, topology, namespace or label key for which the tables have no column.
    pub(super) fn are_too_small(&self) -> bool {
        sizes(&self.builder) != self.sizes
    }

    /// Adds the texts of objects since the last rebuild to the names.
    pub(super) fn append_new_texts(&mut self) {
        let known = &mut self.loaded.names.texts;
        known.extend_from_slice(&self.builder.interners.texts.names()[known.len()..]);
    }

    /// Notes the node that a pod blocks, because its requests cannot be read.
    pub(super) fn set_blocked(&mut self, name: &NamespacedName, node: Option<NodeId>) {
        let Self { loaded, builder, .. } = self;
        let is_new = |known: NodeId| Some(known) != node;
        let mut changed: Vec<NodeId> = Vec::new();
        builder.blocked.retain(|&known, pods| {
            if is_new(known) && pods.remove(name) {
                changed.push(known);
            }
            !pods.is_empty()
        });
        if let Some(node) = node {
            builder.blocked.entry(node).or_default().insert(name.clone());
            changed.push(node);
        }
        for node in changed {
            loaded.snapshot.set_allocatable(node, &builder.offered(node));
            match builder.blocked.get(&node) {
                Some(pods) => loaded.blocked.insert(node, pods.clone()),
                None => loaded.blocked.remove(&node),
            };
        }
    }

    /// Removes a pod from the tables.
    pub(super) fn remove_pod(&mut self, name: &NamespacedName) {
        if let Some(id) = self.loaded.names.pods.ids.remove(name) {
            self.remove_from_application(id);
            self.loaded.snapshot.remove_pod(id);
            self.free_pods.push(id);
        }
    }

    /// Returns the rank of a pod: its own, or one between those of its neighbours by name. If there is none left, all pods get new ranks.
    pub(super) fn rank(&mut self, name: &NamespacedName) -> u64 {
        let Loaded { snapshot, names, .. } = &mut self.loaded;
        if let Some(&id) = names.pods.ids.get(name) {
            return snapshot.pod(id).rank;
        }
        if let Some(rank) = rank_between(&names.pods.ids, name, |id| snapshot.pod(*id).rank) {
            return rank;
        }
        snapshot.set_ranks(names.pods.ids.values().enumerate().map(|(index, id)| (*id, nth_rank(index))));
        self.index_applications();
        let Loaded { snapshot, names, .. } = &self.loaded;
        rank_between(&names.pods.ids, name, |id| snapshot.pod(*id).rank).expect("new ranks have gaps")
    }

    fn index_applications(&mut self) {
        self.applications.clear();
        for &id in self.loaded.names.pods.ids.values() {
            let pod = self.loaded.snapshot.pod(id);
            if let Some(application) = pod.application {
                self.applications.entry(application).or_default().insert((pod.created, pod.rank, id));
            }
        }
    }

    pub(super) fn add_to_application(&mut self, id: PodId) {
        let pod = self.loaded.snapshot.pod(id);
        if let Some(application) = pod.application {
            let key = (pod.created, pod.rank, id);
            let pods = self.applications.entry(application).or_default();
            let first = pods.first().map(|(_, _, id)| *id);
            pods.insert(key);
            if pods.first() == Some(&key) {
                if let Some(first) = first {
                    self.loaded.snapshot.set_originator(first, false);
                }
                self.loaded.snapshot.set_originator(id, true);
            }
        }
    }

    pub(super) fn remove_from_application(&mut self, id: PodId) {
        let pod = self.loaded.snapshot.pod(id);
        if let Some(application) = pod.application {
            let Some(pods) = self.applications.get_mut(&application) else { return };
            pods.remove(&(pod.created, pod.rank, id));
            match pods.first() {
                Some((_, _, first)) => self.loaded.snapshot.set_originator(*first, true),
                None => {
                    self.applications.remove(&application);
                }
            }
        }
    }
}

/// Returns a rank between those of a name's neighbours; `None` if there is no number between them.
pub(super) fn rank_between<K: Ord, V>(ranked: &BTreeMap<K, V>, name: &K, rank: impl Fn(&V) -> u64) -> Option<u64> {
    let before = (Bound::Unbounded, Bound::Excluded(name));
    let before = ranked.range::<K, _>(before).next_back().map_or(0, |(_, value)| rank(value));
    let after = (Bound::Included(name), Bound::Unbounded);
    let after = ranked.range::<K, _>(after).next().map_or(before + nth_rank(1), |(_, value)| rank(value));
    let rank = before + ((after - before) / 2).min(MAX_RANK_STEP);
    (rank > before).then_some(rank)
}

fn sizes(builder: &SnapshotBuilder) -> [usize; 4] {
    let Interners { resources, topologies, namespaces, selected_keys, .. } = &builder.interners;
    [resources.names().len(), topologies.names().len(), namespaces.names().len(), selected_keys.len()]
}

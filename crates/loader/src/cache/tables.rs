//! The tables of a snapshot that lives on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use reprieve_api::NamespacedName;
use reprieve_engine::{ApplicationId, PodId, Timestamp, WorkloadId};

use crate::shape::Interners;
use crate::{Loaded, SnapshotBuilder, nth_rank};

/// How far behind its neighbour a name is put at most. Names often come in order: the rest is for those who follow.
const MAX_RANK_STEP: u64 = 1 << 16;

/// What a refresh makes anew, and changes of single objects keep up to date.
pub(super) struct Tables {
    pub(super) loaded: Loaded,
    pub(super) builder: SnapshotBuilder,
    /// Ids of pods that are gone.
    pub(super) free_pods: Vec<PodId>,
    /// Ids of workloads that are gone.
    pub(super) free_workloads: Vec<WorkloadId>,
    /// By application: its pods, the oldest first.
    applications: BTreeMap<ApplicationId, BTreeSet<(Timestamp, u64, PodId)>>,
    /// How many resources, topologies, namespaces and keys of labels that are read the tables are made for.
    sizes: [usize; 4],
}

impl Tables {
    pub(super) fn new((loaded, builder): (Loaded, SnapshotBuilder)) -> Self {
        let (free_pods, free_workloads, applications) = (Vec::new(), Vec::new(), BTreeMap::new());
        let sizes = sizes(&builder);
        let mut tables = Self { loaded, builder: builder, free_pods, free_workloads, applications, sizes };
        tables.index_applications();
        tables
    }

    /// Whether objects that were read since brought up a resource, topology, namespace or key that the tables have no place for.
    pub(super) fn are_too_small(&self) -> bool {
        sizes(&self.builder) != self.sizes
    }

    /// Texts that came up since the tables were made.
    pub(super) fn append_new_texts(&mut self) {
        let known = &mut self.loaded.names.texts;
        known.extend_from_slice(&self.builder.interners.texts.names()[known.len()..]);
    }

    /// Takes the pod out of the tables.
    pub(super) fn remove_pod(&mut self, name: &NamespacedName) {
        if let Some(id) = self.loaded.names.pods.ids.remove(name) {
            self.remove_from_application(id);
            self.loaded.snapshot.remove_pod(id);
            self.free_pods.push(id);
        }
    }

    /// The pod's place in the order of names: its own, or one between its neighbours. Where there is none left, all get new ones.
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
        rank_between(&names.pods.ids, name, |id| snapshot.pod(*id).rank).expect("there is room between any two")
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
            let place = (pod.created, pod.rank, id);
            let pods = self.applications.entry(application).or_default();
            let first = pods.first().map(|(_, _, id)| *id);
            pods.insert(place);
            if pods.first() == Some(&place) {
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
            let pods = self.applications.get_mut(&application).expect("it joined");
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

/// A place between the neighbours of a name; `None` where they are too close.
pub(super) fn rank_between<K: Ord, V>(ranked: &BTreeMap<K, V>, name: &K, rank: impl Fn(&V) -> u64) -> Option<u64> {
    let before = (Bound::Unbounded, Bound::Excluded(name));
    let before = ranked.range::<K, _>(before).next_back().map_or(0, |(_, value)| rank(value));
    let after = (Bound::Included(name), Bound::Unbounded);
    let after = ranked.range::<K, _>(after).next().map_or(before + nth_rank(1), |(_, value)| rank(value));
    let rank = before + ((after - before) / 2).min(MAX_RANK_STEP);
    (rank > before).then_some(rank)
}

fn sizes(builder: &SnapshotBuilder) -> [usize; 4] {
    let Interners { resources, topologies, namespaces, selected_keys: read, .. } = &builder.interners;
    [resources.names().len(), topologies.names().len(), namespaces.names().len(), read.len()]
}

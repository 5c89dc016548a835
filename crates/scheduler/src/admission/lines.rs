//! The workloads that wait for quota, grouped into lines: workloads that ask for the same in the same queue. While the first of a line gets no
//! quota, neither do those behind it, so an admission cycle considers only the first of each line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_api::{Kind, NamespacedName, Object, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_engine::policy::kueue::{Kueue, WorkloadClassKey};
use reprieve_loader::cache::SnapshotCache;

use crate::effects::preemptor_recorded_on;

/// All workloads that wait for quota.
#[derive(Default)]
pub(super) struct QuotaLines {
    lines: BTreeMap<Arc<WorkloadClassKey>, QuotaLine>,
    /// The position of each workload; `None` for a workload outside of lines.
    positions: BTreeMap<NamespacedName, Option<Position>>,
    /// The workloads outside of lines: they were preempted, their decision panicked, or it depends on their pods.
    ungrouped: BTreeSet<NamespacedName>,
    /// The workloads that are new or have changed since the last [`Self::regroup`].
    unsorted: BTreeSet<NamespacedName>,
    /// The rebuild count of the snapshot that the lines are for.
    rebuild_count: u64,
}

type Position = (Arc<WorkloadClassKey>, Timestamp, u64);

#[derive(Default)]
struct QuotaLine {
    members: BTreeSet<(Timestamp, u64, NamespacedName)>,
    /// The members whose condition does not show yet why they wait.
    unreported: BTreeSet<NamespacedName>,
}

impl QuotaLines {
    /// Adds a workload, or notes that it has changed.
    pub fn put(&mut self, workload: &NamespacedName) {
        self.unsorted.insert(workload.clone());
    }

    pub fn remove(&mut self, workload: &NamespacedName) {
        self.unsorted.remove(workload);
        self.leave(workload);
    }

    fn leave(&mut self, workload: &NamespacedName) {
        self.ungrouped.remove(workload);
        let Some(Some((key, created, rank))) = self.positions.remove(workload) else { return };
        let Some(line) = self.lines.get_mut(&key) else { return };
        line.members.remove(&(created, rank, workload.clone()));
        line.unreported.remove(workload);
        if line.members.is_empty() {
            self.lines.remove(&key);
        }
    }

    /// Assigns the new and changed workloads to lines; a workload whose decision panicked stays outside. Returns the workloads that are not in
    /// the snapshot.
    pub fn regroup(
        &mut self,
        live: &SnapshotCache,
        policy: &Kueue,
        has_failed: impl Fn(&NamespacedName) -> bool,
    ) -> Vec<NamespacedName> {
        if self.rebuild_count != live.rebuild_count() {
            self.rebuild_count = live.rebuild_count();
            self.unsorted.extend(std::mem::take(&mut self.positions).into_keys());
            self.lines.clear();
            self.ungrouped.clear();
        }
        let loaded = live.loaded();
        let mut unknown = Vec::new();
        for name in std::mem::take(&mut self.unsorted) {
            self.leave(&name);
            let Some(id) = loaded.names.workload_id(&name) else {
                self.positions.insert(name.clone(), None);
                unknown.push(name);
                continue;
            };
            let is_ungrouped = was_preempted(live, &name) || has_failed(&name);
            let key = WorkloadClassKey::of(&loaded.snapshot, policy, id).filter(|_| !is_ungrouped);
            let workload = loaded.snapshot.workload(id);
            let position = key.map(|key| self.join(key, workload.created, workload.rank, &name));
            if position.is_none() {
                self.ungrouped.insert(name.clone());
            }
            self.positions.insert(name, position);
        }
        unknown
    }

    fn join(&mut self, key: WorkloadClassKey, created: Timestamp, rank: u64, name: &NamespacedName) -> Position {
        let known = self.lines.get_key_value(&key).map(|(key, _)| Arc::clone(key));
        let key = known.unwrap_or_else(|| Arc::new(key));
        let line = self.lines.entry(Arc::clone(&key)).or_default();
        line.members.insert((created, rank, name.clone()));
        line.unreported.insert(name.clone());
        (key, created, rank)
    }

    /// The first workload of each line, and the workloads outside of lines.
    pub fn heads(&self) -> impl Iterator<Item = &NamespacedName> {
        let firsts = self.lines.values().filter_map(|line| line.members.first()).map(|(_, _, name)| name);
        firsts.chain(&self.ungrouped)
    }

    /// The workloads outside of lines; all that were preempted are among them.
    pub fn ungrouped(&self) -> impl Iterator<Item = &NamespacedName> {
        self.ungrouped.iter()
    }

    /// The workloads in the same line whose condition does not show yet why they wait.
    pub fn take_unreported(&mut self, workload: &NamespacedName) -> BTreeSet<NamespacedName> {
        let Some(Some((key, ..))) = self.positions.get(workload) else { return BTreeSet::new() };
        self.lines.get_mut(key).map(|line| std::mem::take(&mut line.unreported)).unwrap_or_default()
    }
}

fn was_preempted(live: &SnapshotCache, workload: &NamespacedName) -> bool {
    match live.get(&ObjectKey::new(Kind::KueueWorkload, workload.clone())) {
        Some(Object::KueueWorkload(workload)) => preemptor_recorded_on(workload).is_some(),
        _ => false,
    }
}

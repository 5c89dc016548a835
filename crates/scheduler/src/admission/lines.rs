//! Who waits for quota. Workloads that ask for the same stand in a line: as long as the first gets nothing, neither do those behind it, so a
//! cycle shape_classes at the first ungrouped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::kueue::{Kueue, WorkloadClassKey};
use reprieve_loader::cache::SnapshotCache;

use crate::effects::preemptor_recorded_on;

/// All workloads that wait for quota.
#[derive(Default)]
pub(super) struct QuotaLines {
    lines: BTreeMap<Arc<WorkloadClassKey>, QuotaLine>,
    /// Where each stands, if it stands in a line.
    positions: BTreeMap<NamespacedName, Option<Position>>,
    /// Those that stand in none: they were preempted lately, stepped aside, or their pods matter, too.
    ungrouped: BTreeSet<NamespacedName>,
    /// Those that are new, or have changed.
    unsorted: BTreeSet<NamespacedName>,
    /// For which tables the lines are good.
    rebuild_count: u64,
}

type Position = (Arc<WorkloadClassKey>, Timestamp, u64);

#[derive(Default)]
struct QuotaLine {
    /// The first is next.
    members: BTreeSet<(Timestamp, u64, NamespacedName)>,
    /// Those who do not know yet why they wait.
    unreported: BTreeSet<NamespacedName>,
}

impl QuotaLines {
    /// A workload waits for quota; it is new, or has changed.
    pub fn put(&mut self, workload: &NamespacedName) {
        self.unsorted.insert(workload.clone());
    }

    pub fn remove(&mut self, workload: &NamespacedName) {
        self.unsorted.remove(workload);
        self.leave(workload);
    }

    fn leave(&mut self, workload: &NamespacedName) {
        self.ungrouped.remove(workload);
        let Some(Some((class_key, created, rank))) = self.positions.remove(workload) else { return };
        let Some(line) = self.lines.get_mut(&class_key) else { return };
        line.members.remove(&(created, rank, workload.clone()));
        line.unreported.remove(workload);
        if line.members.is_empty() {
            self.lines.remove(&class_key);
        }
    }

    /// Gives those who are new, or have changed, their positions; those who step aside stand ungrouped. Returns those that the tables do not know.
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
            let position = match loaded.names.workload_id(&name) {
                None => {
                    unknown.push(name.clone());
                    None
                }
                Some(id) => {
                    let stands_alone = was_preempted(live, &name) || has_failed(&name);
                    let class_key = WorkloadClassKey::of(&loaded.snapshot, policy, id).filter(|_| !stands_alone);
                    let workload = loaded.snapshot.workload(id);
                    let position = class_key.map(|class_key| self.join(class_key, workload.created, workload.rank, &name));
                    if position.is_none() {
                        self.ungrouped.insert(name.clone());
                    }
                    position
                }
            };
            self.positions.insert(name, position);
        }
        unknown
    }

    fn join(&mut self, class_key: WorkloadClassKey, created: Timestamp, rank: u64, name: &NamespacedName) -> Position {
        let known = self.lines.get_key_value(&class_key).map(|(class_key, _)| Arc::clone(class_key));
        let class_key = known.unwrap_or_else(|| Arc::new(class_key));
        let line = self.lines.entry(Arc::clone(&class_key)).or_default();
        line.members.insert((created, rank, name.clone()));
        line.unreported.insert(name.clone());
        (class_key, created, rank)
    }

    /// Those who are next: the first of each line, and whoever stands ungrouped.
    pub fn heads(&self) -> impl Iterator<Item = &NamespacedName> {
        let firsts = self.lines.values().filter_map(|line| line.members.first()).map(|(_, _, name)| name);
        firsts.chain(&self.ungrouped)
    }

    /// Whoever stands in no line; who was preempted is among them.
    pub fn ungrouped(&self) -> impl Iterator<Item = &NamespacedName> {
        self.ungrouped.iter()
    }

    /// Those who stand in line with a workload that is told why it waits, and were not told before.
    pub fn take_unreported(&mut self, workload: &NamespacedName) -> BTreeSet<NamespacedName> {
        let Some(Some((class_key, ..))) = self.positions.get(workload) else { return BTreeSet::new() };
        self.lines.get_mut(class_key).map(|line| std::mem::take(&mut line.unreported)).unwrap_or_default()
    }
}

fn was_preempted(live: &SnapshotCache, workload: &NamespacedName) -> bool {
    match live.get(&ObjectKey::new(Kind::KueueWorkload, workload.clone())) {
        Some(Object::KueueWorkload(workload)) => preemptor_recorded_on(workload).is_some(),
        _ => false,
    }
}

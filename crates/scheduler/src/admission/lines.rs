//! Who waits for quota. Workloads that ask for the same stand in a line: as long as the first gets nothing, neither do those behind it, so a
//! cycle looks at the first alone.

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
    places: BTreeMap<NamespacedName, Option<Place>>,
    /// Those that stand in none: they were preempted lately, stepped aside, or their pods matter, too.
    alone: BTreeSet<NamespacedName>,
    /// Those that are new, or have changed.
    unsorted: BTreeSet<NamespacedName>,
    /// For which tables the lines are good.
    made: u64,
}

type Place = (Arc<WorkloadClassKey>, Timestamp, u64);

#[derive(Default)]
struct QuotaLine {
    /// The first is next.
    members: BTreeSet<(Timestamp, u64, NamespacedName)>,
    /// Those who do not know yet why they wait.
    untold: BTreeSet<NamespacedName>,
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
        self.alone.remove(workload);
        let Some(Some((likeness, created, rank))) = self.places.remove(workload) else { return };
        let Some(line) = self.lines.get_mut(&likeness) else { return };
        line.members.remove(&(created, rank, workload.clone()));
        line.untold.remove(workload);
        if line.members.is_empty() {
            self.lines.remove(&likeness);
        }
    }

    /// Gives those who are new, or have changed, their places; those who step aside stand alone. Returns those that the tables do not know.
    pub fn regroup(
        &mut self,
        live: &SnapshotCache,
        policy: &Kueue,
        is_aside: impl Fn(&NamespacedName) -> bool,
    ) -> Vec<NamespacedName> {
        if self.made != live.rebuild_count() {
            self.made = live.rebuild_count();
            self.unsorted.extend(std::mem::take(&mut self.places).into_keys());
            self.lines.clear();
            self.alone.clear();
        }
        let loaded = live.loaded();
        let mut unknown = Vec::new();
        for name in std::mem::take(&mut self.unsorted) {
            self.leave(&name);
            let place = match loaded.names.workload_id(&name) {
                None => {
                    unknown.push(name.clone());
                    None
                }
                Some(id) => {
                    let stands_alone = was_preempted(live, &name) || is_aside(&name);
                    let likeness = WorkloadClassKey::of(&loaded.snapshot, policy, id).filter(|_| !stands_alone);
                    let workload = loaded.snapshot.workload(id);
                    let place = likeness.map(|likeness| self.join(likeness, workload.created, workload.rank, &name));
                    if place.is_none() {
                        self.alone.insert(name.clone());
                    }
                    place
                }
            };
            self.places.insert(name, place);
        }
        unknown
    }

    fn join(&mut self, likeness: WorkloadClassKey, created: Timestamp, rank: u64, name: &NamespacedName) -> Place {
        let known = self.lines.get_key_value(&likeness).map(|(likeness, _)| Arc::clone(likeness));
        let likeness = known.unwrap_or_else(|| Arc::new(likeness));
        let line = self.lines.entry(Arc::clone(&likeness)).or_default();
        line.members.insert((created, rank, name.clone()));
        line.untold.insert(name.clone());
        (likeness, created, rank)
    }

    /// Those who are next: the first of each line, and whoever stands alone.
    pub fn heads(&self) -> impl Iterator<Item = &NamespacedName> {
        let firsts = self.lines.values().filter_map(|line| line.members.first()).map(|(_, _, name)| name);
        firsts.chain(&self.alone)
    }

    /// Whoever stands in no line; who was preempted is among them.
    pub fn ungrouped(&self) -> impl Iterator<Item = &NamespacedName> {
        self.alone.iter()
    }

    /// Those who stand in line with a workload that is told why it waits, and were not told before.
    pub fn take_unreported(&mut self, workload: &NamespacedName) -> BTreeSet<NamespacedName> {
        let Some(Some((likeness, ..))) = self.places.get(workload) else { return BTreeSet::new() };
        self.lines.get_mut(likeness).map(|line| std::mem::take(&mut line.untold)).unwrap_or_default()
    }
}

fn was_preempted(live: &SnapshotCache, workload: &NamespacedName) -> bool {
    match live.get(&ObjectKey::new(Kind::KueueWorkload, workload.clone())) {
        Some(Object::KueueWorkload(workload)) => preemptor_recorded_on(workload).is_some(),
        _ => false,
    }
}

//! The order of policy YuniKorn: fair among queues.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::QueueId;
use reprieve_loader::build::Loaded;
use reprieve_report::unit_ref::UnitRef;

use super::{ClassId, PendingQueue, QueuePosition, WaitState};
use crate::view::ClusterView;

/// The units whose turn it is, each with the position of its queue. It holds until the cluster changes.
#[derive(Default)]
pub(super) struct FairOrder {
    generation: u64,
    turns: BTreeSet<(usize, QueuePosition, Option<ClassId>)>,
}

impl PendingQueue {
    /// The next unit: from the root down, of the queue that uses least of what it is guaranteed; then by priority, age and name.
    pub(super) fn next_by_queue(&mut self, view: &ClusterView) -> Option<(UnitRef, Option<ClassId>)> {
        loop {
            if self.fair_order.generation != view.generation || self.fair_order.turns.is_empty() {
                self.fair_order = FairOrder { generation: view.generation, turns: self.by_queue(view) };
            }
            let (queue, position, class) = self.fair_order.turns.pop_first()?;
            let is_next = match class {
                None => self.get(&position.2).is_some_and(|waiting| waiting.state == WaitState::Ready),
                Some(class) => {
                    let mut turns = self.classes.ready_members(class);
                    let is_next = turns.next() == Some(&position);
                    // The next of the class has its turn after this one, if the class still has it then.
                    let next = turns.next().filter(|_| is_next).cloned();
                    self.fair_order.turns.extend(next.map(|next| (queue, next, Some(class))));
                    is_next
                }
            };
            if is_next {
                return Some((position.2, class));
            }
        }
    }

    fn by_queue(&self, view: &ClusterView) -> BTreeSet<(usize, QueuePosition, Option<ClassId>)> {
        let Loaded { snapshot, names, .. } = view.loaded();
        let queues = snapshot.queues();
        let mut by_queue: BTreeMap<Option<QueueId>, Vec<(QueuePosition, Option<ClassId>)>> = BTreeMap::new();
        let turns = self.active.iter().map(|position| (position, None)).chain(self.classes.ready_heads());
        for (position, class) in turns {
            let queue = match (class, &position.2) {
                (Some(class), _) => self.classes.class_key(class).queue(),
                (None, UnitRef::Pod(name)) => names.pod_id(name).and_then(|pod| snapshot.pod(pod).queue),
                (None, UnitRef::Group(_) | UnitRef::Job(_) | UnitRef::Workload(_) | UnitRef::BatchJob(_)) => None,
            };
            by_queue.entry(queue).or_default().push((position.clone(), class));
        }
        let mut order: Vec<_> = by_queue.into_iter().collect();
        order.sort_by_cached_key(|(queue, _)| {
            let mut path: Vec<_> = queue.iter().flat_map(|queue| queues.path(*queue)).collect();
            path.reverse();
            path.into_iter().map(|queue| (queues.share(queue), queue)).collect::<Vec<_>>()
        });
        let numbered = order.into_iter().enumerate();
        numbered.flat_map(|(at, (_, turns))| turns.into_iter().map(move |(position, class)| (at, position, class))).collect()
    }
}

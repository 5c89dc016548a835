//! The scheduling order of policy YuniKorn: queues in the order of their use of guaranteed resources, then units
//! by priority, age and name.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::QueueId;
use reprieve_loader::Loaded;
use reprieve_report::unit_ref::UnitRef;

use super::{ClassId, PendingQueue, QueuePosition, WaitState};
use crate::view::ClusterView;

/// The ready units, each with the rank of its queue. The order is valid until the cluster changes.
#[derive(Default)]
pub(super) struct FairOrder {
    generation: u64,
    units: BTreeSet<(usize, QueuePosition, Option<ClassId>)>,
}

impl PendingQueue {
    /// The next unit, and its class if it is in one. At each level of the tree the queue with the smallest share of its guarantee is first.
    pub(super) fn next_by_queue(&mut self, view: &ClusterView) -> Option<(UnitRef, Option<ClassId>)> {
        loop {
            if self.fair_order.generation != view.generation || self.fair_order.units.is_empty() {
                self.fair_order = FairOrder { generation: view.generation, units: self.ready_by_queue(view) };
            }
            let (queue, position, class) = self.fair_order.units.pop_first()?;
            let is_next = match class {
                None => self.get(&position.2).is_some_and(|pending| pending.state == WaitState::Ready),
                Some(class) => {
                    let mut members = self.classes.ready_members(class);
                    let is_next = members.next() == Some(&position);
                    // The next member follows this one, if the class is still ready then.
                    let next = members.next().filter(|_| is_next).cloned();
                    self.fair_order.units.extend(next.map(|next| (queue, next, Some(class))));
                    is_next
                }
            };
            if is_next {
                return Some((position.2, class));
            }
        }
    }

    fn ready_by_queue(&self, view: &ClusterView) -> BTreeSet<(usize, QueuePosition, Option<ClassId>)> {
        let Loaded { snapshot, names, .. } = view.loaded();
        let queues = snapshot.queues();
        let mut by_queue: BTreeMap<Option<QueueId>, Vec<(QueuePosition, Option<ClassId>)>> = BTreeMap::new();
        let ready = self.ready.iter().map(|position| (position, None)).chain(self.classes.ready_heads());
        for (position, class) in ready {
            let queue = match (class, &position.2) {
                (Some(class), _) => self.classes.key(class).queue(),
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
        numbered
            .flat_map(|(rank, (_, units))| units.into_iter().map(move |(position, class)| (rank, position, class)))
            .collect()
    }
}

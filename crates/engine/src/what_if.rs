//! Tentative changes to a snapshot with an undo log. Every search works on a what-if.

use crate::filters::inter_pod::InterPodCounts;
use crate::ids::{NodeId, PodId, QueueId, ShapeId, UnitId};
use crate::queues::HeldQuota;
use crate::snapshot::Snapshot;

/// A what-if over a snapshot. Every change is logged; dropping the what-if undoes all of them.
pub struct WhatIf<'s> {
    snapshot: &'s mut Snapshot,
    inter_pod: InterPodCounts,
    log: Vec<Undo>,
}

enum Undo {
    Moved { pod: PodId, from: Option<NodeId> },
    Charged { queue: QueueId, shape: ShapeId },
    Held(HeldQuota),
}

/// A length of the log to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'s> WhatIf<'s> {
    /// Starts a what-if for pods of these shapes, whose inter-pod constraints are counted from here on.
    pub fn new(snapshot: &'s mut Snapshot, shapes: &[ShapeId]) -> Self {
        let relations = InterPodCounts::new(snapshot, shapes);
        Self { snapshot, inter_pod: relations, log: Vec::new() }
    }

    /// The snapshot with the changes.
    pub fn snapshot(&self) -> &Snapshot {
        self.snapshot
    }

    pub(crate) fn inter_pod(&self) -> &InterPodCounts {
        &self.inter_pod
    }

    /// Removes a pod from its node.
    pub fn remove(&mut self, pod: PodId) {
        self.move_to(pod, None);
    }

    /// Removes all pods of a unit from their nodes.
    pub fn remove_unit(&mut self, unit: UnitId) {
        for index in 0..self.snapshot.unit(unit).pods.len() {
            self.remove(self.snapshot.unit(unit).pods[index]);
        }
    }

    /// Places a pod on a node.
    pub fn place(&mut self, pod: PodId, node: NodeId) {
        self.move_to(pod, Some(node));
    }

    fn move_to(&mut self, pod: PodId, to: Option<NodeId>) {
        let from = self.snapshot.move_to(pod, to);
        self.inter_pod.moved(self.snapshot, pod, from, to);
        self.log.push(Undo::Moved { pod, from });
    }

    /// Adds the requests of a pod of this shape to the use of a queue.
    pub(crate) fn charge(&mut self, queue: QueueId, shape: ShapeId) {
        self.snapshot.charge_queue(queue, shape, 1);
        self.log.push(Undo::Charged { queue, shape });
    }

    /// Counts the quota that nominated pods hold.
    pub(crate) fn hold_quota(&mut self, held: HeldQuota) {
        self.snapshot.hold_quota(&held, 1);
        self.log.push(Undo::Held(held));
    }

    /// The bound pods that are removed, some of them possibly twice.
    pub(crate) fn removed(&self) -> impl Iterator<Item = PodId> {
        let moved = self.log.iter().filter_map(|undo| match undo {
            Undo::Moved { pod, from } => from.map(|_| *pod),
            Undo::Charged { .. } | Undo::Held(_) => None,
        });
        moved.filter(|&pod| self.snapshot.pod(pod).node.is_none())
    }

    /// Calls `look` with the snapshot as it is without the changes, which are made again afterwards. `look` must restore the snapshot. No
    /// queue may be charged.
    pub(crate) fn outside<T>(&mut self, look: impl FnOnce(&mut Snapshot) -> T) -> T {
        let Self { snapshot, inter_pod, log } = self;
        let mut changes = Vec::with_capacity(log.len());
        for undo in log.drain(..).rev() {
            let Undo::Moved { pod, from } = undo else { unreachable!("the caller charges no queue") };
            let to = snapshot.move_to(pod, from);
            inter_pod.moved(snapshot, pod, to, from);
            changes.push((pod, to));
        }
        let result = look(snapshot);
        for (pod, to) in changes.into_iter().rev() {
            self.move_to(pod, to);
        }
        result
    }

    /// The current length of the log.
    pub fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Undoes every change since `mark`.
    pub fn back_to(&mut self, mark: Mark) {
        let Self { snapshot, inter_pod: relations, log } = self;
        for undo in log.drain(mark.0..).rev() {
            match undo {
                Undo::Moved { pod, from } => {
                    let to = snapshot.move_to(pod, from);
                    relations.moved(snapshot, pod, to, from);
                }
                Undo::Charged { queue, shape } => snapshot.charge_queue(queue, shape, -1),
                Undo::Held(held) => snapshot.hold_quota(&held, -1),
            }
        }
    }
}

impl Drop for WhatIf<'_> {
    fn drop(&mut self) {
        self.back_to(Mark(0));
    }
}

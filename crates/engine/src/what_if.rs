//! A what-if over a snapshot: pods are moved, and moved back.

use crate::filters::inter_pod::InterPodCounts;
use crate::ids::{NodeId, PodId, QueueId, ShapeId, UnitId};
use crate::snapshot::Snapshot;

/// A what-if over a snapshot. Every change is logged; dropping it takes back all of them.
pub struct WhatIf<'s> {
    snapshot: &'s mut Snapshot,
    inter_pod: InterPodCounts,
    log: Vec<Undo>,
}

enum Undo {
    Moved { pod: PodId, from: Option<NodeId> },
    Charged { queue: QueueId, shape: ShapeId },
}

/// How long the log was.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'s> WhatIf<'s> {
    /// Asks for pods of these shapes: what they mind of other pods is kept count of from here on.
    pub fn new(snapshot: &'s mut Snapshot, shapes: &[ShapeId]) -> Self {
        let relations = InterPodCounts::new(snapshot, shapes);
        Self { snapshot, inter_pod: relations, log: Vec::new() }
    }

    /// The snapshot as it would be.
    pub fn snapshot(&self) -> &Snapshot {
        self.snapshot
    }

    pub(crate) fn inter_pod(&self) -> &InterPodCounts {
        &self.inter_pod
    }

    /// Takes a pod off its node.
    pub fn remove(&mut self, pod: PodId) {
        self.move_to(pod, None);
    }

    /// Takes all pods of a unit off their nodes.
    pub fn remove_unit(&mut self, unit: UnitId) {
        for at in 0..self.snapshot.unit(unit).pods.len() {
            self.remove(self.snapshot.unit(unit).pods[at]);
        }
    }

    /// Puts a pod on a node.
    pub fn place(&mut self, pod: PodId, node: NodeId) {
        self.move_to(pod, Some(node));
    }

    fn move_to(&mut self, pod: PodId, to: Option<NodeId>) {
        let from = self.snapshot.move_to(pod, to);
        self.inter_pod.moved(self.snapshot, pod, from, to);
        self.log.push(Undo::Moved { pod, from });
    }

    /// Charges a queue as if a pod of the shape ran in it.
    pub(crate) fn charge(&mut self, queue: QueueId, shape: ShapeId) {
        self.snapshot.charge_queue(queue, shape, 1);
        self.log.push(Undo::Charged { queue, shape });
    }

    /// The point to come back to.
    pub fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Takes back every change since `mark`.
    pub fn back_to(&mut self, mark: Mark) {
        let Self { snapshot, inter_pod: relations, log } = self;
        for undo in log.drain(mark.0..).rev() {
            match undo {
                Undo::Moved { pod, from } => {
                    let to = snapshot.move_to(pod, from);
                    relations.moved(snapshot, pod, to, from);
                }
                Undo::Charged { queue, shape } => snapshot.charge_queue(queue, shape, -1),
            }
        }
    }
}

impl Drop for WhatIf<'_> {
    fn drop(&mut self) {
        self.back_to(Mark(0));
    }
}

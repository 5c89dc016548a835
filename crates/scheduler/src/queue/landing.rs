//! Where a unit is to land once others have left. While it waits for them, what happens elsewhere does not matter, unless it makes room.

use reprieve_engine::between_decisions::may_have_room;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::snapshot::Snapshot;
use reprieve_engine::{NodeId, Priority, ShapeId};

use crate::view::RoomChange;

/// Where a unit is to land. Good as long as the tables are not made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LandingNodes {
    pods: Vec<(ShapeId, NodeId)>,
    priority: Priority,
}

impl LandingNodes {
    /// Of a preemptor of policy Kubernetes; `None` where it is not known of all its pods, or where other things matter, too.
    pub fn of(snapshot: &Snapshot, preemptor: PreemptorId) -> Option<Self> {
        let ask = Preemptor::new(snapshot, preemptor);
        let landing = |&pod| {
            let pod = snapshot.pod(pod);
            let shape = snapshot.shape(pod.shape);
            let has_constraints = !shape.affinity.is_empty() || !shape.spread.is_empty();
            pod.nominated.filter(|_| !has_constraints).map(|node| (pod.shape, node))
        };
        let pods = ask.members.iter().map(landing).collect::<Option<Vec<_>>>()?;
        (!pods.is_empty() && !snapshot.has_anti_affinity()).then_some(Self { pods, priority: ask.priority })
    }

    /// Whether a change of room matters: it is where the unit is to land, or makes room for a pod of it as it is.
    pub fn is_affected_by(&self, snapshot: &Snapshot, room: RoomChange) -> bool {
        let is_there = |node: NodeId| self.pods.iter().any(|(_, there)| *there == node);
        match room {
            RoomChange::Changed => true,
            RoomChange::Unmarked => false,
            RoomChange::Taken(node) => node.is_none_or(is_there),
            RoomChange::Freed(node, _) => {
                let fits = |(shape, _): &(ShapeId, _)| may_have_room(snapshot, *shape, self.priority, false, node);
                is_there(node) || self.pods.iter().any(fits)
            }
        }
    }
}

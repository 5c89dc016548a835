//! Where a unit is to land once others have left. While it waits for them, what happens elsewhere does not matter, unless it makes room.

use reprieve_engine::fit::{Ask, Preemptor};
use reprieve_engine::hold::may_have_room;
use reprieve_engine::snapshot::Snapshot;
use reprieve_engine::{NodeId, Priority, ShapeId};

use crate::view::Room;

/// Where a unit is to land. Good as long as the tables are not made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footing {
    pods: Vec<(ShapeId, NodeId)>,
    priority: Priority,
}

impl Footing {
    /// Of a preemptor of policy Kubernetes; `None` where it is not known of all its pods, or where other things matter, too.
    pub fn of(snapshot: &Snapshot, preemptor: Preemptor) -> Option<Self> {
        let ask = Ask::new(snapshot, preemptor);
        let landing = |&pod| {
            let pod = snapshot.pod(pod);
            let shape = snapshot.shape(pod.shape);
            let minds = !shape.affinity.is_empty() || !shape.spread.is_empty();
            pod.nominated.filter(|_| !minds).map(|node| (pod.shape, node))
        };
        let pods = ask.members.iter().map(landing).collect::<Option<Vec<_>>>()?;
        (!pods.is_empty() && !snapshot.has_aversions()).then_some(Self { pods, priority: ask.priority })
    }

    /// Whether a change of room matters: it is where the unit is to land, or makes room for a pod of it as it is.
    pub fn is_touched(&self, snapshot: &Snapshot, room: Room) -> bool {
        let is_there = |node: NodeId| self.pods.iter().any(|(_, there)| *there == node);
        match room {
            Room::Changed => true,
            Room::Unmarked => false,
            Room::Taken(node) => node.is_none_or(is_there),
            Room::Freed(node, _) => {
                let fits = |(shape, _): &(ShapeId, _)| may_have_room(snapshot, *shape, self.priority, false, node);
                is_there(node) || self.pods.iter().any(fits)
            }
        }
    }
}

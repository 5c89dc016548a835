//! The nodes that a preemptor is nominated to. While it waits for its victims, a change on other nodes matters only if it makes room for one
//! of its pods.

use reprieve_engine::between_decisions::may_have_room;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::snapshot::Snapshot;
use reprieve_engine::{NodeId, Priority, ShapeId};

use crate::view::RoomChange;

/// The nominated nodes of a preemptor. Its ids are valid until the snapshot is rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LandingNodes {
    pods: Vec<(ShapeId, NodeId)>,
    priority: Priority,
}

impl LandingNodes {
    /// The landing nodes of a preemptor of policy Kubernetes; `None` if a pod has no nomination, or if affinity or topology spread makes other
    /// nodes matter.
    pub fn of(snapshot: &Snapshot, preemptor: PreemptorId) -> Option<Self> {
        let preemptor = Preemptor::new(snapshot, preemptor);
        let landing = |&pod| {
            let pod = snapshot.pod(pod);
            let shape = snapshot.shape(pod.shape);
            let has_constraints = !shape.affinity.is_empty() || !shape.spread.is_empty();
            pod.nominated.filter(|_| !has_constraints).map(|node| (pod.shape, node))
        };
        let pods = preemptor.members.iter().map(landing).collect::<Option<Vec<_>>>()?;
        (!pods.is_empty() && !snapshot.has_anti_affinity()).then_some(Self { pods, priority: preemptor.priority })
    }

    /// Whether the preemptor must be decided again: the room changed on a landing node, or another node now has room for one of its pods.
    pub fn is_affected_by(&self, snapshot: &Snapshot, room: RoomChange) -> bool {
        let is_landing_node = |node: NodeId| self.pods.iter().any(|(_, nominated)| *nominated == node);
        match room {
            RoomChange::Changed => true,
            RoomChange::Unmarked => false,
            RoomChange::Taken(node) => node.is_none_or(is_landing_node),
            RoomChange::Freed(node, _) => {
                let fits = |(shape, _): &(ShapeId, _)| may_have_room(snapshot, *shape, self.priority, false, node);
                is_landing_node(node) || self.pods.iter().any(fits)
            }
        }
    }
}

//! How a change of a pod changes the room on nodes. The queue uses it to choose the units to try again.

use reprieve_api::{NamespacedName, Pod};
use reprieve_engine::between_decisions::preemptible_above;
use reprieve_engine::{NodeId, Priority};
use reprieve_loader::Loaded;

use super::pod_state::{SCHEDULED, condition};

/// A change of the room on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomChange {
    /// A pod takes more room on this node, or can no longer be preempted there.
    Taken(Option<NodeId>),
    /// A victim lost its mark; the room is the same.
    Unmarked,
    /// A pod left a node; a preemptor above this priority could have preempted the pod. Or it becomes known when the pod may be preempted.
    Freed(NodeId, Option<Priority>),
    /// Any other change.
    Changed,
}

impl RoomChange {
    /// The change of room that a change of a pod will cause; `None` if there is none. `loaded` is the snapshot before the change.
    pub fn of(loaded: &Loaded, name: &NamespacedName, before: Option<&Pod>, after: Option<&Pod>) -> Option<Self> {
        let Loaded { snapshot, names, .. } = loaded;
        let is_scheduled = |pod: &Pod| condition(pod, SCHEDULED).is_some_and(|condition| condition.status == "True");
        let now_scheduled = after.is_some_and(is_scheduled);
        let (before, after) = (room_of(before), room_of(after));
        if before == after {
            let pod = snapshot.pod(names.pod_id(name)?);
            if pod.daemon_node.is_some() {
                return Some(Self::Changed); // the node that it reserves
            }
            let is_tolerant = now_scheduled && pod.toleration.is_some() && pod.scheduled.is_none();
            return pod.node.filter(|_| is_tolerant).map(|node| Self::Freed(node, None));
        }
        Some(match (before, after) {
            // The pod is bound or nominated to a node.
            (None, Some((on, nominated, _))) => Self::Taken(on.or(nominated).and_then(|node| names.node_id(node))),
            // The pod starts to terminate.
            (Some((Some(on), _, false)), Some((Some(still_on), _, true))) if on == still_on => {
                Self::Taken(names.node_id(on))
            }
            // The pod is bound to its nominated node.
            (Some((None, Some(nominated), _)), Some((Some(on), _, _))) if nominated == on => {
                Self::Taken(names.node_id(on))
            }
            // The pod ended or was removed.
            (Some((Some(on), ..)), None) if let Some(node) = names.node_id(on) => {
                Self::Freed(node, names.pod_id(name).and_then(|pod| preemptible_above(snapshot, pod)))
            }
            _ => Self::Changed,
        })
    }
}

/// The room that a pod takes: its node; without one, its nominated node; and whether it is terminating, which matters to the use of queues.
fn room_of(pod: Option<&Pod>) -> Option<(Option<&String>, Option<&String>, bool)> {
    let pod = pod?;
    let node = pod.node_name.as_ref();
    let nominated =
        pod.status.as_ref().and_then(|status| status.nominated_node_name.as_ref()).filter(|_| node.is_none());
    let room = (node, nominated, pod.metadata.deletion_timestamp.is_some());
    (node.is_some() || nominated.is_some()).then_some(room)
}

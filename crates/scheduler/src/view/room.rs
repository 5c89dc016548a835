//! How the room on nodes changes as a pod does.

use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::between_decisions::preemptible_above;
use reprieve_engine::{NodeId, Priority};
use reprieve_loader::build::Loaded;

/// How the room on nodes changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomChange {
    /// Somebody has some more on this node, or can no longer be taken there.
    Taken(Option<NodeId>),
    /// It did not; but somebody is no longer to yield.
    Unmarked,
    /// Somebody went from a node; any preemptor above this priority could have taken it there.
    Freed(NodeId, Option<Priority>),
    /// In another way.
    Changed,
}

impl RoomChange {
    /// How it is about to change as a pod does; `None` where it is not.
    pub fn change(loaded: &Loaded, name: &NamespacedName, before: Option<&Pod>, after: Option<&Pod>) -> Option<Self> {
        let (before, after) = (takes_room(before), takes_room(after));
        if before == after {
            return None;
        }
        let Loaded { snapshot, names, .. } = loaded;
        Some(match (before, after) {
            (None, Some((on, meant, _))) => Self::Taken(on.or(meant).and_then(|node| names.node_id(node))),
            (Some((Some(on), _, false)), Some((Some(still_on), _, true))) if on == still_on => {
                Self::Taken(names.node_id(on))
            }
            (Some((None, Some(meant), _)), Some((Some(on), _, _))) if meant == on => Self::Taken(names.node_id(on)),
            (Some((Some(on), ..)), None) if let Some(node) = names.node_id(on) => {
                Self::Freed(node, names.pod_id(name).and_then(|pod| preemptible_above(snapshot, pod)))
            }
            _ => Self::Changed,
        })
    }
}

/// The room that a pod takes: where it is bound, or meant to be; and, for queues, whether it is leaving.
fn takes_room(pod: Option<&Pod>) -> Option<(Option<&String>, Option<&String>, bool)> {
    let pod = pod?;
    let node = pod.node_name.as_ref();
    let nominated =
        pod.status.as_ref().and_then(|status| status.nominated_node_name.as_ref()).filter(|_| node.is_none());
    let room = (node, nominated, pod.metadata.deletion_timestamp.is_some());
    (node.is_some() || nominated.is_some()).then_some(room)
}

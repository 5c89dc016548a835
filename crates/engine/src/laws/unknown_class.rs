//! Where a lower pod's priority class is not defined, nobody knows what it tolerates: nothing is taken on its node. (Rule 3 of the
//! tolerations.)

use crate::fit::Ask;
use crate::ids::NodeId;
use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().copied().find(|&pod| snapshot.pod(pod).class_unknown).map(|pod| Law::UnknownClass { pod })
}

/// The law by which nothing may be taken on the node.
pub(crate) fn closes(snapshot: &Snapshot, ask: &Ask, node: NodeId) -> Option<Law> {
    if snapshot.is_plain(node) {
        return None;
    }
    let lower = snapshot.slots(node).iter().filter(|slot| slot.priority < ask.priority);
    lower.map(|slot| slot.pod).find(|&pod| snapshot.pod(pod).class_unknown).map(|pod| Law::UnknownClass { pod })
}

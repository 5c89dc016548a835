//! Where a lower pod's priority class is not defined, nobody knows what it tolerates: nothing is taken on its node. (Rule 3 of the
//! tolerations.)

use crate::fit::Preemptor;
use crate::ids::NodeId;
use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().copied().find(|&pod| snapshot.pod(pod).class_unknown).map(|pod| Law::UnknownPriorityClass { pod })
}

/// The law by which nothing may be taken on the node.
pub(crate) fn closes(snapshot: &Snapshot, ask: &Preemptor, node: NodeId) -> Option<Law> {
    if snapshot.has_only_single_pod_units(node) {
        return None;
    }
    let lower = snapshot.bound_pods(node).iter().filter(|slot| slot.priority < ask.priority);
    lower.map(|slot| slot.pod).find(|&pod| snapshot.pod(pod).class_unknown).map(|pod| Law::UnknownPriorityClass { pod })
}

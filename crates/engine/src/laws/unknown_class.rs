//! docs/rules/toleration.md#t3: if the priority class of a lower pod is not defined, its tolerations are unknown, and no pod on its node is
//! taken.

use crate::fit::Preemptor;
use crate::ids::NodeId;
use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().copied().find(|&pod| snapshot.pod(pod).class_unknown).map(|pod| Law::UnknownPriorityClass { pod })
}

/// The law that spares all pods on the node.
pub(crate) fn closes(snapshot: &Snapshot, preemptor: &Preemptor, node: NodeId) -> Option<Law> {
    if snapshot.has_only_single_pod_units(node) {
        return None;
    }
    let lower = snapshot.bound_pods(node).iter().filter(|bound| bound.priority < preemptor.priority);
    lower
        .map(|bound| bound.pod)
        .find(|&pod| snapshot.pod(pod).class_unknown)
        .map(|pod| Law::UnknownPriorityClass { pod })
}

//! The step *gate* of a decision under policy Kubernetes: whether the preemptor may preempt now. The other policies have gates of their
//! own, in their folders.

use crate::fit::{Preemptor, PreemptorId};
use crate::ids::NodeId;
use crate::laws::{Law, in_progress};
use crate::nominations::nominated_nodes;
use crate::what_if::WhatIf;

/// docs/rules/kubernetes-pods.md#p3, docs/rules/kubernetes-groups.md#g7: the preemption that is in progress for the preemptor.
pub(crate) fn preemption_in_progress(what_if: &WhatIf<'_>, preemptor: &Preemptor) -> Option<Law> {
    let nodes = nominated_nodes(what_if.snapshot(), preemptor);
    in_progress::refuses(what_if.snapshot(), preemptor, nodes)
}

/// As [`preemption_in_progress`], as kube-scheduler sees it: a single pod does not wait for a node that refuses it for a reason that
/// eviction cannot resolve, and a pod that is resized in place does not wait. A group waits for all its nominated nodes.
pub(crate) fn preemption_in_progress_as_kube_scheduler(what_if: &mut WhatIf<'_>, preemptor: &Preemptor) -> Option<Law> {
    let mut nodes: Vec<NodeId> = nominated_nodes(what_if.snapshot(), preemptor);
    nodes.retain(|&node| Some(node) != preemptor.resizes_on);
    if let PreemptorId::Pod(pod) = preemptor.id {
        nodes.retain(|&node| preemptor.filter_failure(what_if, pod, node).is_none_or(|failure| failure.resolvable()));
    }
    in_progress::refuses(what_if.snapshot(), preemptor, nodes)
}

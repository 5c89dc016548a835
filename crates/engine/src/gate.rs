//! The step *gate* of a decision under policy Kubernetes: whether the preemptor may preempt now. The other policies have gates of their
//! own, in their folders.

use crate::fit::{Preemptor, PreemptorId};
use crate::ids::NodeId;
use crate::laws::{Law, in_progress, never};
use crate::what_if::WhatIf;

/// The law by which the preemptor may not preempt now.
pub(crate) fn gate(what_if: &mut WhatIf<'_>, preemptor: &Preemptor) -> Option<Law> {
    never::refuses(what_if.snapshot(), preemptor).or_else(|| {
        let nodes = nominated_nodes(what_if, preemptor);
        in_progress::refuses(what_if.snapshot(), preemptor, nodes)
    })
}

/// docs/rules/kubernetes-pods.md#p3, docs/rules/kubernetes-groups.md#g7: the nodes to which the preemptor's pending pods are nominated. A
/// single pod does not wait for a node that refuses it for a reason that eviction cannot resolve; a group waits for all its nominated
/// nodes.
fn nominated_nodes(what_if: &mut WhatIf<'_>, preemptor: &Preemptor) -> Vec<NodeId> {
    let mut nodes: Vec<_> = preemptor.members.iter().filter_map(|&pod| what_if.snapshot().pod(pod).nominated).collect();
    if let PreemptorId::Pod(pod) = preemptor.id {
        nodes.retain(|&node| preemptor.filter_failure(what_if, pod, node).is_none_or(|failure| failure.resolvable()));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

//! docs/rules/kubernetes-pods.md#p3, docs/rules/kubernetes-groups.md#g7, docs/rules/kubernetes-groups.md#g14,
//! docs/rules/kubernetes-groups.md#g19: while victims of an earlier preemption terminate on a node that the preemptor is nominated to, it
//! preempts no others.

use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::Law;
use crate::snapshot::Snapshot;

/// `nodes` are the nominated nodes on which the preemptor could still be placed.
pub(crate) fn refuses(snapshot: &Snapshot, preemptor: &Preemptor, nodes: Vec<NodeId>) -> Option<Law> {
    let terminating: Vec<PodId> = nodes
        .iter()
        .flat_map(|&node| snapshot.bound_pods(node))
        .filter(|bound| bound.priority < preemptor.priority)
        .map(|bound| bound.pod)
        .filter(|&pod| snapshot.pod(pod).terminating.is_some_and(|terminating| terminating.by_preemption))
        .collect();
    law(snapshot, terminating)
}

/// The law for these pods that terminate or that another operator deletes; `None` without any.
pub(crate) fn law(snapshot: &Snapshot, terminating: Vec<PodId>) -> Option<Law> {
    if terminating.is_empty() {
        return None;
    }
    let deadline = |&pod: &PodId| snapshot.pod(pod).terminating.map(|terminating| terminating.deadline);
    let deadlines: Option<Vec<Timestamp>> = terminating.iter().map(deadline).collect();
    let until = deadlines.and_then(|deadlines| deadlines.into_iter().max());
    let mut nodes: Vec<NodeId> = terminating.iter().filter_map(|&pod| snapshot.bound_node(pod)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Some(Law::PreemptionInProgress { terminating, nodes, until })
}

//! May it preempt at all, now?

use crate::fit::{self, Preemptor, PreemptorId};
use crate::ids::NodeId;
use crate::laws::{Law, in_progress, never};
use crate::what_if::WhatIf;

/// The law by which the preemptor may not preempt now, if there is one.
pub(crate) fn gate(what_if: &mut WhatIf<'_>, ask: &Preemptor) -> Option<Law> {
    never::refuses(what_if.snapshot(), ask).or_else(|| {
        let nodes = nominated_nodes(what_if, ask);
        in_progress::refuses(what_if.snapshot(), ask, nodes)
    })
}

/// The nodes it is nominated to; for a pod only if taking pods away there could still help.
fn nominated_nodes(what_if: &mut WhatIf<'_>, ask: &Preemptor) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = ask.members.iter().filter_map(|&pod| what_if.snapshot().pod(pod).nominated).collect();
    if let PreemptorId::Pod(pod) = ask.id {
        nodes.retain(|&node| fit::filter_failure(what_if, ask, pod, node).is_none_or(|misfit| misfit.resolvable()));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

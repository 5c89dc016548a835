//! May it preempt at all, now?

use crate::fit::{self, Ask, Preemptor};
use crate::ids::NodeId;
use crate::laws::{Law, never, underway};
use crate::what_if::WhatIf;

/// The law by which the preemptor may not preempt now, if there is one.
pub(crate) fn gate(what_if: &mut WhatIf<'_>, ask: &Ask) -> Option<Law> {
    never::refuses(what_if.snapshot(), ask).or_else(|| {
        let nodes = nominated_nodes(what_if, ask);
        underway::refuses(what_if.snapshot(), ask, nodes)
    })
}

/// The nodes it is nominated to; for a pod only if taking pods away there could still help.
fn nominated_nodes(what_if: &mut WhatIf<'_>, ask: &Ask) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = ask.members.iter().filter_map(|&pod| what_if.snapshot().pod(pod).nominated).collect();
    if let Preemptor::Pod(pod) = ask.preemptor {
        nodes.retain(|&node| fit::misfit(what_if, ask, pod, node).is_none_or(|misfit| misfit.resolvable()));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

//! While the victims of an earlier preemption for it are leaving a node it is nominated to, it causes no second round. (Rule 3 of
//! the pods, rules 7, 14 and 19 of the groups.)

use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

/// `nodes` are those that the preemptor is nominated to and could still land on.
pub(crate) fn refuses(snapshot: &Snapshot, ask: &Preemptor, nodes: Vec<NodeId>) -> Option<Law> {
    let leaving: Vec<PodId> = nodes
        .iter()
        .flat_map(|&node| snapshot.bound_pods(node))
        .filter(|slot| slot.priority < ask.priority)
        .map(|slot| slot.pod)
        .filter(|&pod| snapshot.pod(pod).leaving.is_some_and(|leaving| leaving.by_preemption))
        .collect();
    law(snapshot, leaving)
}

/// The law, if anybody is leaving.
pub(crate) fn law(snapshot: &Snapshot, leaving: Vec<PodId>) -> Option<Law> {
    let until = leaving.iter().filter_map(|&pod| snapshot.pod(pod).leaving).map(|leaving| leaving.deadline).max()?;
    let mut nodes: Vec<NodeId> = leaving.iter().filter_map(|&pod| snapshot.bound_node(pod)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Some(Law::PreemptionInProgress { leaving, nodes, until })
}

//! While pods leave that may be leaving for the preemptor, it causes no second round. (Rule 3 of YuniKorn.)

use super::fence::Reach;
use crate::ids::{NodeId, PodId};
use crate::laws::{Law, underway};
use crate::snapshot::Snapshot;

/// Who leaves the node that a pod is nominated to, or a queue that it may take from, may be leaving for it.
pub(crate) fn refuses(snapshot: &Snapshot, node: Option<NodeId>, reach: &Reach) -> Option<Law> {
    let node = node?;
    let queues = snapshot.queues();
    let in_reach = |queue| reach.root().is_some_and(|root| queues.path(queue).any(|id| id == root));
    let leaving: Vec<PodId> = (0..snapshot.n_pods())
        .map(PodId::new)
        .filter(|&pod| snapshot.pod(pod).leaving.is_some())
        .filter(|&pod| snapshot.home(pod) == Some(node) || snapshot.pod(pod).queue.is_some_and(in_reach))
        .collect();
    underway::law(snapshot, leaving)
}

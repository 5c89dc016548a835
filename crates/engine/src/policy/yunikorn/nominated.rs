//! What pending pods hold while their victims leave: a nominated pod its quota and its node, a DaemonSet pod its node.

use std::collections::BTreeSet;

use super::Search;
use crate::filters::node;
use crate::ids::{NodeId, PodId, TextId};
use crate::laws::Law;
use crate::queues::HeldQuota;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// docs/rules/yunikorn.md#y8: counts the nominated pods other than `pod` as used in their queues. The pods that leave for them are those
/// that terminate on their nodes, and those that are marked as their victims.
pub(super) fn hold_quota(what_if: &mut WhatIf<'_>, pod: PodId) {
    let snapshot = what_if.snapshot();
    let holds = |&id: &PodId| {
        let other = snapshot.pod(id);
        id != pod && other.nominated.is_some() && other.queue.is_some() && other.terminating.is_none()
    };
    let nominees = snapshot.node_ids().flat_map(|node| snapshot.nominees(node)).copied();
    let nominated: Vec<PodId> = nominees.filter(holds).collect();
    if nominated.is_empty() {
        return;
    }
    let nodes: BTreeSet<NodeId> = nominated.iter().filter_map(|&id| snapshot.pod(id).nominated).collect();
    let names: BTreeSet<TextId> = nominated.iter().filter_map(|&id| snapshot.pod(id).recorded_as).collect();
    let terminating = nodes.into_iter().flat_map(|node| snapshot.pods_on(node));
    let terminating = terminating.filter(|&id| snapshot.pod(id).terminating.is_some());
    let is_victim = |&id: &PodId| {
        let victim = snapshot.pod(id);
        victim.node.is_some() && victim.marked_for.is_some_and(|preemptor| names.contains(&preemptor))
    };
    let leaving: BTreeSet<PodId> = terminating.chain(snapshot.marked().filter(is_victim)).collect();
    let held = HeldQuota { nominated: snapshot.queue_use(nominated), leaving: snapshot.queue_use(leaving) };
    what_if.hold_quota(held);
}

impl Search<'_, '_, '_> {
    /// docs/rules/yunikorn.md#y13, docs/rules/yunikorn.md#y19: the law if another pod reserved the node. A reservation does not keep out
    /// the pod of a DaemonSet.
    pub(super) fn reserved(&self, node: NodeId) -> Option<Law> {
        let snapshot = self.snapshot();
        if self.is_daemon() && !self.settings.follows_code {
            return None;
        }
        let reserves = |&other: &PodId| {
            other != self.pod && (snapshot.pod(other).nominated == Some(node) || may_run(snapshot, other, node))
        };
        let other = snapshot.nominees(node).iter().copied().find(reserves)?;
        Some(Law::NodeReserved { pod: other })
    }
}

/// Whether a DaemonSet pod could ever run on its node within the maxima of its queues.
fn may_run(snapshot: &Snapshot, id: PodId, node: NodeId) -> bool {
    let pod = snapshot.pod(id);
    let (requests, queues) = (snapshot.requests(pod.shape), snapshot.queues());
    let is_large_enough = requests.iter().zip(snapshot.allocatable(node)).all(|(request, offered)| request <= offered);
    let mut limited = pod.queue.into_iter().flat_map(|queue| queues.path(queue));
    is_large_enough
        && pod.terminating.is_none()
        && node::filter_failure(snapshot, snapshot.shape(pod.shape), node).is_none()
        && limited.all(|id| queues.get(id).parent.is_none() || queues.all_over_limit(id, requests).next().is_none())
}

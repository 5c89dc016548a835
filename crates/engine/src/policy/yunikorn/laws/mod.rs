//! The laws of YuniKorn; those with types of their own have a file.

pub(super) mod fence;
pub(super) mod under_guarantee;

use std::collections::BTreeSet;

use crate::decision::EvictionReason;
use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, QueueId, ResourceId, Timestamp};
use crate::laws::{self, Law};
use crate::queues::UNDEFINED;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;
use fence::FenceScope;

/// docs/rules/yunikorn.md#y3, docs/rules/yunikorn.md#y17: a pod preempts only after the delay of its queue. A DaemonSet pod need not wait.
pub(super) fn delay(snapshot: &Snapshot, pod: PodId, now: Timestamp) -> Option<Law> {
    let pod = snapshot.pod(pod);
    if pod.daemon {
        return None;
    }
    let until = pod.created.plus_micros(snapshot.queues().get(pod.queue?).delay_micros);
    (now < until).then_some(Law::PreemptionDelay { until })
}

/// docs/rules/yunikorn.md#y7, docs/rules/yunikorn.md#y17: a terminating pod is not taken again, and a DaemonSet pod is never taken.
pub(super) fn terminating(snapshot: &Snapshot, pod: PodId) -> Option<Law> {
    let pod = snapshot.pod(pod);
    pod.terminating.map(|_| Law::Terminating).or(pod.daemon.then_some(Law::DaemonSet))
}

/// docs/rules/yunikorn.md#y7: no pod of the preemptor's queue is taken, because preemption is between queues only.
pub(super) fn same_queue(queue: QueueId, scope: &FenceScope) -> Option<Law> {
    scope.is_own(queue).then_some(Law::SameQueue)
}

/// docs/rules/yunikorn.md#y9: only a queue over its guarantee loses pods: it has no guarantee, or uses more than it of a requested
/// resource. Returns which of the two it is, or the law that spares its pods.
pub(super) fn over_guarantee(what_if: &WhatIf<'_>, preemptor: PodId, queue: QueueId) -> Result<EvictionReason, Law> {
    let snapshot = what_if.snapshot();
    let requests = snapshot.requests(snapshot.pod(preemptor).shape);
    let own = snapshot.pod(preemptor).queue;
    match own.and_then(|own| snapshot.queues().guarantee_headroom(queue, own)) {
        None => Ok(EvictionReason::NoGuarantee { queue }),
        Some(headroom) if headroom.is_overdrawn(requests) => Ok(EvictionReason::OverGuarantee { queue }),
        Some(headroom) => {
            let has_lost = has_lost(what_if, queue);
            Err(Law::NotOverGuarantee { queue, left: headroom.least(requests), has_lost })
        }
    }
}

/// docs/rules/yunikorn.md#y9: no queue is left with less than its guarantee: neither the victim's queue nor an ancestor within the fence,
/// unless the preemptor fills it again. Only the victim's resources count.
pub(super) fn would_break_guarantee(what_if: &WhatIf<'_>, pod: PodId, scope: &FenceScope) -> Option<Law> {
    let snapshot = what_if.snapshot();
    let queues = snapshot.queues();
    let amounts = snapshot.requests(snapshot.pod(pod).shape);
    let path = queues.path(snapshot.pod(pod).queue?);
    let mut losing = path.take_while(|&id| Some(id) != scope.root()).filter(|&id| !scope.is_own(id));
    losing.find_map(|queue| {
        amounts.iter().enumerate().filter(|(_, amount)| **amount > 0).find_map(|(index, amount)| {
            let guarantee = queues.get(queue).guarantee[index];
            let after = queues.used_without_terminating(queue, index) - amount;
            let resource = ResourceId::new(index);
            (guarantee != UNDEFINED && after < guarantee).then(|| {
                let has_lost = has_lost(what_if, queue);
                Law::WouldBreakGuarantee { queue, resource, guarantee, after, has_lost }
            })
        })
    })
}

/// Whether pods of the queue are removed.
fn has_lost(what_if: &WhatIf<'_>, queue: QueueId) -> bool {
    let snapshot = what_if.snapshot();
    let of_queue = |own: QueueId| snapshot.queues().path(own).any(|id| id == queue);
    what_if.removed().any(|pod| snapshot.pod(pod).queue.is_some_and(of_queue))
}

/// docs/rules/yunikorn.md#y6: only pods of lower or equal priority are taken, compared with the priority offsets and fences of the queues
/// between them.
pub(super) fn priority(snapshot: &Snapshot, pod: PodId, queue: QueueId, scope: &FenceScope) -> Option<Law> {
    let candidate = snapshot.pod(pod).priority;
    (!scope.allows(queue, candidate)).then(|| Law::HigherPriority { candidate, limit: scope.limit(queue) })
}

/// docs/rules/yunikorn.md#y7: no pod of the preemptor's application is taken from another queue, and no pod of its gang.
pub(super) fn same_application(snapshot: &Snapshot, preemptor: PodId, pod: PodId) -> Option<Law> {
    let (own, other) = (snapshot.pod(preemptor), snapshot.pod(pod));
    if own.application.is_some() && own.application == other.application {
        return Some(Law::SameApplication);
    }
    (own.group.is_some() && own.group == other.group).then_some(Law::SameJob)
}

/// docs/rules/yunikorn.md#y3: while pods terminate whose room the preemptor counts on, it preempts no others. These are the pods on its
/// nominated node, unless the node no longer accepts it, and those that are recorded as its victims.
pub(super) fn own_victims_leave(snapshot: &Snapshot, preemptor: &Preemptor, pod: PodId) -> Option<Law> {
    let own = snapshot.pod(pod);
    let node = own.nominated.filter(|&node| preemptor.node_failure(snapshot, pod, node).is_none());
    let on_node = node.into_iter().flat_map(|node| snapshot.pods_on(node));
    let recorded = snapshot.marked().filter(|&id| snapshot.pod(id).marked_for == own.recorded_as);
    let leaving = on_node.chain(recorded).filter(|&id| snapshot.pod(id).terminating.is_some());
    laws::in_progress::law(snapshot, Vec::from_iter(leaving.collect::<BTreeSet<PodId>>()))
}

/// docs/rules/yunikorn.md#y3: as the code of YuniKorn, the preemptor waits for all terminating pods on its nominated node and in the queues
/// that it may take from.
pub(super) fn in_progress(snapshot: &Snapshot, node: Option<NodeId>, scope: &FenceScope) -> Option<Law> {
    let node = node?;
    let queues = snapshot.queues();
    let in_scope = |queue| scope.root().is_some_and(|root| queues.path(queue).any(|id| id == root));
    let terminating: Vec<PodId> = (0..snapshot.n_pods())
        .map(PodId::new)
        .filter(|&pod| snapshot.pod(pod).terminating.is_some())
        .filter(|&pod| snapshot.bound_node(pod) == Some(node) || snapshot.pod(pod).queue.is_some_and(in_scope))
        .collect();
    laws::in_progress::law(snapshot, terminating)
}

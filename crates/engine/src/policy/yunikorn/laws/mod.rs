//! The laws of YuniKorn; those with types of their own have a file.

pub(super) mod fence;
pub(super) mod under_guarantee;

use crate::ids::{NodeId, PodId, QueueId, ResourceId, Timestamp};
use crate::laws::{self, Law};
use crate::queues::UNDEFINED;
use crate::snapshot::Snapshot;
use fence::FenceScope;

/// A pod preempts only after it has waited as long as its queue says. A DaemonSet's pod need not wait. (Rules 3 and 17.)
pub(super) fn delay(snapshot: &Snapshot, pod: PodId, now: Timestamp) -> Option<Law> {
    let pod = snapshot.pod(pod);
    if pod.daemon {
        return None;
    }
    let until = pod.created.plus_micros(snapshot.queues().get(pod.queue?).delay_micros);
    (now < until).then_some(Law::PreemptionDelay { until })
}

/// Who is leaving already is not taken again, and a DaemonSet's pod is never taken. (Rules 7 and 17.)
pub(super) fn terminating(snapshot: &Snapshot, pod: PodId) -> Option<Law> {
    let pod = snapshot.pod(pod);
    pod.terminating.map(|_| Law::Terminating).or(pod.daemon.then_some(Law::DaemonSet))
}

/// Law 3: nobody is taken within one application; and, because preemption is between queues only, nobody within one queue. (Rule 7
/// of YuniKorn.)
pub(super) fn same_queue(queue: QueueId, reach: &FenceScope) -> Option<Law> {
    reach.is_own(queue).then_some(Law::SameQueue)
}

/// Law 5: only a queue that is over its guarantee loses pods: it has no guarantee, or uses more than it in something that is asked
/// for. (Rule 9 of YuniKorn.)
pub(super) fn over_guarantee(snapshot: &Snapshot, preemptor: PodId, queue: QueueId) -> Option<Law> {
    let wants = snapshot.requests(snapshot.pod(preemptor).shape);
    let left = snapshot.queues().guarantee_headroom(queue, snapshot.pod(preemptor).queue?)?;
    (!left.is_overdrawn(wants)).then(|| Law::NotOverGuarantee { queue, left: left.least(wants) })
}

/// Law 2: no queue is left with less than its guarantee: neither the victim's, nor one above it within the fence, unless the
/// preemptor fills it again. Only what the victim uses counts. (Rule 9 of YuniKorn.)
pub(super) fn would_break_guarantee(snapshot: &Snapshot, pod: PodId, reach: &FenceScope) -> Option<Law> {
    let queues = snapshot.queues();
    let takes = snapshot.requests(snapshot.pod(pod).shape);
    let path = queues.path(snapshot.pod(pod).queue?);
    let mut losing = path.take_while(|&id| Some(id) != reach.root()).filter(|&id| !reach.is_own(id));
    losing.find_map(|queue| {
        takes.iter().enumerate().filter(|(_, take)| **take > 0).find_map(|(at, take)| {
            let guarantee = queues.get(queue).guarantee[at];
            let after = queues.used_without_terminating(queue, at) - take;
            let resource = ResourceId::new(at);
            (guarantee != UNDEFINED && after < guarantee).then_some(Law::WouldBreakGuarantee {
                queue,
                resource,
                guarantee,
                after,
            })
        })
    })
}

/// Law 6: only lower or equal priority is taken, compared through the priority rules of the queues in between. (Rule 6 of YuniKorn.)
pub(super) fn priority(snapshot: &Snapshot, pod: PodId, queue: QueueId, reach: &FenceScope) -> Option<Law> {
    let candidate = snapshot.pod(pod).priority;
    (!reach.allows(queue, candidate)).then(|| Law::HigherPriority { candidate, limit: reach.limit(queue) })
}

/// While pods leave that may be leaving for the preemptor, it causes no second round. (Rule 3 of YuniKorn.)
/// Who leaves the node that a pod is nominated to, or a queue that it may take from, may be leaving for it.
pub(super) fn in_progress(snapshot: &Snapshot, node: Option<NodeId>, reach: &FenceScope) -> Option<Law> {
    let node = node?;
    let queues = snapshot.queues();
    let in_reach = |queue| reach.root().is_some_and(|root| queues.path(queue).any(|id| id == root));
    let leaving: Vec<PodId> = (0..snapshot.n_pods())
        .map(PodId::new)
        .filter(|&pod| snapshot.pod(pod).terminating.is_some())
        .filter(|&pod| snapshot.bound_node(pod) == Some(node) || snapshot.pod(pod).queue.is_some_and(in_reach))
        .collect();
    laws::in_progress::law(snapshot, leaving)
}

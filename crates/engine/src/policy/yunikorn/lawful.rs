//! Whom the laws let a pod take, and in which order.

use std::cmp::Reverse;

use super::Search;
use crate::ids::{PodId, Priority, QueueId};
use crate::laws::{
    self, Law, fence, keeps_guarantee, leaving, lower_or_equal, over_guarantee, own_queue, unknown_class,
};
use crate::snapshot::Pod;

impl Search<'_, '_, '_> {
    /// The law that spares a pod before anybody is taken. (Rules 5 to 9; rule 17 for a DaemonSet's pod.)
    pub(super) fn spares(&self, pod: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let common = self.pod_spares(pod);
        if self.is_daemon() {
            let priority = snapshot.pod(pod).priority;
            return common.or_else(|| (priority > self.ask.priority).then_some(Law::Priority { candidate: priority }));
        }
        common.or_else(|| self.queue_spares(pod)).or_else(|| {
            let queue = snapshot.pod(pod).queue?;
            over_guarantee::spares(snapshot, self.pod, queue)
                .or_else(|| keeps_guarantee::spares(snapshot, pod, &self.reach))
        })
    }

    /// Whether no law spares the pod before anybody is taken.
    pub(super) fn may_go(&self, pod: PodId) -> bool {
        let snapshot = self.snapshot();
        if pod == self.pod || self.is_daemon() {
            return pod != self.pod && self.spares(pod).is_none();
        }
        snapshot.pod(pod).queue.is_some_and(|queue| {
            self.is_open(queue)
                && lower_or_equal::spares(snapshot, pod, queue, &self.reach).is_none()
                && self.pod_spares(pod).is_none()
                && keeps_guarantee::spares(snapshot, pod, &self.reach).is_none()
        })
    }

    /// The laws that look at the pod alone.
    fn pod_spares(&self, pod: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let unit = snapshot.unit_of(pod).map(|unit| snapshot.unit(unit))?;
        leaving::spares(snapshot, pod)
            .or_else(|| laws::protected::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| laws::toleration::spares(snapshot, unit, self.ask, self.now))
    }

    /// The laws that look at the pod's queue, whoever uses what.
    fn queue_spares(&self, pod: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let Some(queue) = snapshot.pod(pod).queue else {
            return Some(Law::NoQueue);
        };
        self.closed_queue(queue).or_else(|| lower_or_equal::spares(snapshot, pod, queue, &self.reach))
    }

    fn closed_queue(&self, queue: QueueId) -> Option<Law> {
        let snapshot = self.snapshot();
        let disabled = !snapshot.queues().get(queue).yields;
        fence::spares(snapshot, queue, &self.reach)
            .or_else(|| own_queue::spares(queue, &self.reach))
            .or_else(|| disabled.then_some(Law::QueueDisabled { queue }))
    }

    /// Laws 5 and 2, given those taken so far.
    pub(super) fn guarantees_allow(&self, pod: PodId) -> bool {
        let snapshot = self.snapshot();
        let queue = snapshot.pod(pod).queue;
        queue.is_none_or(|queue| over_guarantee::spares(snapshot, self.pod, queue).is_none())
            && keeps_guarantee::spares(snapshot, pod, &self.reach).is_none()
    }

    /// Whether the laws that look at a queue alone let it lose a pod. INVARIANT: asked only while nobody is taken.
    fn is_open(&self, queue: QueueId) -> bool {
        let known = &self.open[queue.index()];
        known.get().unwrap_or_else(|| {
            let snapshot = self.snapshot();
            let open =
                self.closed_queue(queue).is_none() && over_guarantee::spares(snapshot, self.pod, queue).is_none();
            known.set(Some(open));
            open
        })
    }

    /// The pods anywhere that no law spares, in the order in which they are taken. (Rule 11.)
    pub(super) fn all_candidates(&self) -> Vec<PodId> {
        let snapshot = self.snapshot();
        let bound = (0..snapshot.n_pods()).map(PodId::new).filter(|&pod| snapshot.pod(pod).node.is_some());
        let mut pods: Vec<PodId> = bound.filter(|&pod| self.may_go(pod)).collect();
        pods.sort_by_cached_key(|&pod| self.order(pod));
        pods
    }

    /// Opted-in first, then non-originators, then the newest. For a DaemonSet's pod: ordinary, opted out, originator; then lower
    /// priority, the newer, the smaller.
    pub(super) fn order(&self, id: PodId) -> impl Ord + use<> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let newest = Reverse(pod.created);
        if self.is_daemon() {
            let kind = if pod.originator { 2 } else { u8::from(opted_out(pod)) };
            let size: Vec<i64> = snapshot.requests(pod.shape).to_vec();
            return (kind, pod.priority, newest, size, pod.rank);
        }
        (2 * u8::from(opted_out(pod)) + u8::from(pod.originator), Priority(0), newest, Vec::new(), pod.rank)
    }
}

/// The word on the pod beats the one on its class. (Rule 18.)
pub(super) fn opted_out(pod: &Pod) -> bool {
    pod.own_opt_out.unwrap_or(pod.opted_out)
}

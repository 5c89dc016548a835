//! The use of nodes and queues and its changes, and small indexes of pods.

use super::{Pod, Snapshot};
use crate::ids::{ApplicationId, NodeId, PodId, QueueId, ShapeId};
use crate::queues::HeldQuota;

impl Snapshot {
    /// Moves a pod and returns the node where it was.
    pub(crate) fn move_to(&mut self, pod: PodId, to: Option<NodeId>) -> Option<NodeId> {
        let from = std::mem::replace(&mut self.cluster.pods[pod.index()].node, to);
        for (node, sign) in from.map(|node| (node, -1)).into_iter().chain(to.map(|node| (node, 1))) {
            self.charge(pod, node, sign);
        }
        from
    }

    pub(super) fn charge(&mut self, pod: PodId, node: NodeId, sign: i64) {
        let n = self.cluster.n_resources;
        let Pod { shape, queue, terminating, .. } = &self.cluster.pods[pod.index()];
        let requests = &self.requests[shape.index() * n..][..n];
        for (used, request) in self.used[node.index() * n..][..n].iter_mut().zip(requests) {
            *used += sign * request;
        }
        if let Some(queue) = *queue {
            self.cluster.queues.charge(queue, requests, sign, terminating.is_some());
        }
    }

    pub(super) fn index_marks_and_applications(&mut self, id: PodId) {
        let pod = &self.cluster.pods[id.index()];
        if pod.marked_for.is_some() {
            self.marked.insert(id);
        }
        if let Some(key) = application_and_queue(pod) {
            *self.pods_of_applications.entry(key).or_default() += 1;
        }
    }

    pub(super) fn unindex_marks_and_applications(&mut self, id: PodId) {
        self.marked.remove(&id);
        let key = application_and_queue(&self.cluster.pods[id.index()]);
        if let Some(key) = key
            && let Some(count) = self.pods_of_applications.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                self.pods_of_applications.remove(&key);
            }
        }
    }

    /// Whether an application has pods in several queues.
    pub fn spans_queues(&self, application: ApplicationId) -> bool {
        let range = (application, QueueId(0))..=(application, QueueId(u32::MAX));
        self.pods_of_applications.range(range).nth(1).is_some()
    }

    /// The pods that are marked as victims.
    pub(crate) fn marked(&self) -> impl Iterator<Item = PodId> + '_ {
        self.marked.iter().copied()
    }

    /// Adds the requests of a pod of this shape to the use of a queue, or subtracts them.
    pub(crate) fn charge_queue(&mut self, queue: QueueId, shape: ShapeId, sign: i64) {
        let n = self.cluster.n_resources;
        self.cluster.queues.charge(queue, &self.requests[shape.index() * n..][..n], sign, false);
    }

    /// By queue and resource: what these pods request.
    pub(crate) fn queue_use(&self, pods: impl IntoIterator<Item = PodId>) -> Vec<i64> {
        let queues = &self.cluster.queues;
        let mut used = vec![0; queues.all_used().len()];
        for pod in pods.into_iter().map(|id| self.pod(id)) {
            let Some(queue) = pod.queue else { continue };
            for (resource, &amount) in self.requests(pod.shape).iter().enumerate() {
                queues.add_to(&mut used, queue, resource, amount);
            }
        }
        used
    }

    /// Counts the quota that nominated pods hold, or no longer counts it.
    pub(crate) fn hold_quota(&mut self, held: &HeldQuota, sign: i64) {
        self.cluster.queues.hold(held, sign);
    }
}

fn application_and_queue(pod: &Pod) -> Option<(ApplicationId, QueueId)> {
    Some((pod.application?, pod.queue?))
}

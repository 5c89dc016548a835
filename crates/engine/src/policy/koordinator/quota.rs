//! The limits of a job's quota: min for non-preemptible pods, max for all, and the max of every ancestor. An ElasticQuota is a queue of the
//! engine: its min is the guarantee, its max the limit.

use super::Search;
use crate::filters::FilterFailure;
use crate::fit::{Shortage, shortages_below_limit};
use crate::ids::{PodId, QueueId, ResourceId};
use crate::laws::Law;
use crate::queues::UNDEFINED;
use crate::snapshot::{Pod, Snapshot};

/// Which limits a check covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaCheck {
    /// To run now: the limits of the job's own quota and the max of every ancestor.
    Run,
    /// To start a preemption: only the limits of the job's own quota, and for non-preemptible pods only its min.
    Trigger,
}

/// Indexed by resource: what the running non-preemptible pods of the job's own quota use, and what all of them request, pending pods included.
#[derive(Default)]
pub(super) struct NonPreemptibleUse {
    pub(super) used: Vec<i64>,
    pub(super) request: Vec<i64>,
}

impl Search<'_, '_, '_> {
    /// docs/rules/koordinator.md#q3 to docs/rules/koordinator.md#q6: the limit that the job would exceed.
    pub(super) fn over_limit(&self, purpose: QuotaCheck) -> Option<Law> {
        let snapshot = self.snapshot();
        let queue = self.queue()?;
        let tree = snapshot.queues();
        let requests = self.total_requests(&self.preemptor.members);
        let NonPreemptibleUse { used: non_preemptible_used, request: non_preemptible_request } = &self.non_preemptible;
        let limits = tree.get(queue);
        let used = tree.used(queue);
        let preemptible = self.is_preemptible(self.pod);
        let mut over = Vec::new();
        for (index, request) in requests.iter().enumerate().filter(|(index, _)| limits.limit[*index] != UNDEFINED) {
            let (min, max) = (limits.guarantee[index], limits.limit[index]);
            let excess_over =
                |amount: i64, limit: i64| (limit != UNDEFINED && amount > limit).then_some(amount - limit);
            let excess = if preemptible {
                // Non-preemptible pods reserve what they request, at most min.
                let reserved = if min == UNDEFINED {
                    non_preemptible_request[index]
                } else {
                    min.min(non_preemptible_request[index])
                };
                excess_over(reserved + (used[index] - non_preemptible_used[index]) + request, max)
            } else {
                let run = (purpose == QuotaCheck::Run).then(|| excess_over(used[index] + request, max)).flatten();
                excess_over(non_preemptible_used[index] + request, min).or(run)
            };
            over.extend(excess.map(|excess| (ResourceId::new(index), excess)));
        }
        let own = (!over.is_empty()).then_some(Law::QuotaLimit { queue, over });
        match purpose {
            QuotaCheck::Run => own.or_else(|| self.over_limit_of_ancestors(&requests)),
            QuotaCheck::Trigger => own,
        }
    }

    /// The nearest ancestor whose max the job would exceed.
    fn over_limit_of_ancestors(&self, requests: &[i64]) -> Option<Law> {
        let tree = self.snapshot().queues();
        let parent = tree.get(self.queue()?).parent?;
        let (queue, _, _) = tree.over_limit(parent, requests)?;
        Some(Law::QuotaLimit { queue, over: tree.all_over_limit(queue, requests).collect() })
    }

    /// docs/rules/koordinator.md#q9: the max that the members without a node would exceed. The caller has
    /// removed all candidates from the snapshot, so no preemption can help.
    pub(super) fn over_limit_without_candidates(&self, rest: &[PodId]) -> Option<Law> {
        let queue = self.queue()?;
        let requests = self.total_requests(rest);
        let tree = self.snapshot().queues();
        let (limit, used) = (&tree.get(queue).limit, tree.used(queue));
        let own = (0..requests.len())
            .filter(|&index| limit[index] != UNDEFINED && used[index] + requests[index] > limit[index]);
        let over: Vec<(ResourceId, i64)> =
            own.map(|index| (ResourceId::new(index), used[index] + requests[index] - limit[index])).collect();
        (!over.is_empty())
            .then_some(Law::QuotaLimit { queue, over })
            .or_else(|| self.over_limit_of_ancestors(&requests))
    }

    /// Indexed by resource: the total requests of these pods.
    pub(super) fn total_requests(&self, pods: &[PodId]) -> Vec<i64> {
        let snapshot = self.snapshot();
        let mut total = vec![0; snapshot.resource_ids().len()];
        for &pod in pods {
            for (total, request) in total.iter_mut().zip(snapshot.requests(snapshot.pod(pod).shape)) {
                *total += request;
            }
        }
        total
    }

    /// Indexed by queue: whether evicting its pods helps the preemptor. It does if the queue is, or is below, a quota on the preemptor's path
    /// whose max has no room for the members without a node. The caller has removed no candidate yet.
    pub(super) fn queues_over_limit(&self, rest: &[PodId]) -> Vec<bool> {
        let tree = self.snapshot().queues();
        let requests = self.total_requests(rest);
        let mut over_limit = vec![false; tree.ids().len()];
        for id in self.queue().into_iter().flat_map(|own| tree.path(own)) {
            let (limit, used) = (&tree.get(id).limit, tree.used(id));
            over_limit[id.index()] = (0..requests.len())
                .any(|index| limit[index] != UNDEFINED && used[index] + requests[index] > limit[index]);
        }
        for id in tree.ids() {
            // Parents come before their children.
            let parent_is_over = tree.get(id).parent.is_some_and(|parent| over_limit[parent.index()]);
            over_limit[id.index()] |= parent_is_over;
        }
        over_limit
    }

    /// The bound pods that another operator was asked to delete, and that use a quota whose max has no room for the job.
    pub(super) fn soft_evicted_of_quotas(&self) -> impl Iterator<Item = PodId> {
        let (snapshot, over_limit) = (self.snapshot(), self.queues_over_limit(&self.preemptor.members));
        (0..snapshot.n_pods()).map(PodId::new).filter(move |&id| {
            let pod = snapshot.pod(id);
            pod.soft_evicted && pod.node.is_some() && pod.queue.is_some_and(|queue| over_limit[queue.index()])
        })
    }

    pub(super) fn non_preemptible_use(&self) -> NonPreemptibleUse {
        let snapshot = self.snapshot();
        let zeros = vec![0; snapshot.resource_ids().len()];
        let mut total = NonPreemptibleUse { used: zeros.clone(), request: zeros };
        let Some(queue) = self.queue() else { return total };
        let counts = |id: &PodId| snapshot.pod(*id).queue == Some(queue) && !self.is_preemptible(*id);
        for pod in (0..snapshot.n_pods()).map(PodId::new).filter(counts).map(|id| snapshot.pod(id)) {
            for (index, request) in snapshot.requests(pod.shape).iter().enumerate() {
                total.request[index] += request;
                if pod.node.is_some() || self.holds_quota(pod) {
                    total.used[index] += request;
                }
            }
        }
        total
    }

    /// docs/rules/koordinator.md#q3: adds the nominated pods of other jobs to the use of their quotas.
    pub(super) fn charge_nominated(&mut self) {
        let snapshot = self.snapshot();
        let nominated = snapshot.node_ids().flat_map(|node| snapshot.nominees(node)).map(|&id| snapshot.pod(id));
        let nominated = nominated.filter(|pod| self.holds_quota(pod));
        let charges: Vec<_> = nominated.filter_map(|pod| Some((pod.queue?, pod.shape))).collect();
        for (queue, shape) in charges {
            self.what_if.charge(queue, shape);
        }
    }

    /// docs/rules/koordinator.md#q3: whether a pending pod of another job counts as used in its quota.
    fn holds_quota(&self, pod: &Pod) -> bool {
        let is_own = pod.rank == self.snapshot().pod(self.pod).rank || pod.job.is_some() && pod.job == self.job();
        pod.node.is_none() && pod.nominated.is_some() && pod.terminating.is_none() && !is_own
    }
}

/// Every resource of which the reprieve of this victim would exceed the max of this quota.
pub(super) fn over_quota(snapshot: &Snapshot, pod: PodId, queue: QueueId) -> Vec<Shortage> {
    shortages_below_limit(snapshot.queues(), queue, snapshot.requests(snapshot.pod(pod).shape))
}

/// The max of a quota on the preemptor's path (`own`) that the reprieve of this victim would exceed.
pub(super) fn quota_failure(snapshot: &Snapshot, pod: PodId, own: &[QueueId]) -> Option<FilterFailure> {
    let tree = snapshot.queues();
    let requests = snapshot.requests(snapshot.pod(pod).shape);
    let shared = tree.path(snapshot.pod(pod).queue?).find(|queue| own.contains(queue))?;
    let (queue, resource, over) = tree.over_limit(shared, requests)?;
    Some(FilterFailure::QueueLimit { queue, resource, over })
}

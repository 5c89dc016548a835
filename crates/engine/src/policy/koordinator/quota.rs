//! The limits of a job's quota: min for those who cannot be preempted, max for all, and the max of every quota above.

use super::Search;
use crate::filters::FilterFailure;
use crate::fit::{Shortage, shortages_below_limit};
use crate::ids::{PodId, QueueId, ResourceId};
use crate::laws::Law;
use crate::queues::UNDEFINED;
use crate::snapshot::Snapshot;

/// What quota is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaCheck {
    Run,
    Trigger,
}

/// What those of the asking quota who cannot be preempted use, and what they ask for, pending ones included; by resource.
pub(super) struct NonPreemptibleUse {
    pub(super) used: Vec<i64>,
    pub(super) request: Vec<i64>,
}

impl Search<'_, '_, '_> {
    /// The limit that the job would pass, if any. (Rules 3 to 6.)
    pub(super) fn over_limit(&self, purpose: QuotaCheck) -> Option<Law> {
        let snapshot = self.snapshot();
        let queue = self.queue()?;
        let tree = snapshot.queues();
        let asked = self.total_requests(&self.ask.members);
        let NonPreemptibleUse { used: firm, request: firm_request } = &self.non_preemptible;
        let limits = tree.get(queue);
        let used = tree.used(queue);
        let preemptible = self.is_preemptible(self.pod);
        let mut over = Vec::new();
        for (at, asked) in asked.iter().enumerate().filter(|(at, _)| limits.limit[*at] != UNDEFINED) {
            let (min, max) = (limits.guarantee[at], limits.limit[at]);
            let above = |amount: i64, limit: i64| (limit != UNDEFINED && amount > limit).then_some(amount - limit);
            let passed = if preemptible {
                let reserved = if min == UNDEFINED { firm_request[at] } else { min.min(firm_request[at]) };
                above(reserved + (used[at] - firm[at]) + asked, max)
            } else {
                let run = (purpose == QuotaCheck::Run).then(|| above(used[at] + asked, max)).flatten();
                above(firm[at] + asked, min).or(run)
            };
            over.extend(passed.map(|passed| (ResourceId::new(at), passed)));
        }
        let own = (!over.is_empty()).then_some(Law::QuotaLimit { queue, over });
        match purpose {
            QuotaCheck::Run => own.or_else(|| self.over_limit_of_parents(&asked)),
            QuotaCheck::Trigger => own,
        }
    }

    /// The quota above that the job would take over its max.
    fn over_limit_of_parents(&self, asked: &[i64]) -> Option<Law> {
        let tree = self.snapshot().queues();
        let parent = tree.get(self.queue()?).parent?;
        let (queue, _, _) = tree.over_limit(parent, asked)?;
        Some(Law::QuotaLimit { queue, over: tree.all_over_limit(queue, asked).collect() })
    }

    /// With all victims gone, whether the rest of the job still passes a limit. (Rule 9.)
    pub(super) fn over_limit_without_victims(&self, rest: &[PodId]) -> Option<Law> {
        let queue = self.queue()?;
        let asked = self.total_requests(rest);
        let tree = self.snapshot().queues();
        let (ceiling, used) = (&tree.get(queue).limit, tree.used(queue));
        let own = (0..asked.len()).filter(|&at| ceiling[at] != UNDEFINED && used[at] + asked[at] > ceiling[at]);
        let over: Vec<(ResourceId, i64)> =
            own.map(|at| (ResourceId::new(at), used[at] + asked[at] - ceiling[at])).collect();
        (!over.is_empty()).then_some(Law::QuotaLimit { queue, over }).or_else(|| self.over_limit_of_parents(&asked))
    }

    /// What these pods ask for together.
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

    /// By queue: whether its pods count in a quota of the asking pod that has no room for the rest of the job and all who run.
    pub(super) fn queues_over_limit(&self, rest: &[PodId]) -> Vec<bool> {
        let tree = self.snapshot().queues();
        let asked = self.total_requests(rest);
        let mut tight = vec![false; tree.ids().len()];
        for id in self.queue().into_iter().flat_map(|own| tree.path(own)) {
            let (ceiling, used) = (&tree.get(id).limit, tree.used(id));
            tight[id.index()] =
                (0..asked.len()).any(|at| ceiling[at] != UNDEFINED && used[at] + asked[at] > ceiling[at]);
        }
        for id in tree.ids() {
            let above = tree.get(id).parent.is_some_and(|parent| tight[parent.index()]);
            tight[id.index()] |= above;
        }
        tight
    }

    pub(super) fn non_preemptible_use(&self, queue: QueueId) -> NonPreemptibleUse {
        let snapshot = self.snapshot();
        let mut firm = NonPreemptibleUse {
            used: self.non_preemptible.used.clone(),
            request: self.non_preemptible.request.clone(),
        };
        for id in (0..snapshot.n_pods()).map(PodId::new) {
            let pod = snapshot.pod(id);
            if pod.queue != Some(queue) || self.is_preemptible(id) {
                continue;
            }
            for (at, request) in snapshot.requests(pod.shape).iter().enumerate() {
                firm.request[at] += request;
                if pod.node.is_some() {
                    firm.used[at] += request;
                }
            }
        }
        firm
    }
}

/// Every resource of which the pod's return would pass the limit of this quota.
pub(super) fn over_quota(snapshot: &Snapshot, pod: PodId, queue: QueueId) -> Vec<Shortage> {
    shortages_below_limit(snapshot.queues(), queue, snapshot.requests(snapshot.pod(pod).shape))
}

/// The limit of the preemptor's quotas that the pod's return would pass.
pub(super) fn quota_failure(snapshot: &Snapshot, pod: PodId, own: &[QueueId]) -> Option<FilterFailure> {
    let tree = snapshot.queues();
    let requests = snapshot.requests(snapshot.pod(pod).shape);
    let shared = tree.path(snapshot.pod(pod).queue?).find(|queue| own.contains(queue))?;
    let (queue, resource, over) = tree.over_limit(shared, requests)?;
    Some(FilterFailure::QueueLimit { queue, resource, over })
}

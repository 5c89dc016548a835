//! What is used, lent and available in the tree, while workloads are taken and put back. (Rules 1 to 6 of the cohort trees.)

use crate::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::PreemptionReason;
use crate::queues::QueueTree;
use crate::snapshot::Snapshot;
use crate::workloads::QuotaRules;

/// The use of the tree, as it would be.
pub(super) struct QuotaUsage<'a> {
    pub snapshot: &'a Snapshot,
    pub tree: &'a QueueTree,
    pub rules: &'a QuotaRules,
    used: Vec<i64>,
    n_pairs: usize,
}

impl<'a> QuotaUsage<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let tree = snapshot.queues();
        Self {
            snapshot,
            tree,
            rules: snapshot.quota_rules(),
            used: tree.all_used().to_vec(),
            n_pairs: tree.n_resources(),
        }
    }

    pub fn take(&mut self, workload: WorkloadId) {
        self.change(workload, -1);
    }

    pub fn put_back(&mut self, workload: WorkloadId) {
        self.change(workload, 1);
    }

    fn change(&mut self, workload: WorkloadId, sign: i64) {
        let workload = self.snapshot.workload(workload);
        if let (Some(queue), Some(admission)) = (workload.queue, &workload.admission) {
            self.charge(queue, &admission.usage, sign);
        }
    }

    /// What `look` returns while these are gone.
    pub fn without<T>(&mut self, gone: &[(WorkloadId, PreemptionReason)], look: impl FnOnce(&mut Self) -> T) -> T {
        for (workload, _) in gone {
            self.take(*workload);
        }
        let seen = look(self);
        self.put_back_all(gone);
        seen
    }

    pub fn put_back_all(&mut self, workloads: &[(WorkloadId, PreemptionReason)]) {
        for (workload, _) in workloads {
            self.put_back(*workload);
        }
    }

    /// Adds the requests to the use of a queue, or takes them away.
    pub fn charge(&mut self, queue: QueueId, requests: &[(FlavorResourceId, i64)], sign: i64) {
        for &(pair, amount) in requests {
            self.tree.add_to(&mut self.used, queue, pair.index(), sign * amount);
        }
    }

    /// Where a queue's pair stands in the tables.
    fn index(&self, queue: QueueId, pair: FlavorResourceId) -> usize {
        queue.index() * self.n_pairs + pair.index()
    }

    pub fn used(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.used[self.index(queue, pair)]
    }

    /// What is used beyond what the queue has of its own.
    pub fn borrowed(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        (self.used(queue, pair) - self.nominal(queue, pair)).max(0)
    }

    /// Whether the queue, which is no root, borrows anything.
    pub fn is_borrowing(&self, queue: QueueId) -> bool {
        let has_parent = self.tree.get(queue).parent.is_some();
        has_parent && (0..self.n_pairs).any(|pair| self.borrowed(queue, FlavorResourceId::new(pair)) > 0)
    }

    /// What the queue, or everything below it, has of its own.
    pub fn nominal(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.rules.nominal[self.index(queue, pair)]
    }

    /// The part of it that is not lent.
    pub fn local_quota(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.tree.get(queue).local_quota[pair.index()]
    }

    /// What is free of the part that is not lent.
    pub fn free_local_quota(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        (self.local_quota(queue, pair) - self.used(queue, pair)).max(0)
    }

    fn borrowing_limit(&self, queue: QueueId, pair: FlavorResourceId) -> Option<i64> {
        self.rules.queues[queue.index()].borrowing_limit[pair.index()]
    }

    /// What is available to the queue; it may be negative.
    pub fn available(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        let Some(parent) = self.tree.get(queue).parent else {
            return self.nominal(queue, pair) - self.used(queue, pair);
        };
        let mut above = self.available(parent, pair);
        if let Some(limit) = self.borrowing_limit(queue, pair) {
            let (kept, used) = (self.local_quota(queue, pair), self.used(queue, pair));
            let lent = self.nominal(queue, pair) - kept;
            above = above.min((lent - (used - kept).max(0)).saturating_add(limit));
        }
        self.free_local_quota(queue, pair) + above
    }

    /// What could be available to the queue if nobody used anything.
    pub fn potential(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.rules.potential[self.index(queue, pair)]
    }

    /// The lowest subtree, from the queue upwards, in which so much more fits; `None` where not even the whole tree will do.
    pub fn lowest_subtree_that_fits(&self, queue: QueueId, pair: FlavorResourceId, amount: i64) -> Option<QueueId> {
        let mut rest = amount;
        self.tree.path(queue).find(|&id| {
            let fits = self.used(id, pair) + rest <= self.nominal(id, pair);
            rest -= self.free_local_quota(id, pair);
            fits
        })
    }

    /// How far up the queue borrows for so much more.
    pub fn borrowing_level(&self, queue: QueueId, pair: FlavorResourceId, amount: i64) -> usize {
        let subtree = self.lowest_subtree_that_fits(queue, pair, amount).unwrap_or_else(|| self.tree.root(queue));
        self.rules.heights[subtree.index()]
    }

    /// The queues directly below one.
    pub fn children(&self, id: QueueId) -> &'a [QueueId] {
        &self.rules.children[id.index()]
    }

    /// The workloads that hold a queue's quota.
    pub fn workloads_of(&self, id: QueueId) -> &'a [WorkloadId] {
        &self.rules.admitted[id.index()]
    }

    /// Whether the queue uses no more than its own of any of these pairs.
    pub fn is_within_nominal(&self, queue: QueueId, pairs: &[FlavorResourceId]) -> bool {
        pairs.iter().all(|&pair| self.used(queue, pair) <= self.nominal(queue, pair))
    }

    /// The law that spares a queue, or a cohort, that borrows nothing.
    pub fn within_quota(&self, queue: QueueId) -> Law {
        let before = self.tree.used(queue);
        let has_lost =
            (0..self.n_pairs).any(|pair| self.used[self.index(queue, FlavorResourceId::new(pair))] < before[pair]);
        Law::WithinQuota { queue, has_lost }
    }

    /// Whether all requests are available, and, unless it may borrow, within what the queue has of its own.
    pub fn fits(&self, queue: QueueId, requests: &[(FlavorResourceId, i64)], may_borrow: bool) -> bool {
        requests.iter().all(|&(pair, amount)| {
            amount <= self.available(queue, pair).max(0)
                && (may_borrow || self.used(queue, pair) + amount <= self.nominal(queue, pair))
        })
    }
}

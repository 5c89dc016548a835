//! docs/rules/kueue-cohorts.md#c1 to docs/rules/kueue-cohorts.md#c6: usage and availability of quota in the tree, while a search takes
//! workloads and puts them back.

use crate::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::{Request, Victim};
use crate::queues::QueueTree;
use crate::snapshot::Snapshot;
use crate::workloads::QuotaRules;

/// The usage of the tree with tentative changes.
pub(super) struct QuotaUsage<'a> {
    pub snapshot: &'a Snapshot,
    pub tree: &'a QueueTree,
    pub rules: &'a QuotaRules,
    used: Vec<i64>,
    n_pairs: usize,
}

impl<'a> QuotaUsage<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let (tree, rules) = (snapshot.queues(), snapshot.quota_rules());
        Self { snapshot, tree, rules, used: tree.all_used().to_vec(), n_pairs: tree.n_resources() }
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

    /// Calls `look` while these workloads are taken.
    pub fn without<T>(&mut self, victims: &[Victim], look: impl FnOnce(&mut Self) -> T) -> T {
        for (workload, _) in victims {
            self.take(*workload);
        }
        let result = look(self);
        self.put_back_all(victims);
        result
    }

    pub fn put_back_all(&mut self, workloads: &[Victim]) {
        for (workload, _) in workloads {
            self.put_back(*workload);
        }
    }

    /// Adds the requests to the usage of a queue, or subtracts them.
    pub fn charge(&mut self, queue: QueueId, requests: &[Request], sign: i64) {
        for &(pair, amount) in requests {
            self.tree.add_to(&mut self.used, queue, pair.index(), sign * amount);
        }
    }

    /// The index of a queue's pair in the tables.
    fn index(&self, queue: QueueId, pair: FlavorResourceId) -> usize {
        queue.index() * self.n_pairs + pair.index()
    }

    pub fn used(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.used[self.index(queue, pair)]
    }

    /// The usage above the nominal quota.
    pub fn borrowed(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        (self.used(queue, pair) - self.nominal(queue, pair)).max(0)
    }

    /// Whether the queue has a parent and borrows any pair.
    pub fn is_borrowing(&self, queue: QueueId) -> bool {
        let has_parent = self.tree.get(queue).parent.is_some();
        has_parent && (0..self.n_pairs).any(|pair| self.borrowed(queue, FlavorResourceId::new(pair)) > 0)
    }

    /// The nominal quota of the queue, or of the subtree of a cohort.
    pub fn nominal(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.rules.nominal[self.index(queue, pair)]
    }

    /// The part of the nominal quota that is not lent.
    pub fn local_quota(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.tree.get(queue).local_quota[pair.index()]
    }

    /// The unused part of the quota that is not lent.
    pub fn free_local_quota(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        (self.local_quota(queue, pair) - self.used(queue, pair)).max(0)
    }

    /// The quota available to the queue; it may be negative.
    pub fn available(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        let Some(parent) = self.tree.get(queue).parent else {
            return self.nominal(queue, pair) - self.used(queue, pair);
        };
        let mut above = self.available(parent, pair);
        if let Some(limit) = self.rules.queues[queue.index()].borrowing_limit[pair.index()] {
            let (local_quota, used) = (self.local_quota(queue, pair), self.used(queue, pair));
            let lent = self.nominal(queue, pair) - local_quota;
            above = above.min((lent - (used - local_quota).max(0)).saturating_add(limit));
        }
        self.free_local_quota(queue, pair) + above
    }

    /// The quota that would be available to the queue without any usage.
    pub fn potential(&self, queue: QueueId, pair: FlavorResourceId) -> i64 {
        self.rules.potential[self.index(queue, pair)]
    }

    /// The lowest subtree, from the queue up, whose nominal quota has room for this amount; `None` if not even the whole tree has.
    pub fn lowest_subtree_that_fits(&self, queue: QueueId, pair: FlavorResourceId, amount: i64) -> Option<QueueId> {
        let mut rest = amount;
        self.tree.path(queue).find(|&id| {
            let fits = self.used(id, pair) + rest <= self.nominal(id, pair);
            rest -= self.free_local_quota(id, pair);
            fits
        })
    }

    /// The borrowing level of the queue for this amount.
    pub fn borrowing_level(&self, queue: QueueId, pair: FlavorResourceId, amount: i64) -> usize {
        let subtree = self.lowest_subtree_that_fits(queue, pair, amount).unwrap_or_else(|| self.tree.root(queue));
        self.rules.heights[subtree.index()]
    }

    /// The children of a queue.
    pub fn children(&self, id: QueueId) -> &'a [QueueId] {
        &self.rules.children[id.index()]
    }

    /// The admitted workloads of a queue.
    pub fn workloads_of(&self, id: QueueId) -> &'a [WorkloadId] {
        &self.rules.admitted[id.index()]
    }

    /// Whether the usage of these pairs is within the nominal quota.
    pub fn is_within_nominal(&self, queue: QueueId, pairs: &[FlavorResourceId]) -> bool {
        pairs.iter().all(|&pair| self.used(queue, pair) <= self.nominal(queue, pair))
    }

    /// The law that spares a queue or cohort that does not borrow.
    pub fn within_quota(&self, queue: QueueId) -> Law {
        let before = self.tree.used(queue);
        let has_lost =
            (0..self.n_pairs).any(|pair| self.used[self.index(queue, FlavorResourceId::new(pair))] < before[pair]);
        Law::WithinQuota { queue, has_lost }
    }

    /// Whether all requests are available and, unless the queue may borrow, within its nominal quota.
    pub fn fits(&self, queue: QueueId, requests: &[Request], may_borrow: bool) -> bool {
        requests.iter().all(|&(pair, amount)| {
            amount <= self.available(queue, pair).max(0)
                && (may_borrow || self.used(queue, pair) + amount <= self.nominal(queue, pair))
        })
    }
}

//! Whose turn it is in a cycle under fair sharing: from the root of a tree down, that branch whose share would be least with its
//! head's request in it; of equals the higher priority, then the older. Shares change as the cycle goes on: whatever a turn changes
//! is put in its new place, and nothing else is looked at.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{Priority, QueueId, Timestamp};
use crate::policy::kueue::cycle::Head;
use crate::policy::kueue::fair::{Share, share};
use crate::policy::kueue::quota_usage::QuotaUsage;

/// The heads that have yet to be considered, one a queue.
pub(super) struct FairOrder {
    heads: BTreeMap<QueueId, Contender>,
    /// By cohort: its branches that have heads, the next first.
    branches: BTreeMap<QueueId, BTreeSet<(FairKey, QueueId)>>,
    /// By branch: the head of it that is next, and its claim.
    firsts: BTreeMap<QueueId, (FairKey, QueueId)>,
}

struct Contender {
    head: Head,
    /// For its queue and each cohort above it but the root: the share with its request.
    shares: Vec<(QueueId, Share)>,
}

/// By what a branch's head comes before another's; the least is next.
type FairKey = (Share, (Reverse<Priority>, Timestamp, u64));

impl FairOrder {
    pub fn new(quota: &mut QuotaUsage<'_>, heads: Vec<Head>) -> Self {
        let mut turns = Self { heads: BTreeMap::new(), branches: BTreeMap::new(), firsts: BTreeMap::new() };
        for head in heads {
            let (queue, shares) = (head.queue, shares(quota, &head));
            turns.heads.insert(queue, Contender { head, shares });
            turns.place(quota, queue);
        }
        turns
    }

    /// The next of the first tree that has any.
    pub fn next(&mut self, quota: &QuotaUsage<'_>) -> Option<Head> {
        let (&first, _) = self.heads.first_key_value()?;
        let root = quota.tree.root(first);
        let winner = self.winner(root).unwrap_or(first);
        let contender = self.heads.remove(&winner)?;
        self.place(quota, winner);
        Some(contender.head)
    }

    /// The use of these queues has changed: whoever is in a cohort with one of them has another share, unless it is only the root.
    pub fn update_shares(&mut self, quota: &mut QuotaUsage<'_>, queues: &[QueueId]) {
        let below_the_root = |&queue: &QueueId| {
            let path: Vec<QueueId> = quota.tree.path(queue).collect();
            path.len().checked_sub(2).map(|at| path[at])
        };
        let touched: BTreeSet<QueueId> = queues.iter().filter_map(below_the_root).collect();
        let mut open: Vec<QueueId> = touched.into_iter().collect();
        while let Some(id) = open.pop() {
            open.extend(quota.children(id));
            let Some(contender) = self.heads.get_mut(&id) else { continue };
            let shares = shares(quota, &contender.head);
            if contender.shares != shares {
                contender.shares = shares;
                self.place(quota, id);
            }
        }
    }

    /// Puts a queue, and the cohorts above it, where they belong now.
    fn place(&mut self, quota: &QuotaUsage<'_>, queue: QueueId) {
        for branch in quota.tree.path(queue) {
            let Some(cohort) = quota.tree.get(branch).parent else { return };
            let first = self.winner(branch).map(|queue| (self.fair_key(quota, branch, queue), queue));
            let branches = self.branches.entry(cohort).or_default();
            let before = match first {
                Some(first) => self.firsts.insert(branch, first),
                None => self.firsts.remove(&branch),
            };
            if let Some((claim, _)) = before {
                branches.remove(&(claim, branch));
            }
            if let Some((claim, _)) = first {
                branches.insert((claim, branch));
            }
        }
    }

    /// The queue in or below `id` whose head is next.
    fn winner(&self, id: QueueId) -> Option<QueueId> {
        if self.heads.contains_key(&id) {
            return Some(id);
        }
        let (_, branch) = self.branches.get(&id)?.first()?;
        self.firsts.get(branch).map(|(_, queue)| *queue)
    }

    fn fair_key(&self, quota: &QuotaUsage<'_>, branch: QueueId, queue: QueueId) -> FairKey {
        let Contender { head, shares } = &self.heads[&queue];
        let share = shares.iter().find(|(id, _)| *id == branch).map_or(Share::NONE, |(_, share)| *share);
        (share, quota.snapshot.workload(head.workload).queue_order())
    }
}

fn shares(quota: &mut QuotaUsage<'_>, head: &Head) -> Vec<(QueueId, Share)> {
    let Some(asks) = &head.decision.requested else { return Vec::new() };
    quota.charge(head.queue, &asks.usage, 1);
    let below_the_root = quota.tree.path(head.queue).filter(|&id| quota.tree.get(id).parent.is_some());
    let shares = below_the_root.map(|id| (id, share(quota, id))).collect();
    quota.charge(head.queue, &asks.usage, -1);
    shares
}

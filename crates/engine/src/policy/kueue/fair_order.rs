//! The order of heads in a cycle under fair sharing: from the root of a tree down, the branch whose share would be least with the request
//! of its head; of equal shares the higher priority, then the older. Shares change during the cycle; after each head only the affected
//! branches are reordered.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{Priority, QueueId, Timestamp};
use crate::policy::kueue::cycle::Head;
use crate::policy::kueue::fair::{Share, share};
use crate::policy::kueue::quota_usage::QuotaUsage;

/// The heads that are not considered yet.
pub(super) struct FairOrder {
    /// By queue: its heads, in order; never empty. Only a waiting workload that keeps quota is followed by others.
    heads: BTreeMap<QueueId, VecDeque<FairHead>>,
    /// By cohort: its branches with heads, in order.
    branches: BTreeMap<QueueId, BTreeSet<(FairKey, QueueId)>>,
    /// By branch: the key and the queue of its next head.
    firsts: BTreeMap<QueueId, (FairKey, QueueId)>,
}

struct FairHead {
    head: Head,
    /// The share of its queue, and of each cohort above it except the root, with its request.
    shares: Vec<(QueueId, Share)>,
}

/// The sort key of a branch; the least is next.
type FairKey = (Share, (Reverse<Priority>, Timestamp, u64));

impl FairOrder {
    pub fn new(quota: &mut QuotaUsage<'_>, heads: Vec<Head>) -> Self {
        let mut order = Self { heads: BTreeMap::new(), branches: BTreeMap::new(), firsts: BTreeMap::new() };
        for head in heads {
            let (queue, shares) = (head.queue, shares(quota, &head));
            order.heads.entry(queue).or_default().push_back(FairHead { head, shares });
            order.place(quota, queue);
        }
        order
    }

    /// Removes and returns the next head of the first tree that has any.
    pub fn next(&mut self, quota: &QuotaUsage<'_>) -> Option<Head> {
        let (&first, _) = self.heads.first_key_value()?;
        let root = quota.tree.root(first);
        let winner = self.winner(root).unwrap_or(first);
        let contenders = self.heads.get_mut(&winner)?;
        let contender = contenders.pop_front()?;
        if contenders.is_empty() {
            self.heads.remove(&winner);
        }
        self.place(quota, winner);
        Some(contender.head)
    }

    /// Updates the order after the usage of these queues changed. Only shares below the same child of the root are affected.
    pub fn update_shares(&mut self, quota: &mut QuotaUsage<'_>, queues: &[QueueId]) {
        let child_of_root = |&queue: &QueueId| {
            let path: Vec<QueueId> = quota.tree.path(queue).collect();
            path.len().checked_sub(2).map(|index| path[index])
        };
        let touched: BTreeSet<QueueId> = queues.iter().filter_map(child_of_root).collect();
        let mut open: Vec<QueueId> = touched.into_iter().collect();
        while let Some(id) = open.pop() {
            open.extend(quota.children(id));
            let Some(contenders) = self.heads.get_mut(&id) else { continue };
            let mut has_changed = false;
            for contender in contenders {
                let shares = shares(quota, &contender.head);
                has_changed |= contender.shares != shares;
                contender.shares = shares;
            }
            if has_changed {
                self.place(quota, id);
            }
        }
    }

    /// Reorders a queue and the cohorts above it.
    fn place(&mut self, quota: &QuotaUsage<'_>, queue: QueueId) {
        for branch in quota.tree.path(queue) {
            let Some(cohort) = quota.tree.get(branch).parent else { return };
            let first = self.winner(branch).and_then(|queue| Some((self.fair_key(quota, branch, queue)?, queue)));
            let branches = self.branches.entry(cohort).or_default();
            let before = match first {
                Some(first) => self.firsts.insert(branch, first),
                None => self.firsts.remove(&branch),
            };
            if let Some((key, _)) = before {
                branches.remove(&(key, branch));
            }
            if let Some((key, _)) = first {
                branches.insert((key, branch));
            }
        }
    }

    /// The queue in or below `id` with the next head.
    fn winner(&self, id: QueueId) -> Option<QueueId> {
        if self.heads.contains_key(&id) {
            return Some(id);
        }
        let (_, branch) = self.branches.get(&id)?.first()?;
        self.firsts.get(branch).map(|(_, queue)| *queue)
    }

    fn fair_key(&self, quota: &QuotaUsage<'_>, branch: QueueId, queue: QueueId) -> Option<FairKey> {
        let FairHead { head, shares } = self.heads.get(&queue)?.front()?;
        let share = shares.iter().find(|(id, _)| *id == branch).map_or(Share::NONE, |(_, share)| *share);
        Some((share, quota.snapshot.workload(head.workload).queue_order()))
    }
}

fn shares(quota: &mut QuotaUsage<'_>, head: &Head) -> Vec<(QueueId, Share)> {
    let Some(requested) = &head.decision.requested else { return Vec::new() };
    quota.charge(head.queue, &requested.usage, 1);
    let child_of_root = quota.tree.path(head.queue).filter(|&id| quota.tree.get(id).parent.is_some());
    let shares = child_of_root.map(|id| (id, share(quota, id))).collect();
    quota.charge(head.queue, &requested.usage, -1);
    shares
}

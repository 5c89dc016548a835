//! Whose turn it is in a cycle under fair sharing: from the root of a tree down, that branch whose share would be least with its
//! head's request in it; of equals the higher priority, then the older. Shares change as the cycle goes on, so that every turn is
//! decided anew.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::ids::QueueId;
use crate::policy::kueue::cycle::Head;
use crate::policy::kueue::fair::{Share, share};
use crate::policy::kueue::quota::Quota;

/// The heads that have yet to be considered, one a queue.
pub(super) struct Turns {
    heads: BTreeMap<QueueId, Contender>,
}

struct Contender {
    head: Head,
    /// For its queue and each cohort above it but the root: the share with its request.
    shares: Vec<(QueueId, Share)>,
}

impl Turns {
    pub fn new(quota: &mut Quota<'_>, heads: Vec<Head>) -> Self {
        let contender = |head: Head| {
            let shares = shares(quota, &head);
            (head.queue, Contender { head, shares })
        };
        Self { heads: heads.into_iter().map(contender).collect() }
    }

    /// The next of the first tree that has any.
    pub fn next(&mut self, quota: &Quota<'_>) -> Option<Head> {
        let (&first, _) = self.heads.first_key_value()?;
        let root = quota.tree.path(first).last().unwrap_or(first);
        let winner = self.winner(quota, root).unwrap_or(first);
        self.heads.remove(&winner).map(|contender| contender.head)
    }

    /// The use of these queues has changed: whoever is in a cohort with one of them has another share, unless it is only the root.
    pub fn changed(&mut self, quota: &mut Quota<'_>, queues: &[QueueId]) {
        let touched: Vec<QueueId> = queues.iter().flat_map(|&queue| quota.tree.path(queue)).collect();
        for contender in self.heads.values_mut() {
            if contender.shares.iter().any(|(id, _)| touched.contains(id)) {
                contender.shares = shares(quota, &contender.head);
            }
        }
    }

    /// The queue in or below `id` whose head is next.
    fn winner(&self, quota: &Quota<'_>, id: QueueId) -> Option<QueueId> {
        if self.heads.contains_key(&id) {
            return Some(id);
        }
        let branches = quota.children(id).iter().filter_map(|&child| Some((child, self.winner(quota, child)?)));
        branches.min_by(|one, other| self.compare(quota, *one, *other)).map(|(_, queue)| queue)
    }

    fn compare(&self, quota: &Quota<'_>, one: (QueueId, QueueId), other: (QueueId, QueueId)) -> Ordering {
        let share = |(branch, queue): (QueueId, QueueId)| {
            let shares = &self.heads[&queue].shares;
            shares.iter().find(|(id, _)| *id == branch).map_or(Share::NONE, |(_, share)| *share)
        };
        let key = |(_, queue): (QueueId, QueueId)| {
            let workload = quota.snapshot.workload(self.heads[&queue].head.workload);
            (Reverse(workload.priority), workload.created, workload.rank)
        };
        share(one).cmp(share(other)).then_with(|| key(one).cmp(&key(other)))
    }
}

fn shares(quota: &mut Quota<'_>, head: &Head) -> Vec<(QueueId, Share)> {
    let Some(asks) = &head.nomination.asks else {
        return Vec::new();
    };
    quota.charge(head.queue, &asks.usage, 1);
    let below_the_root = quota.tree.path(head.queue).filter(|&id| quota.tree.get(id).parent.is_some());
    let shares = below_the_root.map(|id| (id, share(quota, id))).collect();
    quota.charge(head.queue, &asks.usage, -1);
    shares
}

//! How the queues of a tree stand: what each has of its own, uses, borrows and lends, and its share; as things are, or once somebody
//! is gone and somebody else has come. For explanations: no decision reads it.

use std::collections::BTreeMap;

use crate::ids::{FlavorResourceId, QueueId, ShareMilli, WorkloadId};
use crate::policy::kueue::fair::share;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{Assignment, Kueue};
use crate::snapshot::Snapshot;

/// How a queue or cohort stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueUsage {
    /// Which.
    pub queue: QueueId,
    /// How many cohorts are above it.
    pub depth: usize,
    /// By pair, those that were asked about.
    pub flavor_resources: Vec<FlavorResourceUsage>,
    /// Under fair sharing, unless it is a root.
    pub share: Option<ShareMilli>,
}

/// How a queue stands in one pair of quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorResourceUsage {
    /// Which.
    pub flavor_resource: FlavorResourceId,
    /// What it, and everything below it, has of its own.
    pub nominal: i64,
    /// What is used in and below it.
    pub used: i64,
    /// What of that is more than its own.
    pub borrowed: i64,
    /// What of its own the others in its tree use, at most.
    pub lent: i64,
}

/// The tree of a queue, parents first and children in the order of their ids: once `gone` have gone, and `given` was given to the queue.
pub fn queue_usage(
    snapshot: &Snapshot,
    policy: &Kueue,
    queue: QueueId,
    pairs: &[FlavorResourceId],
    gone: &[WorkloadId],
    given: Option<&Assignment>,
) -> Vec<QueueUsage> {
    let mut quota = QuotaUsage::new(snapshot);
    for &workload in gone {
        quota.take(workload);
    }
    if let Some(given) = given {
        quota.charge(queue, &given.usage, 1);
    }
    let root = quota.tree.root(queue);
    let mut standings = Vec::new();
    visit(&quota, policy, root, 0, pairs, &BTreeMap::new(), &mut standings);
    standings
}

/// `wanted` is by pair what those outside a queue borrow, its siblings and whoever its cohort lends to.
fn visit(
    quota: &QuotaUsage<'_>,
    policy: &Kueue,
    queue: QueueId,
    depth: usize,
    pairs: &[FlavorResourceId],
    wanted: &BTreeMap<FlavorResourceId, i64>,
    standings: &mut Vec<QueueUsage>,
) {
    let stand = |&pair: &FlavorResourceId| {
        let (nominal, used) = (quota.nominal(queue, pair), quota.used(queue, pair));
        let lendable = (nominal - used).max(0).min(nominal - quota.local_quota(queue, pair));
        let lent = lendable.min(wanted.get(&pair).copied().unwrap_or_default());
        FlavorResourceUsage { flavor_resource: pair, nominal, used, borrowed: quota.borrowed(queue, pair), lent }
    };
    let own: Vec<FlavorResourceUsage> = pairs.iter().map(stand).collect();
    let share = policy.fair_sharing.filter(|_| depth > 0).map(|_| share(quota, queue).thousandths());
    standings.push(QueueUsage { queue, depth, flavor_resources: own.clone(), share });
    for &child in quota.children(queue) {
        let siblings = quota.children(queue).iter().filter(|&&sibling| sibling != child);
        let outside = |standing: &FlavorResourceUsage| {
            let by_siblings: i64 =
                siblings.clone().map(|&sibling| quota.borrowed(sibling, standing.flavor_resource)).sum();
            (standing.flavor_resource, by_siblings.saturating_add(standing.lent))
        };
        let wanted = own.iter().map(outside).collect();
        visit(quota, policy, child, depth + 1, pairs, &wanted, standings);
    }
}

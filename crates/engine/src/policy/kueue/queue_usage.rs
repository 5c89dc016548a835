//! The usage of the queues of a tree: nominal quota, used, borrowed, lent, and share; now, or after a decision is executed. For
//! explanations; no decision reads it.

use std::collections::BTreeMap;

use crate::ids::{FlavorResourceId, QueueId, ShareMilli, WorkloadId};
use crate::policy::kueue::fair::share;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{Assignment, Kueue};
use crate::snapshot::Snapshot;

/// The usage of a queue or cohort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueUsage {
    /// The queue or cohort.
    pub queue: QueueId,
    /// The number of cohorts above it.
    pub depth: usize,
    /// The usage of each requested pair.
    pub flavor_resources: Vec<FlavorResourceUsage>,
    /// The share under fair sharing; `None` for a root.
    pub share: Option<ShareMilli>,
}

/// The usage of one flavor-resource pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorResourceUsage {
    /// The flavor and the resource.
    pub flavor_resource: FlavorResourceId,
    /// The nominal quota of the queue, or of the subtree of a cohort.
    pub nominal: i64,
    /// The usage in and below it.
    pub used: i64,
    /// The part of `used` above `nominal`.
    pub borrowed: i64,
    /// The part of `nominal` that others in its tree use, at most.
    pub lent: i64,
}

/// The usage of the tree of a queue, parents first and children by id, after the `removed` workloads are removed and `given` is added to the
/// queue.
pub fn queue_usage(
    snapshot: &Snapshot,
    policy: &Kueue,
    queue: QueueId,
    pairs: &[FlavorResourceId],
    removed: &[WorkloadId],
    given: Option<&Assignment>,
) -> Vec<QueueUsage> {
    let mut quota = QuotaUsage::new(snapshot);
    for &workload in removed {
        quota.take(workload);
    }
    if let Some(given) = given {
        quota.charge(queue, &given.usage, 1);
    }
    let root = quota.tree.root(queue);
    let mut usages = Vec::new();
    visit(&quota, policy, root, 0, pairs, &BTreeMap::new(), &mut usages);
    usages
}

/// `borrowed_outside` is, by pair, what queues outside this subtree borrow.
fn visit(
    quota: &QuotaUsage<'_>,
    policy: &Kueue,
    queue: QueueId,
    depth: usize,
    pairs: &[FlavorResourceId],
    borrowed_outside: &BTreeMap<FlavorResourceId, i64>,
    usages: &mut Vec<QueueUsage>,
) {
    let usage_of = |&pair: &FlavorResourceId| {
        let (nominal, used) = (quota.nominal(queue, pair), quota.used(queue, pair));
        let lendable = (nominal - used).max(0).min(nominal - quota.local_quota(queue, pair));
        let lent = lendable.min(borrowed_outside.get(&pair).copied().unwrap_or_default());
        FlavorResourceUsage { flavor_resource: pair, nominal, used, borrowed: quota.borrowed(queue, pair), lent }
    };
    let own: Vec<FlavorResourceUsage> = pairs.iter().map(usage_of).collect();
    let share = policy.fair_sharing.filter(|_| depth > 0).map(|_| share(quota, queue).thousandths());
    usages.push(QueueUsage { queue, depth, flavor_resources: own.clone(), share });
    for &child in quota.children(queue) {
        let siblings = quota.children(queue).iter().filter(|&&sibling| sibling != child);
        let outside = |usage: &FlavorResourceUsage| {
            let by_siblings: i64 = siblings.clone().map(|&id| quota.borrowed(id, usage.flavor_resource)).sum();
            (usage.flavor_resource, by_siblings.saturating_add(usage.lent))
        };
        let borrowed_outside = own.iter().map(outside).collect();
        visit(quota, policy, child, depth + 1, pairs, &borrowed_outside, usages);
    }
}

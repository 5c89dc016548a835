//! Keeps sums over all objects within the range of the engine's numbers. Each amount is at most 2^53, but a cluster may have very many
//! objects with such amounts. Then the largest are set aside, so that no object with an ordinary amount is affected.

use std::collections::BTreeSet;

use reprieve_api::quantity::MAX_AMOUNT;
use reprieve_api::{InputError, NamespacedName, ProblemCode};
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::Pod;
use reprieve_engine::workloads::Workload;
use reprieve_engine::{FlavorResourceId, QuotaResourceId};

/// The largest sum of the amounts of all objects.
const MAX_SUM: i128 = 1 << 60;

/// The sum is checked only if an object has a larger amount than this: the sum of 2^18 smaller amounts is in range.
pub(crate) const LARGE_AMOUNT: i64 = 1 << 42;

/// Returns the error of an object that is set aside.
pub(crate) fn beyond_sum(field: &str) -> InputError {
    let problem = "the amounts of all objects together exceed 2^60, and this is one of the largest; lower it";
    InputError::new(problem).field(field).code(ProblemCode::TooLarge)
}

/// Returns the pods to set aside.
pub(crate) fn pods_beyond_sum<'p>(
    pods: &'p [(NamespacedName, Pod)],
    shapes: &[&Shape],
    n_resources: usize,
) -> BTreeSet<&'p NamespacedName> {
    let amount = |pod: &Pod, resource: usize| {
        shapes.get(pod.shape.index()).and_then(|shape| shape.requests.get(resource)).copied().unwrap_or(0)
    };
    let mut beyond = BTreeSet::new();
    for resource in 0..n_resources {
        let amounts = pods.iter().map(|(name, pod)| (amount(pod, resource), name));
        largest_beyond_sum(amounts, &mut beyond);
    }
    beyond
}

/// Returns the workloads to set aside. An admitted workload counts with its usage, a pending one with its requests.
pub(crate) fn workloads_beyond_sum(
    workloads: &[(NamespacedName, Workload)],
    n_flavor_resources: usize,
    n_resources: usize,
) -> BTreeSet<&NamespacedName> {
    let used = |workload: &Workload, flavor_resource: FlavorResourceId| {
        let usage = workload.admission.iter().flat_map(|admission| &admission.usage);
        usage.filter(|(used, _)| *used == flavor_resource).fold(0_i64, |sum, (_, amount)| sum.saturating_add(*amount))
    };
    let requested = |workload: &Workload, resource: QuotaResourceId| {
        let sets = workload.pod_sets.iter();
        let of_set = sets.flat_map(|set| {
            set.requests.iter().map(|(requested, amount)| (requested, amount.saturating_mul(set.count)))
        });
        of_set
            .filter(|(requested, _)| **requested == resource)
            .fold(0_i64, |sum, (_, amount)| sum.saturating_add(amount))
    };
    let mut beyond = BTreeSet::new();
    for flavor_resource in (0..n_flavor_resources).map(FlavorResourceId::new) {
        largest_beyond_sum(
            workloads.iter().map(|(name, workload)| (used(workload, flavor_resource), name)),
            &mut beyond,
        );
    }
    for resource in (0..n_resources).map(QuotaResourceId::new) {
        largest_beyond_sum(workloads.iter().map(|(name, workload)| (requested(workload, resource), name)), &mut beyond);
    }
    beyond
}

/// Adds the largest objects, until the sum of the others is small enough. Of equal amounts the last by name goes first.
fn largest_beyond_sum<'n>(
    amounts: impl Iterator<Item = (i64, &'n NamespacedName)> + Clone,
    beyond: &mut BTreeSet<&'n NamespacedName>,
) {
    let counted = amounts.filter(|(_, name)| !beyond.contains(name));
    let mut sum: i128 = counted.clone().map(|(amount, _)| i128::from(amount)).sum();
    if sum <= MAX_SUM {
        return;
    }
    let mut sorted: Vec<(i64, &NamespacedName)> = counted.collect();
    sorted.sort_unstable();
    while let Some((amount, name)) = sorted.pop().filter(|_| sum > MAX_SUM) {
        sum -= i128::from(amount);
        beyond.insert(name);
    }
}

// A decision adds the amounts of a few pods to a sum, and compares the total of two such sums. Neither overflows.
const _: () = assert!(MAX_SUM + 8 * (MAX_AMOUNT as i128) < i64::MAX as i128 / 2);

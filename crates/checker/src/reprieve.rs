//! The victims among the candidates: budgets first, then importance, each unit as a whole.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use reprieve_api::NamespacedName;

use crate::cluster::{Cluster, PodFacts};
use crate::occupancy::Occupancy;
use crate::selector::{is_empty, selects};

/// The result of reprieving.
pub struct ReprieveResult {
    /// The units that could not be reprieved.
    pub victims: Vec<usize>,
    /// The number of their pods that violate a budget.
    pub violations: usize,
    /// Whether any candidate violates a budget.
    pub budgets_matter: bool,
}

/// docs/rules/kubernetes-pods.md#p13 to docs/rules/kubernetes-pods.md#p16, docs/rules/kubernetes-groups.md#g4,
/// docs/rules/kubernetes-groups.md#g9, docs/rules/kubernetes-groups.md#g10: puts the candidates back one by one, and reprieves each with
/// which the placement is still valid. All candidates are missing in `removed`.
pub fn reprieve(
    removed: &Occupancy<'_>,
    candidates: &[usize],
    is_valid: &dyn Fn(&Occupancy<'_>) -> bool,
) -> ReprieveResult {
    let cluster = removed.cluster;
    let ordered = by_importance(cluster, candidates);
    let violating = violating(cluster, &ordered);
    let (first, rest): (Vec<usize>, Vec<usize>) = ordered.iter().partition(|unit| violating.contains_key(unit));
    let mut occupancy = removed.clone();
    let mut victims = Vec::new();
    for unit in first.into_iter().chain(rest) {
        let with_it = occupancy.with(&cluster.units[unit].pods);
        if is_valid(&with_it) {
            occupancy = with_it;
        } else {
            victims.push(unit);
        }
    }
    let violations = victims.iter().filter_map(|unit| violating.get(unit)).sum();
    ReprieveResult { victims, violations, budgets_matter: !violating.is_empty() }
}

/// Sorts units, the most important first: priority, membership of a group, size, age, name.
pub fn by_importance(cluster: &Cluster<'_>, units: &[usize]) -> Vec<usize> {
    let mut ordered = units.to_vec();
    ordered.sort_by_key(|&index| {
        let unit = &cluster.units[index];
        let oldest = unit.pods.iter().map(|&pod| start(&cluster.pods[pod])).min();
        (Reverse(unit.priority), Reverse(unit.grouped), Reverse(unit.pods.len()), oldest, unit.pods[0])
    });
    ordered
}

/// The start time of a pod; a pod that has not started is the youngest.
pub fn start(pod: &PodFacts) -> Timestamp {
    pod.start.unwrap_or(Timestamp::MAX)
}

/// The units that violate a budget, each with the number of its pods that do. All budgets that match a pod are charged, in order of
/// importance and before any unit is reprieved; one that is exhausted is enough.
pub fn violating(cluster: &Cluster<'_>, ordered: &[usize]) -> BTreeMap<usize, usize> {
    let budgets: Vec<_> = cluster.objects.budgets.iter().map(|sourced| &sourced.object).collect();
    let status = |index: usize| budgets[index].status.clone().unwrap_or_default();
    let mut left: Vec<i64> =
        (0..budgets.len()).map(|index| i64::from(status(index).disruptions_allowed.unwrap_or(0))).collect();
    let mut violating = BTreeMap::new();
    for &unit in ordered {
        for pod in cluster.units[unit].pods.iter().map(|&pod| &cluster.pods[pod]) {
            let mut exhausted = false;
            for (index, budget) in budgets.iter().enumerate() {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                let applies = NamespacedName::from_meta(&budget.metadata).namespace == pod.name.namespace
                    && !pod.labels.is_empty()
                    && selector.is_some_and(|selector| !is_empty(selector))
                    && selects(selector, &pod.labels);
                if applies && !status(index).disrupted_pods.unwrap_or_default().contains_key(&pod.name.name) {
                    left[index] -= 1;
                    exhausted |= left[index] < 0;
                }
            }
            if exhausted {
                *violating.entry(unit).or_default() += 1;
            }
        }
    }
    violating
}

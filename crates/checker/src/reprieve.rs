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
    let budgets = cluster.objects.budgets.iter().map(|sourced| &sourced.object);
    let allowed =
        budgets.map(|budget| budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0));
    let mut left: Vec<i64> =
        allowed.zip(&cluster.charged).map(|(allowed, charged)| i64::from(allowed) - charged).collect();
    let mut violating = BTreeMap::new();
    for &unit in ordered {
        for pod in cluster.units[unit].pods.iter().map(|&pod| &cluster.pods[pod]) {
            let mut exhausted = false;
            for (index, left) in left.iter_mut().enumerate() {
                if is_covered(cluster, index, pod) {
                    *left -= 1;
                    exhausted |= *left < 0;
                }
            }
            if exhausted {
                *violating.entry(unit).or_default() += 1;
            }
        }
    }
    violating
}

/// By budget: how many of these pods it covers.
pub fn charge(cluster: &Cluster<'_>, pods: &[usize]) -> Vec<i64> {
    let covered = |budget| pods.iter().filter(|&&pod| is_covered(cluster, budget, &cluster.pods[pod])).count();
    (0..cluster.objects.budgets.len()).map(|budget| covered(budget) as i64).collect()
}

/// Whether the budget at this index counts the eviction of a pod.
fn is_covered(cluster: &Cluster<'_>, budget: usize, pod: &PodFacts) -> bool {
    let budget = &cluster.objects.budgets[budget].object;
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let disrupted = budget.status.as_ref().and_then(|status| status.disrupted_pods.as_ref());
    NamespacedName::from_meta(&budget.metadata).namespace == pod.name.namespace
        && !pod.labels.is_empty()
        && selector.is_some_and(|selector| !is_empty(selector))
        && selects(selector, &pod.labels)
        && disrupted.is_none_or(|disrupted| !disrupted.contains_key(&pod.name.name))
}

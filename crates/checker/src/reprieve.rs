//! Who of those that could be taken must be: budgets first, then importance, each unit whole.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use reprieve_api::meta::NamespacedName;

use crate::cluster::{Cluster, PodFacts};
use crate::occupancy::Occupancy;
use crate::selector::{is_empty, selects};

/// What the reprieve leaves.
pub struct UsedAmounts {
    /// The units that could not be reprieved.
    pub victims: Vec<usize>,
    /// How many of their pods violate a budget.
    pub violations: usize,
    /// Whether any unit that could be taken violates a budget.
    pub budgets_matter: bool,
}

/// Puts the units back one by one, and keeps each with which the placement still `stands`. (Rules 13 to 16 of the pods,
/// 4, 9 and 10 of the groups.) `gone` lacks all of them.
pub fn reprieve(
    cluster: &Cluster<'_>,
    gone: &Occupancy,
    potential: &[usize],
    stands: &dyn Fn(&Occupancy) -> bool,
) -> UsedAmounts {
    let ordered = by_importance(cluster, potential);
    let violating = violating(cluster, &ordered);
    let (first, rest): (Vec<usize>, Vec<usize>) = ordered.iter().partition(|unit| violating.contains_key(unit));
    let mut standing = gone.clone();
    let mut victims = Vec::new();
    for unit in first.into_iter().chain(rest) {
        let with_it = standing.with_back(cluster, &cluster.units[unit].pods);
        if stands(&with_it) {
            standing = with_it;
        } else {
            victims.push(unit);
        }
    }
    let violations = victims.iter().filter_map(|unit| violating.get(unit)).sum();
    UsedAmounts { victims, violations, budgets_matter: !violating.is_empty() }
}

/// The most important first: priority, membership of a group, size, age. The order of names settles the rest.
pub fn by_importance(cluster: &Cluster<'_>, units: &[usize]) -> Vec<usize> {
    let mut ordered = units.to_vec();
    ordered.sort_by_key(|&at| {
        let unit = &cluster.units[at];
        let oldest = unit.pods.iter().map(|&pod| start(&cluster.pods[pod])).min();
        (Reverse(unit.priority), Reverse(unit.grouped), Reverse(unit.pods.len()), oldest, unit.pods[0])
    });
    ordered
}

/// When a pod started; one that has not is the youngest.
pub fn start(pod: &PodFacts) -> Timestamp {
    pod.start.unwrap_or(Timestamp::MAX)
}

/// The units that violate a budget, each with how many of its pods do. All budgets that match a pod are charged, in order of
/// importance and before anybody is reprieved; one that is overdrawn is enough.
pub fn violating(cluster: &Cluster<'_>, ordered: &[usize]) -> BTreeMap<usize, usize> {
    let budgets: Vec<_> = cluster.objects.budgets.iter().map(|sourced| &sourced.object).collect();
    let status = |at: usize| budgets[at].status.clone().unwrap_or_default();
    let mut left: Vec<i64> =
        (0..budgets.len()).map(|at| i64::from(status(at).disruptions_allowed.unwrap_or(0))).collect();
    let mut violating = BTreeMap::new();
    for &unit in ordered {
        for pod in cluster.units[unit].pods.iter().map(|&pod| &cluster.pods[pod]) {
            let mut overdrawn = false;
            for (at, budget) in budgets.iter().enumerate() {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                let applies = NamespacedName::from_meta(&budget.metadata).namespace == pod.name.namespace
                    && !pod.labels.is_empty()
                    && selector.is_some_and(|selector| !is_empty(selector))
                    && selects(selector, &pod.labels);
                if applies && !status(at).disrupted_pods.unwrap_or_default().contains_key(&pod.name.name) {
                    left[at] -= 1;
                    overdrawn |= left[at] < 0;
                }
            }
            if overdrawn {
                *violating.entry(unit).or_default() += 1;
            }
        }
    }
    violating
}

//! docs/rules/kubernetes-groups.md#g28: the plans for a pod, compared with what their returning victims would evict.

use std::cmp::Reverse;

use crate::cluster::Cluster;
use crate::fit::Preemptor;
use crate::lawful::pods_of;
use crate::obstacle::is_gang_refused;
use crate::occupancy::Occupancy;
use crate::pod_search::{Key, PodSearch};
use crate::reprieve::{ReprieveResult, charge};

/// How many plans are judged.
const MAX_JUDGED: usize = 8;

/// The plan of the lowest total cost.
pub enum LowestTotal {
    /// The node and the victims; `None` is impossible, as there is a plan.
    Is(usize, ReprieveResult),
    /// A group returns, whose placement the checker does not know: the plan is one of these.
    IsOneOf(Vec<(usize, ReprieveResult)>),
}

/// The plan of the lowest cost with second-order evictions, among the first plans by their own cost.
pub fn lowest_total(search: &PodSearch<'_>) -> LowestTotal {
    let plans = search.plans();
    let mut best: Option<(Key, usize)> = None;
    for (index, (own, result)) in plans.iter().enumerate().take(MAX_JUDGED) {
        if best.is_some_and(|(best, _)| best <= *own) {
            break;
        }
        let &(violations, highest, sum, pods, earliest, node) = own;
        let Some(second) = second_order(search, node, &result.victims) else {
            let node = |(key, result): (Key, ReprieveResult)| (key.5, result);
            return LowestTotal::IsOneOf(plans.into_iter().take(MAX_JUDGED).map(node).collect());
        };
        let total = (violations + second.violations, highest, sum + second.sum, pods + second.pods, earliest, node);
        if best.is_none_or(|(best, _)| total < best) {
            best = Some((total, index));
        }
    }
    let best = best.and_then(|(_, index)| plans.into_iter().nth(index));
    best.map_or(LowestTotal::IsOneOf(Vec::new()), |((.., node), result)| LowestTotal::Is(node, result))
}

/// What returning victims evict.
#[derive(Default)]
struct SecondOrder {
    violations: usize,
    sum: i128,
    pods: usize,
}

/// What the victims of a plan evict when they return as pending pods; `None` if a group returns.
fn second_order(search: &PodSearch<'_>, node: usize, victims: &[usize]) -> Option<SecondOrder> {
    let now = search.preemptor.now;
    let mut cluster = search.cluster.clone();
    let is_returning = |pod: &usize| search.cluster.pods[*pod].returns && !search.cluster.pods[*pod].terminating;
    let mut returning: Vec<usize> = pods_of(search.cluster, victims).into_iter().filter(is_returning).collect();
    let in_group =
        |&pod: &usize| search.cluster.pods[pod].group.as_ref().is_some_and(|name| cluster.groups.contains_key(name));
    if returning.iter().any(in_group) {
        return None;
    }
    returning.sort_by_key(|&pod| (Reverse(cluster.pods[pod].priority), pod));
    evict(&mut cluster, victims);
    cluster.place(search.pod, node, now);
    let mut second = SecondOrder::default();
    for pod in returning {
        if is_gang_refused(&cluster, &cluster.pods[pod]) {
            continue;
        }
        let preemptor = Preemptor { priority: cluster.pods[pod].priority, pods: vec![pod], resize: false, now };
        let (target, result) = {
            let occupancy = Occupancy::of(&cluster);
            let search = PodSearch { cluster: &cluster, preemptor: &preemptor, occupancy: &occupancy, pod };
            let free = search.nodes().into_iter().find(|&node| search.fits(&occupancy, node));
            match free {
                Some(node) => (node, None),
                None if !cluster.pods[pod].preempts => continue,
                None => match search.best() {
                    Some((node, result)) => (node, Some(result)),
                    None => continue,
                },
            }
        };
        if let Some(result) = result {
            let (sum, pods) = cluster.weight(&result.victims);
            second.violations += result.violations;
            second.sum += sum;
            second.pods += pods;
            evict(&mut cluster, &result.victims);
        }
        cluster.place(pod, target, now);
    }
    Some(second)
}

/// Removes the pods of these units from their nodes, and charges them to their budgets.
fn evict(cluster: &mut Cluster<'_>, units: &[usize]) {
    let pods = pods_of(cluster, units);
    let charged = charge(cluster, &pods);
    cluster.charged.iter_mut().zip(charged).for_each(|(sum, more)| *sum += more);
    cluster.unbind(&pods);
}

//! Topology spread: how unevenly a pod would be spread if it stood on a node. (Rule 10 of the pods.) Constraints that may be
//! broken (ScheduleAnyway) are not read.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use crate::cluster::{Cluster, PodFacts};
use crate::misfit::Misfit;
use crate::occupancy::Occupancy;
use crate::selector::{is_empty, keeps_off, node_is_wanted, selects, with_keys};

/// The constraints that must hold.
pub fn constraints(pod: &PodFacts) -> Vec<&TopologySpreadConstraint> {
    let all = pod.spec.topology_spread_constraints.iter().flatten();
    all.filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule").collect()
}

/// The node needs the label. Matches in its domain, with the pod itself, less those in the emptiest domain, must not exceed
/// the skew.
/// As in kube-scheduler an empty selector counts the pod itself and nobody else.
pub fn spread(cluster: &Cluster<'_>, standing: &Occupancy, pod: usize, node: usize) -> Result<(), Misfit> {
    let incoming = &cluster.pods[pod];
    let constraints = constraints(incoming);
    let keys: BTreeSet<&String> = constraints.iter().map(|constraint| &constraint.topology_key).collect();
    for constraint in constraints {
        let key = &constraint.topology_key;
        let Some(own_domain) = cluster.nodes[node].labels.get(key) else {
            return Err(Misfit::SpreadLabel { key: key.clone() });
        };
        let selector =
            with_keys(constraint.label_selector.as_ref(), &incoming.labels, constraint.match_label_keys.as_ref(), None);
        let mut matches: BTreeMap<&String, i64> = BTreeMap::new();
        for there in 0..cluster.nodes.len() {
            let labels = &cluster.nodes[there].labels;
            if !keys.iter().all(|key| labels.contains_key(*key)) || !counts(cluster, incoming, constraint, there) {
                continue;
            }
            let count = standing.on[there].iter().map(|&other| &cluster.pods[other]).filter(|other| {
                other.name.namespace == incoming.name.namespace
                    && !other.terminating
                    && !selector.as_ref().is_some_and(is_empty)
                    && selects(selector.as_ref(), &other.labels)
            });
            *matches.entry(&labels[key]).or_default() += count.count() as i64;
        }
        let enough_domains = matches.len() as i64 >= i64::from(constraint.min_domains.unwrap_or(1));
        let emptiest = if enough_domains { matches.values().copied().min().unwrap_or(0) } else { 0 };
        let here = matches.get(own_domain).copied().unwrap_or(0);
        let itself = i64::from(selects(selector.as_ref(), &incoming.labels));
        if here + itself - emptiest > i64::from(constraint.max_skew) {
            return Err(Misfit::Spread { key: key.clone() });
        }
    }
    Ok(())
}

/// Whether a node counts for a constraint: by default the pod's own wishes exclude nodes, and taints exclude none.
fn counts(cluster: &Cluster<'_>, pod: &PodFacts, constraint: &TopologySpreadConstraint, node: usize) -> bool {
    let facts = &cluster.nodes[node];
    let wishes = constraint.node_affinity_policy.as_deref() != Some("Ignore");
    let taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    (!wishes || node_is_wanted(&pod.spec, &facts.name, &facts.labels))
        && (!taints || !facts.taints.iter().any(|taint| keeps_off(taint, &pod.spec)))
}

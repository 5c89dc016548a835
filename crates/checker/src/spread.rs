//! docs/rules/kubernetes-pods.md#p10: topology spread. Constraints that may be violated (ScheduleAnyway) are ignored.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use crate::cluster::{Cluster, PodFacts};
use crate::filter_failure::FilterFailure;
use crate::occupancy::Occupancy;
use crate::selector::{is_empty, is_untolerated, selects, selects_node, with_keys};

/// The constraints that must hold.
pub fn constraints(pod: &PodFacts) -> Vec<&TopologySpreadConstraint> {
    let all = pod.spec.topology_spread_constraints.iter().flatten();
    all.filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule").collect()
}

/// The node needs the label. The matching pods in its domain, with the pod itself, minus those in the domain with the fewest, must not
/// exceed the skew. As in kube-scheduler an empty selector counts only the pod itself.
pub fn spread(occupancy: &Occupancy<'_>, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let cluster = occupancy.cluster;
    let incoming = &cluster.pods[pod];
    let constraints = constraints(incoming);
    let keys: BTreeSet<&String> = constraints.iter().map(|constraint| &constraint.topology_key).collect();
    for constraint in constraints {
        let key = &constraint.topology_key;
        let Some(own_domain) = cluster.nodes[node].labels.get(key) else {
            return Err(FilterFailure::SpreadLabel { key: key.clone() });
        };
        let selector =
            with_keys(constraint.label_selector.as_ref(), &incoming.labels, constraint.match_label_keys.as_ref(), None);
        let mut matches: BTreeMap<&String, i64> = BTreeMap::new();
        for other in 0..cluster.nodes.len() {
            let labels = &cluster.nodes[other].labels;
            if !keys.iter().all(|key| labels.contains_key(*key)) || !counts(cluster, incoming, constraint, other) {
                continue;
            }
            let count = occupancy.on[other].iter().map(|&other| &cluster.pods[other]).filter(|other| {
                other.name.namespace == incoming.name.namespace
                    && !other.terminating
                    && !selector.as_ref().is_some_and(is_empty)
                    && selects(selector.as_ref(), &other.labels)
            });
            *matches.entry(&labels[key]).or_default() += count.count() as i64;
        }
        let enough_domains = matches.len() as i64 >= i64::from(constraint.min_domains.unwrap_or(1));
        let minimum = if enough_domains { matches.values().copied().min().unwrap_or(0) } else { 0 };
        let here = matches.get(own_domain).copied().unwrap_or(0);
        let itself = i64::from(selects(selector.as_ref(), &incoming.labels));
        if here + itself - minimum > i64::from(constraint.max_skew) {
            return Err(FilterFailure::Spread { key: key.clone() });
        }
    }
    Ok(())
}

/// Whether a node counts for a constraint: by default the node selection of the pod excludes nodes, and taints exclude none.
fn counts(cluster: &Cluster<'_>, pod: &PodFacts, constraint: &TopologySpreadConstraint, node: usize) -> bool {
    let facts = &cluster.nodes[node];
    let honors_selection = constraint.node_affinity_policy.as_deref() != Some("Ignore");
    let honors_taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    (!honors_selection || selects_node(&pod.spec, &facts.name, &facts.labels))
        && (!honors_taints || !facts.taints.iter().any(|taint| is_untolerated(taint, &pod.spec)))
}

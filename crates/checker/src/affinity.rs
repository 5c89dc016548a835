//! Required affinity and anti-affinity between pods, both ways. Preferences exclude nothing and are not read.

use crate::cluster::{Cluster, PodFacts};
use crate::filter_failure::FilterFailure;
use crate::occupancy::Occupancy;
use crate::selector::selects;
use crate::term::Term;

fn matches(term: &Term, cluster: &Cluster<'_>, pod: &PodFacts) -> bool {
    let namespace = &pod.name.namespace;
    let namespace_fits = term.namespaces.iter().flatten().any(|name| name == namespace)
        || selects(term.namespace_selector.as_ref(), &cluster.namespace_labels(namespace));
    namespace_fits && selects(term.label_selector.as_ref(), &pod.labels)
}

/// Whether two nodes are in one domain of the term.
fn shares_domain(term: &Term, cluster: &Cluster<'_>, a: usize, b: usize) -> bool {
    let value = |node: usize| cluster.nodes[node].labels.get(&term.topology_key);
    value(a).is_some() && value(a) == value(b)
}

/// The affinity or anti-affinity term that excludes the pod from the node: its own or that of a pod in place.
pub fn affinity(occupancy: &Occupancy<'_>, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let cluster = occupancy.cluster;
    if !affinity_is_met(occupancy, pod, node) {
        return Err(FilterFailure::Affinity);
    }
    let incoming = &cluster.pods[pod];
    for term in &incoming.anti_affinity {
        for (other, other_node) in occupancy.all() {
            if shares_domain(term, cluster, node, other_node) && matches(term, cluster, &cluster.pods[other]) {
                return Err(FilterFailure::AntiAffinity { to: cluster.pod_name(other) });
            }
        }
    }
    for (other, other_node) in occupancy.all() {
        for term in &cluster.pods[other].anti_affinity {
            if shares_domain(term, cluster, node, other_node) && matches(term, cluster, incoming) {
                return Err(FilterFailure::AntiAffinityOf { pod: cluster.pod_name(other) });
            }
        }
    }
    Ok(())
}

/// Only pods that match all terms count, and each term needs one of them in its domain. The first pod of a series is admitted: if no such
/// pod is in any domain of the terms, the pod may match its own terms. The node needs the label of every term.
fn affinity_is_met(occupancy: &Occupancy<'_>, pod: usize, node: usize) -> bool {
    let cluster = occupancy.cluster;
    let incoming = &cluster.pods[pod];
    let terms = &incoming.affinity;
    if terms.is_empty() {
        return true;
    }
    if !terms.iter().all(|term| cluster.nodes[node].labels.contains_key(&term.topology_key)) {
        return false;
    }
    let meets_all = |pod: &PodFacts| terms.iter().all(|term| matches(term, cluster, pod));
    let matching: Vec<usize> = occupancy
        .all()
        .filter(|&(other, _)| meets_all(&cluster.pods[other]))
        .map(|(_, other_node)| other_node)
        .collect();
    let none_anywhere = !matching
        .iter()
        .any(|&other_node| terms.iter().any(|term| cluster.nodes[other_node].labels.contains_key(&term.topology_key)));
    if none_anywhere {
        return meets_all(incoming);
    }
    terms.iter().all(|term| matching.iter().any(|&other_node| shares_domain(term, cluster, node, other_node)))
}

//! Required affinity and anti-affinity between pods, both ways. Preferences exclude nothing and are not read.

use crate::cluster::{Cluster, PodFacts};
use crate::misfit::Misfit;
use crate::occupancy::Occupancy;
use crate::selector::selects;
use crate::term::Term;

fn is_about(term: &Term, cluster: &Cluster<'_>, pod: &PodFacts) -> bool {
    let namespace = &pod.name.namespace;
    let namespace_fits = term.namespaces.iter().flatten().any(|name| name == namespace)
        || selects(term.namespace_selector.as_ref(), &cluster.namespace_labels(namespace));
    namespace_fits && selects(term.label_selector.as_ref(), &pod.labels)
}

/// Whether two nodes are in one domain of the term.
fn joins(term: &Term, cluster: &Cluster<'_>, one: usize, other: usize) -> bool {
    let value = |node: usize| cluster.nodes[node].labels.get(&term.topology_key);
    value(one).is_some() && value(one) == value(other)
}

/// What keeps the pod off the node, by its own terms or by those of the pods that stand.
pub fn affinity(cluster: &Cluster<'_>, standing: &Occupancy, pod: usize, node: usize) -> Result<(), Misfit> {
    if !affinity_is_met(cluster, standing, pod, node) {
        return Err(Misfit::Affinity);
    }
    let incoming = &cluster.pods[pod];
    for term in &incoming.anti_affinity {
        for (other, there) in standing.all() {
            if joins(term, cluster, node, there) && is_about(term, cluster, &cluster.pods[other]) {
                return Err(Misfit::AntiAffinity { to: cluster.pod_name(other) });
            }
        }
    }
    for (other, there) in standing.all() {
        for term in &cluster.pods[other].anti_affinity {
            if joins(term, cluster, node, there) && is_about(term, cluster, incoming) {
                return Err(Misfit::AntiAffinityOf { pod: cluster.pod_name(other) });
            }
        }
    }
    Ok(())
}

/// Only pods that meet all terms count, and each term needs one of them in its domain. The first of a series is let in:
/// where no such pod stands in any domain of the terms, the pod may meet its terms itself. The node needs every term's label.
fn affinity_is_met(cluster: &Cluster<'_>, standing: &Occupancy, pod: usize, node: usize) -> bool {
    let incoming = &cluster.pods[pod];
    let terms = &incoming.affinity;
    if terms.is_empty() {
        return true;
    }
    if !terms.iter().all(|term| cluster.nodes[node].labels.contains_key(&term.topology_key)) {
        return false;
    }
    let meets_all = |pod: &PodFacts| terms.iter().all(|term| is_about(term, cluster, pod));
    let matching: Vec<usize> =
        standing.all().filter(|&(other, _)| meets_all(&cluster.pods[other])).map(|(_, there)| there).collect();
    let none_anywhere = !matching
        .iter()
        .any(|&there| terms.iter().any(|term| cluster.nodes[there].labels.contains_key(&term.topology_key)));
    if none_anywhere {
        return meets_all(incoming);
    }
    terms.iter().all(|term| matching.iter().any(|&there| joins(term, cluster, node, there)))
}

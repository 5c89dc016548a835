//! Required affinity and anti-affinity between pods, both ways. Preferences exclude nothing and are not read.

use k8s_openapi::api::core::v1::PodAffinityTerm;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reprieve_objects::pod::PodSpec;

use crate::cluster::{Cluster, PodFacts};
use crate::fit::Misfit;
use crate::selector::{Labels, selects, with_keys};
use crate::standing::Standing;

/// One required term: which pods it is about, and how far it reaches.
pub struct Term {
    selector: Option<LabelSelector>,
    namespaces: Vec<String>,
    namespace_selector: Option<LabelSelector>,
    topology_key: String,
}

impl Term {
    fn is_about(&self, cluster: &Cluster<'_>, pod: &PodFacts) -> bool {
        let namespace = &pod.name.namespace;
        let namespace_fits = self.namespaces.contains(namespace)
            || selects(self.namespace_selector.as_ref(), &cluster.namespace_labels(namespace));
        namespace_fits && selects(self.selector.as_ref(), &pod.labels)
    }

    /// Whether two nodes are in one domain of the term.
    fn joins(&self, cluster: &Cluster<'_>, one: usize, other: usize) -> bool {
        let value = |node: usize| cluster.nodes[node].labels.get(&self.topology_key);
        value(one).is_some() && value(one) == value(other)
    }
}

/// The required terms of a pod: affinity, then anti-affinity.
pub fn required_terms(spec: &PodSpec, labels: &Labels, namespace: &str) -> (Vec<Term>, Vec<Term>) {
    let affinity = spec.affinity.as_ref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    let apart = apart.and_then(|apart| apart.required_during_scheduling_ignored_during_execution.as_ref());
    let read = |term: &PodAffinityTerm| read_term(term, labels, namespace);
    (near.into_iter().flatten().map(read).collect(), apart.into_iter().flatten().map(read).collect())
}

/// A term that names no namespace and selects none is about the pod's own.
fn read_term(term: &PodAffinityTerm, labels: &Labels, namespace: &str) -> Term {
    let (same, other) = (term.match_label_keys.as_ref(), term.mismatch_label_keys.as_ref());
    let mut namespaces = term.namespaces.clone().unwrap_or_default();
    if namespaces.is_empty() && term.namespace_selector.is_none() {
        namespaces.push(namespace.to_owned());
    }
    Term {
        selector: with_keys(term.label_selector.as_ref(), labels, same, other),
        namespaces,
        namespace_selector: term.namespace_selector.clone(),
        topology_key: term.topology_key.clone(),
    }
}

/// What keeps the pod off the node, by its own terms or by those of the pods that stand.
pub fn affinity(cluster: &Cluster<'_>, standing: &Standing, pod: usize, node: usize) -> Result<(), Misfit> {
    if !affinity_is_met(cluster, standing, pod, node) {
        return Err(Misfit::Affinity);
    }
    let incoming = &cluster.pods[pod];
    for term in &incoming.anti_affinity {
        for (other, there) in standing.all() {
            if term.joins(cluster, node, there) && term.is_about(cluster, &cluster.pods[other]) {
                return Err(Misfit::AntiAffinity { to: cluster.pods[other].name.to_string() });
            }
        }
    }
    for (other, there) in standing.all() {
        for term in &cluster.pods[other].anti_affinity {
            if term.joins(cluster, node, there) && term.is_about(cluster, incoming) {
                return Err(Misfit::AntiAffinityOf { pod: cluster.pods[other].name.to_string() });
            }
        }
    }
    Ok(())
}

/// Only pods that meet all terms count, and each term needs one of them in its domain. The first of a series is let in:
/// where no such pod stands in any domain of the terms, the pod may meet its terms itself. The node needs every term's label.
fn affinity_is_met(cluster: &Cluster<'_>, standing: &Standing, pod: usize, node: usize) -> bool {
    let incoming = &cluster.pods[pod];
    let terms = &incoming.affinity;
    if terms.is_empty() {
        return true;
    }
    if !terms.iter().all(|term| cluster.nodes[node].labels.contains_key(&term.topology_key)) {
        return false;
    }
    let meets_all = |pod: &PodFacts| terms.iter().all(|term| term.is_about(cluster, pod));
    let matching: Vec<usize> =
        standing.all().filter(|&(other, _)| meets_all(&cluster.pods[other])).map(|(_, there)| there).collect();
    let none_anywhere = !matching
        .iter()
        .any(|&there| terms.iter().any(|term| cluster.nodes[there].labels.contains_key(&term.topology_key)));
    if none_anywhere {
        return meets_all(incoming);
    }
    terms.iter().all(|term| matching.iter().any(|&there| term.joins(cluster, node, there)))
}

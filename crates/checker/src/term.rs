//! The required terms of a pod about other pods, as its spec has them.

use k8s_openapi::api::core::v1::PodAffinityTerm;
use reprieve_api::pod::PodSpec;

use crate::selector::{Labels, with_keys};

/// One required term, with its namespaces and its selector filled in.
pub type Term = PodAffinityTerm;

/// The required terms of a pod: affinity, then anti-affinity.
pub fn required_terms(spec: &PodSpec, labels: &Labels, namespace: &str) -> (Vec<Term>, Vec<Term>) {
    let affinity = spec.affinity.as_ref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    let apart = apart.and_then(|apart| apart.required_during_scheduling_ignored_during_execution.as_ref());
    let read = |term: &Term| read_term(term, labels, namespace);
    (near.into_iter().flatten().map(read).collect(), apart.into_iter().flatten().map(read).collect())
}

/// A term that names no namespace and selects none is about the pod's own.
fn read_term(term: &Term, labels: &Labels, namespace: &str) -> Term {
    let (same, other) = (term.match_label_keys.as_ref(), term.mismatch_label_keys.as_ref());
    let mut namespaces = term.namespaces.clone().unwrap_or_default();
    if namespaces.is_empty() && term.namespace_selector.is_none() {
        namespaces.push(namespace.to_owned());
    }
    Term {
        label_selector: with_keys(term.label_selector.as_ref(), labels, same, other),
        namespaces: Some(namespaces),
        ..term.clone()
    }
}

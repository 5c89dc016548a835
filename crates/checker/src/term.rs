//! The required affinity and anti-affinity terms of a pod.

use k8s_openapi::api::core::v1::PodAffinityTerm;
use reprieve_api::PodSpec;

use crate::selector::{Labels, with_keys};

/// A required term with its namespaces and its selector completed.
pub type Term = PodAffinityTerm;

/// The required terms of a pod: affinity, then anti-affinity.
pub fn required_terms(spec: &PodSpec, labels: &Labels, namespace: &str) -> (Vec<Term>, Vec<Term>) {
    let affinity = spec.affinity.as_ref();
    let terms = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let anti_terms = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let terms = terms.and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_ref());
    let anti_terms =
        anti_terms.and_then(|anti_terms| anti_terms.required_during_scheduling_ignored_during_execution.as_ref());
    let read = |term: &Term| read_term(term, labels, namespace);
    (terms.into_iter().flatten().map(read).collect(), anti_terms.into_iter().flatten().map(read).collect())
}

/// Completes a term. One that names no namespace and selects none concerns the pod's own namespace.
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

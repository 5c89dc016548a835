//! Confirms the owners that pods name: anyone who creates a pod can write an owner reference, so the owner must exist in the pod's namespace,
//! with the uid of the reference, and must select the pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};

use crate::namespace_selector::selects;
use crate::untrusted::Untrusted;
use reprieve_api::{NamespacedName, ObjectSet, Pod};

/// The owners that pods may have.
pub enum Owners {
    /// The input has no DaemonSets, and may be incomplete: a reference is taken as stated.
    AsStated,
    /// The selectors of all DaemonSets, by namespace and uid.
    DaemonSets(BTreeMap<(String, String), LabelSelector>),
}

impl Owners {
    /// Reads the owners of the input.
    pub fn new(objects: &ObjectSet) -> Self {
        if objects.daemon_sets.is_empty() && !objects.is_complete {
            return Self::AsStated;
        }
        let of_all = objects.daemon_sets.iter().map(|sourced| {
            let uid = sourced.object.metadata.uid.clone().unwrap_or_default();
            ((sourced.name().namespace, uid), sourced.object.spec.selector.clone())
        });
        Self::DaemonSets(of_all.collect())
    }

    /// Whether a DaemonSet owns the pod.
    pub fn is_of_daemon_set(&self, pod: &Pod) -> bool {
        let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let selects_pod = |owner: &OwnerReference| match self {
            Self::AsStated => true,
            Self::DaemonSets(all) => {
                let selector = all.get(&(namespace.clone(), owner.uid.clone()));
                selector.is_some_and(|selector| !owner.uid.is_empty() && selects(selector, &labels))
            }
        };
        let mut references = pod.metadata.owner_references.iter().flatten().map(Untrusted::new);
        references.any(|owner| owner.check(|owner| owner.kind == "DaemonSet" && selects_pod(owner)))
    }

    /// Returns a warning if the owner of a pod is taken as stated.
    pub fn warning(&self, objects: &ObjectSet) -> Option<String> {
        if !matches!(self, Self::AsStated) {
            return None;
        }
        let named = objects.pods.iter().filter(|pod| self.is_of_daemon_set(&pod.object));
        let first = named.map(|pod| pod.name()).min()?;
        Some(format!(
            "Pod {first}: metadata.ownerReferences: the input has no DaemonSets, so this owner, and those of other pods, are taken as stated; \
             add the output of kubectl get daemonsets -A -o yaml"
        ))
    }
}

//! Namespaces whose pods and workloads are never preempted.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::ObjectSet;

/// The label of a namespace whose pods and workloads are never preempted; its value is `true`.
pub const PROTECTED: &str = "reprieve.dev/protected";

/// Returns the names of the protected namespaces.
pub fn protected(objects: &ObjectSet) -> BTreeSet<String> {
    let metadata = objects.namespaces.iter().map(|namespace| &namespace.object.metadata);
    let label = |metadata: &ObjectMeta| metadata.labels.as_ref()?.get(PROTECTED).cloned();
    let protected = metadata.filter(|metadata| label(metadata).as_deref() == Some("true"));
    protected.filter_map(|metadata| metadata.name.clone()).collect()
}

//! Namespaces in which nobody is preempted: their label says so.

use std::collections::BTreeSet;

use reprieve_api::Objects;

/// The label of a namespace in which nobody is preempted; its value is `true`.
pub const PROTECTED: &str = "reprieve.dev/protected";

/// Their names.
pub fn protected(objects: &Objects) -> BTreeSet<String> {
    let metadata = objects.namespaces.iter().map(|namespace| &namespace.object.metadata);
    let says_so = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get(PROTECTED).is_some_and(|value| value == "true")
    };
    metadata
        .filter(|metadata| metadata.labels.as_ref().is_some_and(says_so))
        .filter_map(|metadata| metadata.name.clone())
        .collect()
}

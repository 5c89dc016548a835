//! Removes tolerations and opt-outs from priority classes, for the variants of `compare`.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::ObjectSet;

/// Returns the objects without tolerations and opt-outs of priority classes.
pub fn without_tolerations(objects: &ObjectSet) -> ObjectSet {
    let mut objects = objects.clone();
    for class in &mut objects.priority_classes {
        if let Some(annotations) = &mut Arc::make_mut(&mut class.object).metadata.annotations {
            annotations.retain(|key, _| !is_toleration(key));
        }
    }
    objects
}

/// Whether any priority class has a toleration or opted out.
pub fn has_tolerations(objects: &ObjectSet) -> bool {
    let annotations = objects.priority_classes.iter().filter_map(|class| class.object.metadata.annotations.as_ref());
    annotations.flat_map(BTreeMap::keys).any(|key| is_toleration(key))
}

fn is_toleration(key: &str) -> bool {
    key.starts_with("preemption-toleration.scheduling.x-k8s.io/") || key == "yunikorn.apache.org/allow-preemption"
}

//! A cluster as if no priority class tolerated anybody.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::ObjectSet;

/// The same objects as if no priority class tolerated anybody or opted out.
pub fn without_tolerations(objects: &ObjectSet) -> ObjectSet {
    let mut objects = objects.clone();
    for class in &mut objects.priority_classes {
        if let Some(annotations) = &mut Arc::make_mut(&mut class.object).metadata.annotations {
            annotations.retain(|key, _| !is_toleration(key));
        }
    }
    objects
}

/// Whether any priority class tolerates anybody or opted out.
pub fn has_tolerations(objects: &ObjectSet) -> bool {
    let annotations = objects.priority_classes.iter().filter_map(|class| class.object.metadata.annotations.as_ref());
    annotations.flat_map(BTreeMap::keys).any(|key| is_toleration(key))
}

fn is_toleration(key: &str) -> bool {
    key.starts_with("preemption-toleration.scheduling.x-k8s.io/") || key == "yunikorn.apache.org/allow-preemption"
}

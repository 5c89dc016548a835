//! What the API means by a field that is left out, where a file means something else by it.

use std::sync::Arc;

use reprieve_api::kinds::Object;

/// Says so. A ClusterQueue without a selector takes nobody: Kueue reads it as null.
pub fn spell_out(object: &mut Object) {
    if let Object::ClusterQueue(queue) = object
        && queue.spec.namespace_selector.is_none()
    {
        Arc::make_mut(queue).spec.namespace_selector = Some(None);
    }
}

//! Writes all objects as one `kind: List`, as `kubectl get` does.

use reprieve_api::Object;
use reprieve_api::object_set::ObjectSet;
use serde::Serialize;

/// A `kind: List`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Object>,
}

impl List {
    pub fn new(objects: &ObjectSet) -> Self {
        Self { api_version: "v1", kind: "List", items: objects.iter().collect() }
    }
}

//! The requests of etcd's JSON interface that the tests need.

use serde_json::{Value, json};

use crate::plain_http;

/// Compacts etcd, so that a watch from an earlier version fails with 410 Gone.
pub fn compact(port: u16) {
    // A write increases the revision beyond the versions that any watcher has seen. The key and the value are `e2e` in base64.
    let put = post(port, "/v3/kv/put", &json!({"key": "ZTJl", "value": "ZTJl"}));
    let revision = &put["header"]["revision"];
    assert!(revision.is_string(), "no revision in the response of etcd: {put}");
    post(port, "/v3/kv/compaction", &json!({"revision": revision, "physical": true}));
}

fn post(port: u16, path: &str, body: &Value) -> Value {
    let response = plain_http::post(port, path, &body.to_string());
    serde_json::from_str(&response).unwrap_or_else(|error| panic!("{path}: {error}: {response}"))
}

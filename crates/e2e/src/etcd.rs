//! The few words of etcd's JSON interface that the tests need.

use serde_json::{Value, json};

use crate::plain;

/// Forgets all earlier versions of everything, so that whoever asks for what happened since an old one is refused.
pub fn compact(port: u16) {
    // A key of our own moves the revision past all that a watcher can have seen.
    let put = post(port, "/v3/kv/put", &json!({"key": "ZTJl", "value": "ZTJl"}));
    let revision = &put["header"]["revision"];
    assert!(revision.is_string(), "etcd told no revision: {put}");
    post(port, "/v3/kv/compaction", &json!({"revision": revision, "physical": true}));
}

fn post(port: u16, path: &str, body: &Value) -> Value {
    let answer = plain::post(port, path, &body.to_string());
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"))
}

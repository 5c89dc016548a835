//! The few words of etcd's JSON interface that the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

/// Forgets all earlier versions of everything, so that whoever asks for what happened since an old one is refused.
pub fn compact(port: u16) {
    // A key of our own moves the revision past all that a watcher can have seen.
    let put = post(port, "/v3/kv/put", &json!({"key": "ZTJl", "value": "ZTJl"}));
    let revision = &put["header"]["revision"];
    assert!(revision.is_string(), "etcd told no revision: {put}");
    post(port, "/v3/kv/compaction", &json!({"revision": revision, "physical": true}));
}

fn post(port: u16, path: &str, body: &Value) -> Value {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: etcd\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("etcd listens");
    stream.write_all(request.as_bytes()).expect("etcd takes the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("etcd answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.lines().next().is_some_and(|line| line.contains(" 200 ")), "{path}: {answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
}

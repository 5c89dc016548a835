//! The queues in force after changes of their ConfigMap, against an API server with one ConfigMap: the stored copy.

use std::sync::Mutex;

use http::{Method, StatusCode};
use kube::client::Body;
use tower::BoxError;

use super::*;

const VALID: &str = "partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]";
const OTHER: &str = "partitions: [{name: default, queues: [{name: root, queues: [{name: b}]}]}]";
const INVALID: &str = "partitions: a lot";

/// The stored copy, the number of times it was written, and the notes of the events.
#[derive(Default)]
struct Server {
    copy: Option<Value>,
    writes: usize,
    notes: Vec<String>,
}

type SharedServer = Arc<Mutex<Server>>;

async fn respond(server: SharedServer, request: http::Request<Body>) -> Result<http::Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let sent: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
    let mut server = server.lock().expect("no test panics with the lock");
    let not_found = json!({"kind": "Status", "status": "Failure", "message": "not found", "code": 404});
    let (status, response) = match (parts.method, parts.uri.path()) {
        (Method::GET, "/api/v1/namespaces/reprieve-system/configmaps/reprieve-queues") => match &server.copy {
            Some(copy) => (StatusCode::OK, copy.clone()),
            None => (StatusCode::NOT_FOUND, not_found),
        },
        (Method::PUT, "/api/v1/namespaces/reprieve-system/configmaps/reprieve-queues") if server.copy.is_none() => {
            (StatusCode::NOT_FOUND, not_found)
        }
        (Method::PUT | Method::POST, path) if path.contains("/reprieve-system/configmaps") => {
            server.copy = Some(sent.clone());
            server.writes += 1;
            (StatusCode::OK, sent)
        }
        (Method::POST, "/apis/events.k8s.io/v1/namespaces/yunikorn/events") => {
            server.notes.push(sent["note"].as_str().unwrap_or_default().to_owned());
            (StatusCode::CREATED, sent)
        }
        (method, path) => panic!("unexpected request {method} {path}"),
    };
    let mut response = http::Response::new(Body::from(response.to_string().into_bytes()));
    *response.status_mut() = status;
    Ok(response)
}

/// The queues of a new session.
fn session(server: &SharedServer) -> QueueConfiguration {
    let server = Arc::clone(server);
    let client = Client::new(tower::service_fn(move |request| respond(Arc::clone(&server), request)), "default");
    let location = QueueLocation {
        config_map: NamespacedName::new("yunikorn", "yunikorn-configs"),
        copy: Some(NamespacedName::new("reprieve-system", "reprieve-queues")),
    };
    let reporter = Reporter { identity: "test".to_owned(), dry_run: false };
    QueueConfiguration::new(client, location, reporter, Arc::new(Metrics::new()))
}

fn map(text: &str, version: u64) -> Object {
    let metadata = json!({"namespace": "yunikorn", "name": "yunikorn-configs", "resourceVersion": version.to_string()});
    let map = json!({"metadata": metadata, "data": {"queues.yaml": text}});
    Object::from(serde_json::from_value::<ConfigMap>(map).expect("a ConfigMap"))
}

fn listed(objects: Vec<Object>, version: u64) -> Event {
    Event::Listed { kind: Kind::ConfigMap, objects, version }
}

fn deleted(version: u64) -> Event {
    Event::Deleted { key: map(VALID, 1).key(), version }
}

/// Passes an event to the queues. Returns the text in force and its version.
async fn apply(queues: &mut QueueConfiguration, event: Event) -> Option<(String, u64)> {
    let in_force = match queues.replace_config_map(event).await {
        Event::Listed { objects, .. } => objects.into_iter().next(),
        Event::Upserted(object) => Some(object),
        _ => None,
    };
    queues.store_copy().await;
    let object = in_force?;
    let version = object.version();
    let text = config_map(object).and_then(|map| map.data).and_then(|mut data| data.remove(KEY));
    Some((text.expect("it has queues"), version))
}

fn problem_of(queues: &QueueConfiguration) -> Option<String> {
    queues.metrics.readiness.set_serving(true);
    queues.metrics.readiness.problem()
}

#[tokio::test]
async fn invalid_version_does_not_replace_the_last_valid_one() {
    let server = SharedServer::default();
    let mut queues = session(&server);
    assert_eq!(apply(&mut queues, listed(vec![map(VALID, 5)], 7)).await, Some((VALID.to_owned(), 7)));
    assert_eq!(apply(&mut queues, Event::Upserted(map(INVALID, 8))).await, Some((VALID.to_owned(), 8)));
    assert_eq!(problem_of(&queues), None, "the last valid version is in force");
    assert!(queues.metrics.text().contains("reprieve_queues_valid 0"));
    assert_eq!(apply(&mut queues, Event::Upserted(map(OTHER, 9))).await, Some((OTHER.to_owned(), 9)));
    assert!(queues.metrics.text().contains("reprieve_queues_valid 1"));
    tokio::task::yield_now().await;
    assert_eq!(server.lock().expect("a lock").writes, 2, "only valid versions are stored");
}

#[tokio::test]
async fn last_valid_version_survives_a_restart() {
    let server = SharedServer::default();
    apply(&mut session(&server), listed(vec![map(VALID, 5)], 7)).await;
    let mut queues = session(&server);
    assert_eq!(apply(&mut queues, listed(vec![map(INVALID, 8)], 9)).await, Some((VALID.to_owned(), 9)));
    assert_eq!(problem_of(&queues), None);
    apply(&mut session(&server), listed(vec![map(VALID, 5)], 10)).await;
    assert_eq!(server.lock().expect("a lock").writes, 1, "the same text is not stored again");
}

#[tokio::test]
async fn config_map_without_queues_is_invalid() {
    let server = SharedServer::default();
    let mut queues = session(&server);
    let mut empty = config_map(map(VALID, 5)).expect("a ConfigMap");
    empty.data = None;
    assert_eq!(apply(&mut queues, listed(vec![Object::from(empty)], 7)).await, None);
    assert!(problem_of(&queues).is_some_and(|problem| problem.contains("data[queues.yaml]: is missing")));
}

#[tokio::test]
async fn copy_of_another_config_map_is_not_used() {
    let server = SharedServer::default();
    apply(&mut session(&server), listed(vec![map(VALID, 5)], 7)).await;
    let mut queues = session(&server);
    queues.location.config_map = NamespacedName::new("yunikorn", "moved");
    assert_eq!(apply(&mut queues, listed(vec![map(INVALID, 8)], 9)).await, None);
}

#[tokio::test]
async fn missing_config_map_disables_preemption_within_the_last_valid_queues() {
    let server = SharedServer::default();
    let mut queues = session(&server);
    apply(&mut queues, listed(vec![map(VALID, 5)], 7)).await;
    let (text, version) = apply(&mut queues, deleted(8)).await.expect("the last valid queues");
    assert_eq!(version, 8);
    let value: Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(value["partitions"][0]["preemption"]["enabled"], json!(false));
    assert_eq!(value["partitions"][0]["queues"][0]["queues"][0]["name"], "a");
    let paused = config_map(map(&text, 8)).expect("a ConfigMap");
    assert_eq!(check(&paused), Ok(()), "the queues stay valid");
    assert!(problem_of(&queues).is_some_and(|problem| problem.contains("yunikorn/yunikorn-configs is missing")));
    assert_eq!(apply(&mut queues, Event::Upserted(map(VALID, 9))).await, Some((VALID.to_owned(), 9)));
    assert_eq!(problem_of(&queues), None);
}

#[tokio::test]
async fn without_a_valid_version_there_are_no_queues_and_one_event() {
    let server = SharedServer::default();
    let mut queues = session(&server);
    assert_eq!(apply(&mut queues, listed(Vec::new(), 7)).await, None);
    assert_eq!(apply(&mut queues, listed(Vec::new(), 8)).await, None);
    assert!(problem_of(&queues).is_some_and(|problem| problem.contains("is missing")));
    assert_eq!(apply(&mut queues, Event::Upserted(map(INVALID, 9))).await, None);
    assert!(problem_of(&queues).is_some_and(|problem| problem.contains("queues.yaml")));
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let server = server.lock().expect("a lock");
    assert_eq!(server.writes, 0);
    let [missing, invalid] = server.notes.as_slice() else { panic!("{:?}", server.notes) };
    assert!(missing.contains("is missing") && missing.contains("no pod is evicted"), "{missing}");
    assert!(invalid.contains("queues.yaml"), "{invalid}");
}

use std::collections::BTreeSet;
use std::sync::Mutex;

use http::Method;
use kube::client::Body;
use reprieve_api::permissions::{CHANGES, EVENTS, Permission};
use reprieve_api::{Kind, NamespacedName, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_scheduler::action::ConditionUpdate;
use reprieve_scheduler::{ActionId, EventReason, Target};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tower::BoxError;

use super::*;
use crate::messages::EventObjectUids;

/// An executor whose API server never answers.
fn executor_without_answers(max_in_flight: u32) -> Executor {
    let never = |_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, BoxError>>();
    executor(Client::new(tower::service_fn(never), "default"), max_in_flight)
}

fn executor(client: Client, max_in_flight: u32) -> Executor {
    let limits = json!({"maxInFlight": max_in_flight});
    let config = json!({"apiVersion": "reprieve.dev/v1alpha1", "kind": "Configuration", "clientLimits": limits});
    let config: Configuration = serde_json::from_value(config).expect("a configuration");
    Executor::new(client, &config, "replica", false, Arc::new(Metrics::new()))
}

#[tokio::test]
async fn event_budget_is_one_while_more_than_half_of_the_requests_are_in_flight() {
    for (max_in_flight, free, budget) in [(25, 25, 5), (25, 13, 5), (25, 12, 1), (1, 1, 1), (1, 0, 1), (100, 50, 20)] {
        let executor = executor_without_answers(max_in_flight);
        let _busy = executor.in_flight.acquire_many(max_in_flight - free).await.expect("enough permits");
        assert_eq!(executor.event_budget().await, budget, "{free} of {max_in_flight} are free");
    }
}

#[tokio::test]
async fn events_above_the_limit_are_dropped() {
    let executor = Arc::new(executor_without_answers(25));
    let ((actions, receiver), results) = (unbounded_channel(), Arc::<EventQueue>::default());
    let accepted = MAX_QUEUED_EVENTS as u64 + executor.event_budget().await as u64;
    for id in 0..accepted + 3 {
        let about = ObjectKey::new(Kind::Pod, NamespacedName::new("default", "a"));
        let action = Action::EmitEvent { about, related: None, reason: EventReason::Scheduled, message: String::new() };
        let dispatch = Dispatch { profile: 0, id: ActionId(id), action, uids: EventObjectUids::default() };
        assert!(actions.send(dispatch).is_ok());
    }
    drop(actions);
    executor.run(receiver, Arc::clone(&results)).await;
    tokio::select! {
        biased;
        () = results.flush_loop() => unreachable!("it never ends"),
        () = tokio::task::yield_now() => {}
    }
    let messages = results.drain(Duration::ZERO).expect("the queue is open");
    let dropped: Vec<u64> = messages
        .iter()
        .map(|message| match message {
            Message::Done { action, result: Some(ActionResult::Unknown), .. } => action.0,
            _ => panic!("only dropped events have a result"),
        })
        .collect();
    assert_eq!(dropped, [accepted, accepted + 1, accepted + 2], "the first are in flight or queued");
}

/// The verb, group and resource of a request, as RBAC names them.
fn rbac_names(method: &Method, path: &str) -> (&'static str, String, String) {
    let verb = match *method {
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    };
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, rest) = if parts[0] == "api" { ("", &parts[2..]) } else { (parts[1], &parts[3..]) };
    let rest = if rest[0] == "namespaces" { &rest[2..] } else { rest };
    let resource = rest.get(2).map_or_else(|| rest[0].to_owned(), |subresource| format!("{}/{subresource}", rest[0]));
    (verb, group.to_owned(), resource)
}

/// Every request that an action leads to has a row in the table of permissions, and every row has a request.
#[tokio::test]
async fn permissions_are_those_that_the_actions_need() {
    let sent = Arc::new(Mutex::new(BTreeSet::new()));
    let record = Arc::clone(&sent);
    let respond = move |request: http::Request<Body>| {
        record.lock().expect("no panic").insert(rbac_names(request.method(), request.uri().path()));
        let object =
            json!({"metadata": {"namespace": "a", "name": "a", "uid": "u", "resourceVersion": "1"}, "spec": {}});
        async move { Ok::<_, BoxError>(http::Response::new(Body::from(object.to_string().into_bytes()))) }
    };
    let executor = executor(Client::new(tower::service_fn(respond), "default"), 25);
    let target = || Target { name: NamespacedName::new("a", "a"), uid: "u".to_owned(), version: 1 };
    let condition = || ConditionUpdate {
        type_: "PodScheduled",
        holds: false,
        reason: "Unschedulable",
        message: String::new(),
        since: Timestamp(0),
    };
    let key = || ObjectKey::new(Kind::Pod, NamespacedName::new("a", "a"));
    let (text, at) = (String::new, Timestamp(0));
    for action in [
        Action::Bind { pod: target(), node: text() },
        Action::Nominate { pod: target(), node: None },
        Action::Mark { pod: target(), preemptor: text(), message: text(), at },
        Action::Unmark { pod: target() },
        Action::SoftEvict { pod: target(), preemptor: text(), message: text(), note: text(), at },
        Action::SetCondition { kind: Kind::Pod, object: target(), condition: condition() },
        Action::SetCondition { kind: Kind::PodGroup, object: target(), condition: condition() },
        Action::Evict { pod: target() },
        Action::CreateWorkload { workload: Box::default() },
        Action::SetQuotaPending { workload: target(), message: text() },
        Action::SuspendJob { job: target() },
        Action::EmitEvent { about: key(), related: None, reason: EventReason::Scheduled, message: text() },
        Action::GetObject { key: key() },
    ] {
        let result = executor.request(&action, &EventObjectUids::default()).await;
        let is_done = matches!(&result, Ok(ActionResult::Ok { .. } | ActionResult::Read(_)));
        assert!(is_done, "{action:?}: {:?}", result.err());
    }
    let reads = Kind::ALL.iter().map(|kind| Permission::to_read(*kind));
    let permitted = |permissions: &mut dyn Iterator<Item = Permission>| -> BTreeSet<(&str, String, String)> {
        let of = |permission: Permission| {
            let (group, resource) = (permission.group.to_owned(), permission.resource.to_owned());
            permission.verbs.iter().map(move |verb| (*verb, group.clone(), resource.clone()))
        };
        permissions.flat_map(of).collect()
    };
    let changes = permitted(&mut CHANGES.iter().copied().chain([EVENTS]));
    let all: BTreeSet<_> = permitted(&mut reads.into_iter()).union(&changes).cloned().collect();
    let sent = sent.lock().expect("no panic").clone();
    assert_eq!(sent.difference(&all).collect::<Vec<_>>(), [] as [&(&str, String, String); 0], "not permitted");
    assert_eq!(changes.difference(&sent).collect::<Vec<_>>(), [] as [&(&str, String, String); 0], "not needed");
}

#[tokio::test]
async fn only_an_event_about_something_wrong_is_a_warning() {
    let executor = executor_without_answers(1);
    for (reason, type_) in [
        (EventReason::Scheduled, "Normal"),
        (EventReason::Preempted, "Normal"),
        (EventReason::Admitted, "Normal"),
        (EventReason::FailedScheduling, "Warning"),
        (EventReason::Refused, "Warning"),
    ] {
        assert_eq!(executor.reporter.event(reason, "", &Default::default(), None)["type"], type_, "{reason:?}");
    }
}

use kube::client::Body;
use reprieve_api::{Kind, NamespacedName, ObjectKey};
use reprieve_scheduler::{ActionId, EventReason};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tower::BoxError;

use super::*;
use crate::messages::EventObjectUids;

/// An executor whose API server never answers.
fn executor_without_answers(max_in_flight: u32) -> Executor {
    let never = |_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, BoxError>>();
    let client = Client::new(tower::service_fn(never), "default");
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

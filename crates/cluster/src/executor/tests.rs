use kube::client::Body;
use tower::BoxError;

use super::*;

/// Hands whose API server never answers, and their client.
pub fn unanswered(max_in_flight: u32) -> (Client, Executor) {
    let silence = |_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, BoxError>>();
    let client = Client::new(tower::service_fn(silence), "default");
    let limits = json!({"maxInFlight": max_in_flight});
    let config = json!({"apiVersion": "reprieve.dev/v1alpha1", "kind": "Configuration", "clientLimits": limits});
    let config: Configuration = serde_json::from_value(config).expect("a configuration");
    let hands = Executor::new(client.clone(), &config, "me", false, Arc::new(Metrics::new()));
    (client, hands)
}

#[test]
fn a_patch_has_only_what_differs() {
    for (before, after, patch) in [
        (json!({"a": 1}), json!({"a": 1}), None),
        (json!({"a": 1, "b": {"c": 1, "d": 2}}), json!({"a": 1, "b": {"c": 3, "d": 2}}), Some(json!({"b": {"c": 3}}))),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
        (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
        (json!({}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}}))),
    ] {
        assert_eq!(difference(&before, &after), patch);
    }
}

#[tokio::test]
async fn while_much_is_done_little_is_said() {
    for (most, free, words) in [(25, 25, 5), (25, 13, 5), (25, 12, 1), (1, 1, 1), (1, 0, 1), (100, 50, 20)] {
        let (_, hands) = unanswered(most);
        let _busy = hands.in_flight.acquire_many(most - free).await.expect("so many");
        assert_eq!(hands.words().await, words, "{free} of {most} are free");
    }
}

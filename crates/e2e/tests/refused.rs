//! Pods that must not be placed: requirements that Reprieve does not evaluate, scheduling gates, other schedulers.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_bound, is_terminating};
use reprieve_e2e::{ControlPlane, User, eventually};
use serde_json::{Value, json};

/// A pod with a changed spec.
fn with_spec(fixture: &Fixture, field: &str, value: Value) -> Pod {
    let mut pod = serde_json::to_value(fixture.build()).expect("a pod is a value");
    pod["spec"][field] = value;
    serde_json::from_value(pod).expect("a pod")
}

/// Waits until the message of the pod's condition `PodScheduled` has this code, and returns the message.
async fn scheduling_message(cluster: &ControlPlane, name: &str, start: &str) -> String {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    eventually(&format!("the condition of {name} has the code {start}"), async || {
        let conditions = pods.get(name).await.ok()?.status?.conditions?;
        let condition = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled")?;
        let has_code = |message: &String| {
            let why = message.split_once(" nodes are available: ").map(|(_, why)| why);
            why.is_some_and(|why| why.starts_with(start))
        };
        condition.message.filter(has_code)
    })
    .await
}

/// The condition of a pod with a PersistentVolumeClaim or a ResourceClaim names the field. The pod is not bound to a free node and evicts no pod.
#[tokio::test]
async fn pod_with_an_unsupported_field_is_not_bound_and_evicts_no_pod() {
    let cluster = ControlPlane::start("pod_with_an_unsupported_field_is_not_bound_and_evicts_no_pod").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_pods("default", vec![Fixture::pod("train", "low", 8).build()]).await;
    cluster.runs("train", 1).await;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let large = with_spec(&Fixture::pod("large", "high", 8), "volumes", volumes.clone());
    let small = with_spec(&Fixture::pod("small", "high", 1), "volumes", volumes);
    let claims = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    let device = with_spec(&Fixture::pod("device", "high", 1), "resourceClaims", claims);
    cluster.create_pods("default", vec![large, small, device]).await;
    for (name, field) in [
        ("large", "spec.volumes[0].persistentVolumeClaim"),
        ("small", "spec.volumes"),
        ("device", "spec.resourceClaims"),
    ] {
        let message = scheduling_message(&cluster, name, "Unsupported: ").await;
        assert!(message.contains(field), "{message}");
    }
    // A later pod that can be placed does not wait for them.
    cluster.create_pods("default", vec![Fixture::pod("plain", "low", 8).build()]).await;
    cluster.runs("plain", 1).await;
    assert!(cluster.pods_of("train").await.iter().all(|pod| is_bound(pod) && !is_terminating(pod)));
    for name in ["large", "small", "device"] {
        assert!(cluster.pods_of(name).await.iter().all(|pod| !is_bound(pod)), "{name}");
    }
}

/// A gang with a gated member evicts no pod until the gate is removed; then it is placed whole.
#[tokio::test]
async fn gang_waits_for_its_gated_member() {
    let cluster = ControlPlane::start("gang_waits_for_its_gated_member").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    cluster.apply(&group("urgent", "high", 2)).await;
    let member = |name: &str| Fixture::pod(name, "high", 8).of_group("urgent");
    let gated = with_spec(&member("urgent-1"), "schedulingGates", json!([{"name": "example.com/quota"}]));
    cluster.create_pods("default", vec![member("urgent-0").build(), gated]).await;
    let message = scheduling_message(&cluster, "urgent-0", "SchedulingGates: ").await;
    assert!(message.contains("example.com/quota"), "{message}");
    assert!(
        cluster.pods_of("train").await.iter().all(|pod| !is_terminating(pod)),
        "no pod is evicted for part of a gang"
    );
    let nominated = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.nominated_node_name.is_some());
    assert!(!cluster.pods_of("urgent").await.iter().any(nominated), "no node is nominated for part of a gang");
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods.patch("urgent-1", &PatchParams::default(), &open).await.expect("a gate can be removed");
    cluster.runs("urgent", 2).await;
    cluster.is_gone("train").await;
}

/// The scheduler does not touch a member with another schedulerName; the member counts once its scheduler has bound it.
#[tokio::test]
async fn member_of_another_scheduler_is_not_touched() {
    let cluster = ControlPlane::start("member_of_another_scheduler_is_not_touched").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.apply(&group("mixed", "high", 2)).await;
    let member = |name: &str| Fixture::pod(name, "high", 8).of_group("mixed");
    let other = member("mixed-1").scheduler("other").build();
    cluster.create_pods("default", vec![member("mixed-0").build(), other]).await;
    scheduling_message(&cluster, "mixed-0", "OtherScheduler: ").await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let untouched = pods.get("mixed-1").await.expect("the pod exists");
    let status = untouched.status.clone().unwrap_or_default();
    assert!(status.nominated_node_name.is_none() && status.conditions.is_none(), "{status:?}");
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "mixed-1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
    });
    let _: Value = pods
        .create_subresource("binding", "mixed-1", &PostParams::default(), &binding)
        .await
        .expect("another scheduler may bind it");
    cluster.runs("mixed", 2).await;
}

//! Pods that are not to be placed, on a real control plane: requirements that are not evaluated, scheduling gates, other schedulers.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_bound, is_leaving};
use reprieve_e2e::{ControlPlane, User, eventually};
use serde_json::{Value, json};

/// A pod with a changed spec.
fn with_spec(story: &Fixture, field: &str, value: Value) -> Pod {
    let mut pod = serde_json::to_value(story.build()).expect("a pod is a value");
    pod["spec"][field] = value;
    serde_json::from_value(pod).expect("it is still a pod")
}

/// The message of the pod's condition `PodScheduled`, once there is one with this start.
async fn says(cluster: &ControlPlane, name: &str, start: &str) -> String {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    eventually(&format!("{name} says {start}"), async || {
        let conditions = pods.get(name).await.ok()?.status?.conditions?;
        let condition = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled")?;
        condition.message.filter(|message| message.starts_with(start))
    })
    .await
}

/// A pod with a PersistentVolumeClaim or a ResourceClaim is told the field; it is not bound to a free node, and evicts nobody.
#[tokio::test]
async fn what_is_not_evaluated_is_never_bound_and_evicts_nobody() {
    let cluster = ControlPlane::start("what_is_not_evaluated_is_never_bound_and_evicts_nobody").await;
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
        let message = says(&cluster, name, "Unsupported: ").await;
        assert!(message.contains(field), "{message}");
    }
    // A pod that comes later, and can be placed, is not held up by them.
    cluster.create_pods("default", vec![Fixture::pod("plain", "low", 8).build()]).await;
    cluster.runs("plain", 1).await;
    assert!(cluster.pods_of("train").await.iter().all(|pod| is_bound(pod) && !is_leaving(pod)));
    for name in ["large", "small", "device"] {
        assert!(cluster.pods_of(name).await.iter().all(|pod| !is_bound(pod)), "{name}");
    }
}

/// A gang with a gated member takes nothing until the gate is removed; then it is placed whole.
#[tokio::test]
async fn a_gang_waits_for_its_gated_member() {
    let cluster = ControlPlane::start("a_gang_waits_for_its_gated_member").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    cluster.apply(&group("urgent", "high", 2)).await;
    let member = |name: &str| Fixture::pod(name, "high", 8).of_group("urgent");
    let gated = with_spec(&member("urgent-1"), "schedulingGates", json!([{"name": "example.com/quota"}]));
    cluster.create_pods("default", vec![member("urgent-0").build(), gated]).await;
    let message = says(&cluster, "urgent-0", "SchedulingGates: ").await;
    assert!(message.contains("example.com/quota"), "{message}");
    assert!(cluster.pods_of("train").await.iter().all(|pod| !is_leaving(pod)), "nobody is taken for half a gang");
    let nominated = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.nominated_node_name.is_some());
    assert!(!cluster.pods_of("urgent").await.iter().any(nominated), "no node is kept for half a gang");
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods.patch("urgent-1", &PatchParams::default(), &open).await.expect("a gate can be removed");
    cluster.runs("urgent", 2).await;
    cluster.is_gone("train").await;
}

/// A member that names another scheduler is left alone, and counts once that scheduler has bound it.
#[tokio::test]
async fn a_member_of_another_scheduler_is_left_to_it() {
    let cluster = ControlPlane::start("a_member_of_another_scheduler_is_left_to_it").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.apply(&group("mixed", "high", 2)).await;
    let member = |name: &str| Fixture::pod(name, "high", 8).of_group("mixed");
    let other = member("mixed-1").scheduler("other").build();
    cluster.create_pods("default", vec![member("mixed-0").build(), other]).await;
    says(&cluster, "mixed-0", "OtherScheduler: ").await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let untouched = pods.get("mixed-1").await.expect("it is there");
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

//! Policy Kubernetes on a real control plane.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_bound, is_leaving};
use reprieve_e2e::{ControlPlane, User, eventually};
use serde_json::json;

/// The main story: a gang needs half of what two gangs hold. One of them goes, whole; the other is not touched; it is said on both sides
/// who yielded to whom.
#[tokio::test]
async fn a_gang_preempts_one_gang_whole() {
    let cluster = ControlPlane::start("a_gang_preempts_one_gang_whole").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_gang("train-a", "low", 2, 8).await;
    cluster.create_gang("train-b", "low", 2, 8).await;
    cluster.runs("train-a", 2).await;
    cluster.runs("train-b", 2).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    cluster.runs("urgent", 2).await;
    let left = [cluster.pods_of("train-a").await.len(), cluster.pods_of("train-b").await.len()];
    assert!(left == [2, 0] || left == [0, 2], "one gang is taken whole, the other not at all: {left:?}");

    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    let preempted = eventually("it is recorded who was preempted", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items;
        let about = events.into_iter().filter(|event| event.reason.as_deref() == Some("Preempted"));
        let found: Vec<Event> = about.collect();
        (found.len() == 2).then_some(found)
    })
    .await;
    for event in preempted {
        assert_eq!(event.related.and_then(|related| related.name).as_deref(), Some("urgent"), "whom it yielded to");
        assert!(event.note.is_some_and(|note| note.contains("urgent")));
    }
    let log = scheduler.log();
    assert!(scheduler.stop().await.success(), "{log}");
}

/// Nobody is evicted for a gang of which not all would fit, not even with everybody gone, and its pods are told why they wait.
#[tokio::test]
async fn nobody_yields_in_vain() {
    let cluster = ControlPlane::start("nobody_yields_in_vain").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    cluster.create_gang("huge", "high", 3, 8).await;
    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    let says_why = |event: &&Event| {
        let is_of_pod = event.regarding.as_ref().is_some_and(|one| one.kind.as_deref() == Some("Pod"));
        let note = "NoFeasiblePlan: no node has room, and no set of victims that the policy allows is enough";
        is_of_pod && event.reason.as_deref() == Some("FailedScheduling") && event.note.as_deref() == Some(note)
    };
    eventually("an event on each pod says why it waits", async || {
        let events = events.list(&ListParams::default()).await.ok()?;
        (events.iter().filter(says_why).count() == 3).then_some(())
    })
    .await;
    assert!(cluster.pods_of("train").await.iter().all(|pod| is_bound(pod) && !is_leaving(pod)));
    assert!(cluster.pods_of("huge").await.iter().all(|pod| !is_bound(pod)));
}

/// A group that asks for more than it may have is told so, and so is one whose pods differ from it in priority. What is refused does not
/// keep anybody from preempting it.
#[tokio::test]
async fn what_is_wrong_with_a_group_is_said_on_it() {
    let cluster = ControlPlane::start("what_is_wrong_with_a_group_is_said_on_it").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let untouchable =
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: untouchable}, value: 2000}";
    cluster.apply(untouchable).await;
    let policy = "Kubernetes, args: {maxPreemptionPriorityExcess: 500}";
    let _scheduler = cluster.run("reprieve", User::Admin, policy, "");
    let asks = |class: &str| json!({"metadata": {"annotations": {"reprieve.dev/preemption-priority-class": class}}});
    let groups: Api<PodGroup> = Api::default_namespaced(cluster.client().clone());
    let condition = async |group: &str, type_: &str| {
        let conditions = groups.get_status(group).await.ok()?.status?.conditions?;
        let condition = conditions.into_iter().find(|condition| condition.type_ == type_)?;
        Some((condition.status, condition.reason))
    };
    let becomes = async |group: &str, type_: &str, status: &str, reason: &str| {
        eventually(&format!("{type_} of {group} is {status}, {reason}"), async || {
            condition(group, type_).await.filter(|now| (now.0.as_str(), now.1.as_str()) == (status, reason))
        })
        .await;
    };

    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    assert_eq!(condition("train", "PreemptionPriorityRefused").await, None);
    let asked = |class| Patch::Merge(asks(class));
    groups.patch("train", &PatchParams::default(), &asked("untouchable")).await.expect("it can be patched");
    becomes("train", "PreemptionPriorityRefused", "True", "TooFarAboveSchedulingPriority").await;
    groups.patch("train", &PatchParams::default(), &asked("low")).await.expect("it can be patched");
    becomes("train", "PreemptionPriorityRefused", "False", "Accepted").await;
    groups.patch("train", &PatchParams::default(), &asked("untouchable")).await.expect("it can be patched");
    becomes("train", "PreemptionPriorityRefused", "True", "TooFarAboveSchedulingPriority").await;
    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    let note = eventually("the refusal is recorded", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items;
        let refused = |event: &Event| event.reason.as_deref() == Some("PreemptionPriorityRefused");
        events.into_iter().find(refused)?.note
    })
    .await;
    assert!(note.contains("2000") && note.contains("more than 500 above"), "{note}");
    cluster.create_gang("urgent", "high", 2, 8).await;
    cluster.runs("urgent", 2).await;
    cluster.is_gone("train").await;

    cluster.apply(&group("mixed", "low", 1)).await;
    cluster.create_pods("default", vec![Fixture::pod("mixed-0", "high", 8).of_group("mixed").build()]).await;
    becomes("mixed", "PodsNotMatchingPriority", "True", "PodsNotMatchingPriority").await;
}

/// A large gang against many.
#[tokio::test]
async fn a_gang_of_fifty_preempts_gangs() {
    let cluster = ControlPlane::start("a_gang_of_fifty_preempts_gangs").await;
    cluster.create_nodes("node", 50, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    for gang in 0..5 {
        cluster.create_gang(&format!("train-{gang}"), "low", 10, 8).await;
    }
    for gang in 0..5 {
        cluster.runs(&format!("train-{gang}"), 10).await;
    }
    cluster.create_gang("urgent", "high", 50, 8).await;
    cluster.runs("urgent", 50).await;
    for gang in 0..5 {
        cluster.is_gone(&format!("train-{gang}")).await;
    }
}

/// A budget that allows no disruption makes another pod the victim.
#[tokio::test]
async fn a_budget_is_kept_where_it_can_be() {
    let cluster = ControlPlane::start("a_budget_is_kept_where_it_can_be").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster
        .apply(
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: keep}, \
             spec: {minAvailable: 1, selector: {matchLabels: {app: kept}}}}",
        )
        .await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    let pods = ["kept", "other"].map(|name| Fixture::pod(name, "low", 8).build());
    cluster.create_pods("default", pods.to_vec()).await;
    cluster.runs("kept", 1).await;
    cluster.runs("other", 1).await;
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    cluster.runs("urgent", 1).await;
    cluster.runs("kept", 1).await;
    cluster.is_gone("other").await;
}

/// A class that tolerates preemption for some seconds keeps its pods for as long, and not longer.
#[tokio::test]
async fn a_toleration_runs_out_while_the_preemptor_waits() {
    let cluster = ControlPlane::start("a_toleration_runs_out_while_the_preemptor_waits").await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster
        .apply(
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: tolerant, annotations: { \
             preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: '10000', \
             preemption-toleration.scheduling.x-k8s.io/toleration-seconds: '6'}}, value: 100}",
        )
        .await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_pods("default", vec![Fixture::pod("tolerant", "tolerant", 8).build()]).await;
    cluster.runs("tolerant", 1).await;
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(cluster.pods_of("tolerant").await.iter().all(|pod| !is_leaving(pod)), "it tolerates the preemptor for now");
    cluster.runs("urgent", 1).await;
    cluster.is_gone("tolerant").await;
}

/// Nobody is preempted in a namespace that is protected.
#[tokio::test]
async fn kube_system_is_spared() {
    let cluster = ControlPlane::start("kube_system_is_spared").await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_pods("kube-system", vec![Fixture::pod("system", "low", 8).namespace("kube-system").build()]).await;
    cluster.runs("system", 1).await;
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    cluster.runs("system", 1).await;
    let urgent: Vec<Pod> = cluster.pods_of("urgent").await;
    assert!(urgent.iter().all(|pod| !is_bound(pod)));
}

/// `--dry-run` decides and says so, and touches nothing.
#[tokio::test]
async fn a_dry_run_touches_nothing() {
    let cluster = ControlPlane::start("a_dry_run_touches_nothing").await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let real = cluster.run("real", User::Admin, "Kubernetes", "");
    cluster.create_pods("default", vec![Fixture::pod("train", "low", 8).build()]).await;
    cluster.runs("train", 1).await;
    assert!(real.stop().await.success());
    let before = cluster.pods_of("train").await[0].metadata.resource_version.clone();
    let config = cluster.folder().join("real.yaml").display().to_string();
    let dry = cluster.reprieve("dry", User::Admin, &["run", "--dry-run", "--config", &config]);
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    eventually("it says whom it would take", async || dry.log().contains("default/train").then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.pods_of("train").await[0].metadata.resource_version, before);
    let urgent = &cluster.pods_of("urgent").await[0];
    assert!(!is_bound(urgent) && urgent.status.as_ref().is_none_or(|status| status.nominated_node_name.is_none()));
    assert!(dry.stop().await.success());
}

/// Victims change all the time, so that evictions of the version that was decided on conflict. It comes to the same.
#[tokio::test]
async fn conflicts_are_overcome() {
    let cluster = ControlPlane::start("conflicts_are_overcome").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    for gang in 0..2 {
        cluster.create_gang(&format!("train-{gang}"), "low", 2, 8).await;
        cluster.runs(&format!("train-{gang}"), 2).await;
    }
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let meddler = tokio::spawn(async move {
        for round in 0.. {
            for gang in 0..2 {
                let patch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
                let name = format!("train-{gang}-{}", round % 2);
                let _ = pods.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            }
        }
    });
    cluster.create_gang("urgent", "high", 4, 8).await;
    cluster.runs("urgent", 4).await;
    meddler.abort();
}

//! Policy Kubernetes on a real control plane.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_bound, is_terminating};
use reprieve_e2e::{ControlPlane, User, eventually};
use serde_json::json;

/// The main case: a gang needs half of the nodes of two gangs. One of them is evicted whole; the other is not touched; events name victim and
/// preemptor.
#[tokio::test]
async fn gang_preempts_one_gang_whole() {
    let cluster = ControlPlane::start("gang_preempts_one_gang_whole").await;
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
    assert!(left == [2, 0] || left == [0, 2], "one gang is evicted whole, the other not at all: {left:?}");

    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    let preempted = eventually("events name the preempted pods", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items;
        let about = events.into_iter().filter(|event| event.reason.as_deref() == Some("Preempted"));
        let found: Vec<Event> = about.collect();
        (found.len() == 2).then_some(found)
    })
    .await;
    for event in preempted {
        assert_eq!(event.related.and_then(|related| related.name).as_deref(), Some("urgent"), "the preemptor");
        assert!(event.note.is_some_and(|note| note.contains("urgent")));
    }
    let log = scheduler.log();
    assert!(scheduler.stop().await.success(), "{log}");
}

/// No pod is evicted for a gang that would not fit even on empty nodes, and events on its pods have the reason.
#[tokio::test]
async fn no_pod_is_evicted_for_a_gang_that_cannot_fit() {
    let cluster = ControlPlane::start("no_pod_is_evicted_for_a_gang_that_cannot_fit").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    cluster.create_gang("huge", "high", 3, 8).await;
    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    let has_reason = |event: &&Event| {
        let is_of_pod = event.regarding.as_ref().is_some_and(|object| object.kind.as_deref() == Some("Pod"));
        let note = "0/2 nodes are available: NoFeasiblePlan: it does not fit now, and no set of victims that the policy allows makes \
                    it fit";
        is_of_pod && event.reason.as_deref() == Some("FailedScheduling") && event.note.as_deref() == Some(note)
    };
    eventually("an event on each pod has the reason", async || {
        let events = events.list(&ListParams::default()).await.ok()?;
        (events.iter().filter(has_reason).count() == 3).then_some(())
    })
    .await;
    assert!(cluster.pods_of("train").await.iter().all(|pod| is_bound(pod) && !is_terminating(pod)));
    assert!(cluster.pods_of("huge").await.iter().all(|pod| !is_bound(pod)));
}

/// A condition on the group reports an invalid preemption priority and pods of another priority. An invalid preemption priority does not protect the
/// group from preemption.
#[tokio::test]
async fn conditions_report_problems_of_a_group() {
    let cluster = ControlPlane::start("conditions_report_problems_of_a_group").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let untouchable =
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: untouchable}, value: 2000}";
    cluster.apply(untouchable).await;
    let policy = "Kubernetes, args: {maxPreemptionPriorityExcess: 500}";
    let _scheduler = cluster.run("reprieve", User::Admin, policy, "");
    let annotation =
        |class: &str| json!({"metadata": {"annotations": {"reprieve.dev/preemption-priority-class": class}}});
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
    let patch = |class| Patch::Merge(annotation(class));
    groups.patch("train", &PatchParams::default(), &patch("untouchable")).await.expect("the group can be patched");
    becomes("train", "PreemptionPriorityRefused", "True", "TooFarAboveSchedulingPriority").await;
    groups.patch("train", &PatchParams::default(), &patch("low")).await.expect("the group can be patched");
    becomes("train", "PreemptionPriorityRefused", "False", "Accepted").await;
    groups.patch("train", &PatchParams::default(), &patch("untouchable")).await.expect("the group can be patched");
    becomes("train", "PreemptionPriorityRefused", "True", "TooFarAboveSchedulingPriority").await;
    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    let note = eventually("an event reports the invalid priority", async || {
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

/// A large gang preempts several gangs.
#[tokio::test]
async fn gang_of_fifty_preempts_gangs() {
    let cluster = ControlPlane::start("gang_of_fifty_preempts_gangs").await;
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

/// If a budget allows no disruption, another pod is the victim.
#[tokio::test]
async fn budget_is_respected_if_possible() {
    let cluster = ControlPlane::start("budget_is_respected_if_possible").await;
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

/// A toleration of some seconds protects pods for this time and not longer.
#[tokio::test]
async fn toleration_expires_while_the_preemptor_waits() {
    let cluster = ControlPlane::start("toleration_expires_while_the_preemptor_waits").await;
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
    assert!(
        cluster.pods_of("tolerant").await.iter().all(|pod| !is_terminating(pod)),
        "the toleration protects the pod for now"
    );
    cluster.runs("urgent", 1).await;
    cluster.is_gone("tolerant").await;
}

/// No pod in a protected namespace is preempted.
#[tokio::test]
async fn pods_of_kube_system_are_not_preempted() {
    let cluster = ControlPlane::start("pods_of_kube_system_are_not_preempted").await;
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

/// `--dry-run` logs its decisions and changes no object.
#[tokio::test]
async fn dry_run_changes_nothing() {
    let cluster = ControlPlane::start("dry_run_changes_nothing").await;
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
    eventually("the log names the victim", async || dry.log().contains("default/train").then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.pods_of("train").await[0].metadata.resource_version, before);
    let urgent = &cluster.pods_of("urgent").await[0];
    assert!(!is_bound(urgent) && urgent.status.as_ref().is_none_or(|status| status.nominated_node_name.is_none()));
    assert!(dry.stop().await.success());
}

/// Victims change all the time, so that evictions conflict with newer versions. The preemption still completes.
#[tokio::test]
async fn preemption_completes_despite_conflicts() {
    let cluster = ControlPlane::start("preemption_completes_despite_conflicts").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    for gang in 0..2 {
        cluster.create_gang(&format!("train-{gang}"), "low", 2, 8).await;
        cluster.runs(&format!("train-{gang}"), 2).await;
    }
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let concurrent_writer = tokio::spawn(async move {
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
    concurrent_writer.abort();
}

//! The control plane itself, on which every other test relies.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::Api;
use kube::api::{DeleteParams, PostParams, WatchEvent, WatchParams};
use reprieve_e2e::{ControlPlane, User, eventually, objects};
use serde_json::Value;

#[tokio::test]
async fn nodes_become_ready_and_pods_run() {
    let mut cluster = ControlPlane::start("nodes_become_ready_and_pods_run").await;
    cluster.create_nodes("node", 20, &[("cpu", "4"), ("memory", "8Gi")]).await;
    let nodes: Api<Node> = Api::all(cluster.client().clone());
    let node = nodes.get("node-19").await.unwrap();
    assert_eq!(node.status.unwrap().allocatable.unwrap()["cpu"].0, "4");

    cluster
        .apply(
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}\n---\n\
             {apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: gang}, \
              spec: {priorityClassName: high, schedulingPolicy: {gang: {minCount: 1}}}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: member}, spec: {schedulerName: none, priorityClassName: high, \
              schedulingGroup: {podGroupName: gang}, containers: [{name: main, image: none}]}}",
        )
        .await;
    let groups: Api<PodGroup> = Api::default_namespaced(cluster.client().clone());
    assert_eq!(groups.get("gang").await.unwrap().spec.priority, Some(1000));

    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let phase = async || pods.get("member").await.unwrap().status.unwrap().phase.unwrap();
    assert_eq!(phase().await, "Pending");
    let binding = objects(
        "{apiVersion: v1, kind: Binding, metadata: {name: member}, target: {apiVersion: v1, kind: Node, name: node-7}}",
    );
    let _: Value = pods.create_subresource("binding", "member", &PostParams::default(), &binding[0]).await.unwrap();
    eventually("the pod runs", async || (phase().await == "Running").then_some(())).await;
    pods.delete("member", &DeleteParams::default()).await.unwrap();
    eventually("the pod is gone", async || pods.get_opt("member").await.unwrap().is_none().then_some(())).await;
    cluster.check();
}

#[tokio::test]
async fn every_custom_resource_accepts_an_object() {
    let cluster = ControlPlane::start("every_custom_resource_accepts_an_object").await;
    cluster
        .apply(
            "\
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all}, spec: {}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  cohortName: all
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups:
    - {coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 8}]}]}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: team}, spec: {clusterQueue: team}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 1000}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: job}
spec:
  queueName: team
  podSets:
    - name: main
      count: 2
      template: {spec: {containers: [{name: main, image: none, resources: {requests: {cpu: 1}}}]}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: team, labels: {quota.scheduling.koordinator.sh/is-parent: \"false\"}}
spec: {min: {cpu: 4}, max: {cpu: 8}}
---
{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: PodGroup, metadata: {name: gang}, spec: {minMember: 2}}
",
        )
        .await;
}

/// A watch from a version before the compaction fails with 410 Gone.
#[tokio::test]
async fn api_server_can_lose_its_history() {
    let mut cluster = ControlPlane::start("api_server_can_lose_its_history").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client().clone());
    cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await;
    let version = maps.get("one").await.unwrap().metadata.resource_version.unwrap();
    cluster.forget_history().await;
    let events = maps.watch(&WatchParams::default(), &version).await.unwrap();
    let first = events.boxed().try_next().await.unwrap();
    assert!(matches!(&first, Some(WatchEvent::Error(status)) if status.code == 410), "{first:?}");
    assert!(maps.get_opt("one").await.unwrap().is_some());
}

#[tokio::test]
async fn users_have_only_the_permissions_of_their_roles() {
    let cluster = ControlPlane::start("users_have_only_the_permissions_of_their_roles").await;
    for (user, may_read) in [(User::Admin, true), (User::Run, false), (User::Planner, false)] {
        let nodes: Api<Node> = Api::all(cluster.client_of(user).await);
        let read = nodes.list(&Default::default()).await;
        assert_eq!(read.is_ok(), may_read, "{user:?}: {read:?}");
    }
}

//! Objects of a hostile tenant that an API server accepts: the units of other tenants are scheduled as without them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use reprieve_e2e::fixtures::{CLASSES, Fixture, is_bound, is_terminating};
use reprieve_e2e::{ControlPlane, Process, User, eventually};
use serde_json::{Value, json};

/// The namespace of the hostile tenant.
const TENANT: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: hostile}}";

/// A pod of the hostile tenant with a changed field.
fn hostile(fixture: &Fixture, pointer: &str, value: Value) -> Pod {
    let mut pod = serde_json::to_value(fixture.clone().namespace("hostile").build()).expect("a pod is a value");
    *pod.pointer_mut(pointer).expect("the pod has the field") = value;
    serde_json::from_value(pod).expect("a pod")
}

/// Checks that the scheduler runs and has not panicked.
fn is_healthy(scheduler: &mut Process) {
    scheduler.check();
    let log = scheduler.log();
    assert!(!log.contains("panic"), "{log}");
}

/// Waits for an event of this reason in the tenant's namespace, and returns its note.
async fn note(cluster: &ControlPlane, reason: &str) -> String {
    let events: Api<Event> = Api::namespaced(cluster.client().clone(), "hostile");
    eventually(&format!("an event {reason}"), async || {
        let events = events.list(&ListParams::default()).await.ok()?;
        events.items.into_iter().find(|event| event.reason.as_deref() == Some(reason))?.note
    })
    .await
}

/// A pod with an impossible amount fills its node only; forged marks start no preemption and evict no pod.
#[tokio::test]
async fn impossible_amounts_and_forged_marks_affect_only_their_tenant() {
    let cluster = ControlPlane::start("impossible_amounts_and_forged_marks_affect_only_their_tenant").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8"), ("memory", "64Gi"), ("cpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster.apply(TENANT).await;
    let mut scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    let resources = "/spec/containers/0/resources";
    let huge = || json!({"requests": {"memory": "5Ei"}});
    cluster
        .create_pods(
            "hostile",
            vec![
                hostile(&Fixture::pod("pending", "high", 1), resources, huge()),
                hostile(&Fixture::pod("bound", "low", 1).on("node-0"), resources, huge()),
            ],
        )
        .await;
    assert!(note(&cluster, "Refused").await.contains("too large"));
    cluster.create_pods("default", vec![Fixture::pod("train", "low", 8).build()]).await;
    cluster.runs("train", 1).await;
    let forged = |index: usize| {
        let labels = json!({"app": "forged", "scheduling.koordinator.sh/soft-eviction": "preempted"});
        let mut pod = hostile(&Fixture::pod(&format!("forged-{index}"), "low", 1), "/metadata/labels", labels);
        pod.metadata.annotations =
            Some([("reprieve.dev/preempted-for".to_owned(), "Pod default/urgent".to_owned())].into());
        pod
    };
    cluster.create_pods("hostile", (0..20).map(forged).collect()).await;
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    cluster.runs("urgent", 1).await;
    cluster.is_gone("train").await;
    assert!(cluster.pods_of("forged").await.iter().all(|pod| !is_terminating(pod)));
    is_healthy(&mut scheduler);
}

/// A pod that names the parent of another tenant's dynamic queue is refused, and so is a pod that is relabelled while it runs.
#[tokio::test]
async fn labels_of_queues_affect_only_their_tenant() {
    let cluster = ControlPlane::start("labels_of_queues_affect_only_their_tenant").await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster.apply(TENANT).await;
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: reprieve-system}}").await;
    let queues = "partitions: [{name: default, queues: [{name: root, queues: [{name: users, parent: true}]}]}]";
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "yunikorn-configs"},
        "data": {"queues.yaml": queues},
    });
    cluster.apply(&map.to_string()).await;
    let mut scheduler = cluster.run("reprieve", User::Admin, "YuniKorn, queues: {namespace: default}", "");
    let in_queue = |name: &str, gpus: u32, queue: &str| Fixture::pod(name, "low", gpus).label("queue", queue);
    cluster.create_pods("default", vec![in_queue("first", 4, "root.users.team.a").build()]).await;
    cluster.runs("first", 1).await;
    // Creation times have whole seconds.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let parent = in_queue("parent", 1, "root.users.team").namespace("hostile").build();
    let running = in_queue("running", 2, "root.users.other").namespace("hostile").build();
    cluster.create_pods("hostile", vec![parent, running]).await;
    cluster.runs("running", 1).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client().clone(), "hostile");
    let relabel = Patch::Merge(json!({"metadata": {"labels": {"queue": "root.no-such-queue"}}}));
    pods.patch("running", &PatchParams::default(), &relabel).await.expect("a label can be changed");
    assert!(note(&cluster, "Refused").await.contains("no-such-queue"));
    // 2 of 8 GPUs are left, because the relabelled pod keeps its room.
    cluster.create_pods("default", vec![in_queue("large", 4, "root.users.team.a").build()]).await;
    cluster.create_pods("default", vec![in_queue("second", 2, "root.users.team.a").build()]).await;
    cluster.runs("second", 1).await;
    for name in ["large", "parent"] {
        assert!(cluster.pods_of(name).await.iter().all(|pod| !is_bound(pod)), "{name}");
    }
    is_healthy(&mut scheduler);
}

const KUEUE: &str = "
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: gpu}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: gpu, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: team}, spec: {clusterQueue: team}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: team, namespace: hostile}, spec: {clusterQueue: team}}
";

fn job(name: &str, namespace: &str, gpus: u32) -> String {
    let resources = json!({"limits": {"nvidia.com/gpu": gpus}});
    let pod = json!({
        "schedulerName": "reprieve",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "none", "resources": resources}],
    });
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {
            "suspend": true,
            "parallelism": 1,
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    });
    job.to_string()
}

/// A Job runs no more pods than have quota, and a Workload of another namespace does not suspend a Job.
#[tokio::test]
async fn jobs_and_workloads_affect_only_their_tenant() {
    let cluster = ControlPlane::start("jobs_and_workloads_affect_only_their_tenant").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(TENANT).await;
    cluster.apply(KUEUE).await;
    let mut scheduler = cluster.run("reprieve", User::Admin, "Kueue", "");
    cluster.apply(&job("greedy", "hostile", 8)).await;
    cluster.runs("greedy", 1).await;
    let jobs: Api<Job> = Api::namespaced(cluster.client().clone(), "hostile");
    let more = Patch::Merge(json!({"spec": {"parallelism": 4}}));
    jobs.patch("greedy", &PatchParams::default(), &more).await.expect("the parallelism can be changed");
    eventually("the Job has its own size again", async || {
        let spec = jobs.get("greedy").await.ok()?.spec?;
        (spec.parallelism == Some(1) && spec.suspend == Some(false)).then_some(())
    })
    .await;
    cluster.runs("greedy", 1).await;

    cluster.apply(&job("train", "default", 8)).await;
    cluster.runs("train", 1).await;
    let train: Api<Job> = Api::default_namespaced(cluster.client().clone());
    let uid = train.get("train").await.expect("the Job exists").metadata.uid;
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "false-friend",
            "namespace": "hostile",
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": true},
            ],
        },
        "spec": {"queueName": "team", "active": false, "podSets": []},
    });
    cluster.apply(&workload.to_string()).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    cluster.runs("train", 1).await;
    is_healthy(&mut scheduler);
}

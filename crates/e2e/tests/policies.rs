//! The main cases of policies YuniKorn, Koordinator and Kueue on a real control plane.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use reprieve_e2e::fixtures::{CLASSES, Fixture, is_bound, is_terminating};
use reprieve_e2e::{ControlPlane, User, eventually};

const QUEUES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - {name: prod, resources: {guaranteed: {nvidia.com/gpu: GUARANTEED}}, properties: {preemption.delay: 1s}}
        - {name: test}
";

/// A queue below its guarantee preempts pods of a queue above its own. A changed ConfigMap takes effect at once; an invalid one is
/// rejected, and the previous one stays in effect, also after a restart. Without the ConfigMap no pod is evicted.
#[tokio::test]
async fn yunikorn_preempts_up_to_the_guarantee() {
    let cluster = ControlPlane::start("yunikorn_preempts_up_to_the_guarantee").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster.apply(&QUEUES.replace("GUARANTEED", "'0'")).await;
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: reprieve-system}}").await;
    let policy = "YuniKorn, queues: {namespace: default}";
    let scheduler = cluster.run("reprieve", User::Admin, policy, "");
    let pod = |name: &str, queue: &str| {
        Fixture::pod(name, "low", 8).label("queue", &format!("root.{queue}")).label("applicationId", queue).build()
    };
    cluster.create_pods("default", vec![pod("test-a", "test"), pod("test-b", "test")]).await;
    cluster.runs("test-a", 1).await;
    cluster.runs("test-b", 1).await;
    cluster.create_pods("default", vec![pod("prod-a", "prod")]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(bound(&cluster, &["test-a", "test-b"]).await, 2, "prod has no guarantee yet");

    cluster.apply(&QUEUES.replace("GUARANTEED", "a lot")).await;
    eventually("an invalid configuration is rejected", async || scheduler.log().contains("a lot").then_some(())).await;
    cluster.apply(&QUEUES.replace("GUARANTEED", "'8'")).await;
    cluster.runs("prod-a", 1).await;
    assert_eq!(bound(&cluster, &["test-a", "test-b"]).await, 1);
    cluster.apply(&QUEUES.replace("GUARANTEED", "'16'")).await;
    let copies: Api<ConfigMap> = Api::namespaced(cluster.client().clone(), "reprieve-system");
    eventually("the valid queues are stored", async || {
        let copy = copies.get_opt("reprieve-queues").await.ok()??;
        copy.data?.get("queues.yaml")?.contains("16").then_some(())
    })
    .await;
    assert!(scheduler.stop().await.success());

    cluster.apply(&QUEUES.replace("GUARANTEED", "a lot")).await;
    let restarted = cluster.run("restarted", User::Admin, policy, "");
    eventually("the last valid queues survive a restart", async || {
        restarted.log().contains("the last valid version stays in force").then_some(())
    })
    .await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client().clone());
    maps.delete("yunikorn-configs", &DeleteParams::default()).await.unwrap();
    eventually("the missing queues are reported", async || restarted.log().contains("is missing").then_some(())).await;
    cluster.create_pods("default", vec![pod("prod-b", "prod")]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(bound(&cluster, &["test-a", "test-b"]).await, 1, "no pod is evicted while the queues are missing");
    cluster.apply(&QUEUES.replace("GUARANTEED", "'16'")).await;
    cluster.runs("prod-b", 1).await;
}

const QUOTA: &str = "
{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: team}, spec: {min: {nvidia.com/gpu: 32}, max: {nvidia.com/gpu: 32}}}
";

fn koordinator_job(name: &str, class: &str) -> (String, Vec<Pod>) {
    let group = format!(
        "{{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: PodGroup, metadata: {{name: {name}}}, spec: {{minMember: 2}}}}"
    );
    let pod = |index: usize| {
        Fixture::pod(&format!("{name}-{index}"), class, 8)
            .label("app", name)
            .label("pod-group.scheduling.sigs.k8s.io", name)
            .label("quota.scheduling.koordinator.sh/name", "team")
            .build()
    };
    (group, (0..2).map(pod).collect())
}

/// A job preempts a whole job. The scheduler labels the victims; an external operator evicts them later.
#[tokio::test]
async fn koordinator_labels_victims_and_waits_for_the_operator() {
    let cluster = ControlPlane::start("koordinator_labels_victims_and_waits_for_the_operator").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster.apply(QUOTA).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Koordinator", "");
    let (group, pods) = koordinator_job("train", "low");
    cluster.apply(&group).await;
    cluster.create_pods("default", pods).await;
    cluster.runs("train", 2).await;
    let (group, pods) = koordinator_job("urgent", "high");
    cluster.apply(&group).await;
    cluster.create_pods("default", pods).await;
    let victims = eventually("all pods of the job are labelled", async || {
        let pods = cluster.pods_of("train").await;
        let is_labelled = |pod: &Pod| {
            let (labels, key) = (pod.metadata.labels.as_ref(), "scheduling.koordinator.sh/soft-eviction");
            let note = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
            let is_of_urgent = |note: &String| note.starts_with(r#"{"preemptJob":"default/urgent","#);
            labels.and_then(|labels| labels.get(key)).is_some_and(|value| value == "preempted")
                && note.is_some_and(is_of_urgent)
        };
        (pods.len() == 2 && pods.iter().all(is_labelled)).then_some(pods)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        cluster.pods_of("train").await.iter().all(|pod| !is_terminating(pod)),
        "the operator evicts, not the scheduler"
    );
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    for victim in victims {
        pods.delete(victim.metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    cluster.runs("urgent", 2).await;
}

/// A job preempts a whole job, and the scheduler deletes the victims.
#[tokio::test]
async fn koordinator_deletes_victims_if_configured() {
    let cluster = ControlPlane::start("koordinator_deletes_victims_if_configured").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster.apply(QUOTA).await;
    let policy = "Koordinator, args: {podShouldBeDeletedWhenPreempted: true}";
    let _scheduler = cluster.run("reprieve", User::Admin, policy, "");
    for (name, class) in [("train", "low"), ("urgent", "high")] {
        let (group, pods) = koordinator_job(name, class);
        cluster.apply(&group).await;
        cluster.create_pods("default", pods).await;
        cluster.runs(name, 2).await;
    }
    cluster.is_gone("train").await;
}

/// 24 GPUs on the nodes, of which the quotas of both teams together may use 16.
const QUOTA_TREE: &str = "
{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: org}, spec: {max: {nvidia.com/gpu: 16}}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: vision, labels: {quota.scheduling.koordinator.sh/parent: org}}
spec: {max: {nvidia.com/gpu: 16}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: speech, labels: {quota.scheduling.koordinator.sh/parent: org}}
spec: {max: {nvidia.com/gpu: 16}}
";

/// The max of a parent quota limits its children together, although nodes have room. A pod of a higher priority preempts a pod of the sibling
/// quota, no more than its parent lacks.
#[tokio::test]
async fn koordinator_respects_the_max_of_a_parent_quota() {
    let cluster = ControlPlane::start("koordinator_respects_the_max_of_a_parent_quota").await;
    cluster.create_nodes("node", 3, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    cluster.apply(QUOTA_TREE).await;
    let policy = "Koordinator, args: {podShouldBeDeletedWhenPreempted: true}";
    let _scheduler = cluster.run("reprieve", User::Admin, policy, "");
    let pod = |name: &str, app: &str, class: &str, quota: &str| {
        let pod = Fixture::pod(name, class, 8).label("app", app);
        pod.label("quota.scheduling.koordinator.sh/name", quota).build()
    };
    let vision = ["vision-0", "vision-1"].map(|name| pod(name, "vision", "low", "vision"));
    cluster.create_pods("default", vision.to_vec()).await;
    cluster.runs("vision", 2).await;

    cluster.create_pods("default", vec![pod("speech-low", "speech-low", "low", "speech")]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let waiting = cluster.pods_of("speech-low").await;
    assert!(waiting.iter().all(|pod| !is_bound(pod)), "a node has room, and the parent quota has none");

    cluster.create_pods("default", vec![pod("speech-high", "speech-high", "high", "speech")]).await;
    cluster.runs("speech-high", 1).await;
    cluster.runs("vision", 1).await;

    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    pods.delete("speech-high", &DeleteParams::default()).await.unwrap();
    cluster.runs("speech-low", 1).await;
    cluster.runs("vision", 1).await;
}

const KUEUE: &str = "
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a100}, spec: {nodeLabels: {gpu: a100}, tolerations: [{key: a100, operator: Exists}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: team}, spec: {clusterQueue: team}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: low}, value: 100}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 1000}
";

fn kueue_job(name: &str, class: &str) -> String {
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/priority-class: {class}}}}}
spec:
  suspend: true
  parallelism: 2
  completions: 2
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      schedulerName: reprieve
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      nodeSelector: {{zone: a}}
      containers: [{{name: main, image: none, resources: {{requests: {{nvidia.com/gpu: 8}}, limits: {{nvidia.com/gpu: 8}}}}}}]
"
    )
}

/// A Job is admitted and started on the nodes of its flavor. A Job of higher priority preempts it: the first Job is suspended, its node
/// selectors are restored, and its workload has the reason. After the other Job is deleted, the first one is started again.
#[tokio::test]
async fn kueue_suspends_a_job_and_resumes_it() {
    let cluster = ControlPlane::start("kueue_suspends_a_job_and_resumes_it").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    for index in 0..2 {
        let labels = format!("{{gpu: a100, zone: a, kubernetes.io/hostname: node-{index}}}");
        cluster
            .apply(&format!("{{apiVersion: v1, kind: Node, metadata: {{name: node-{index}, labels: {labels}}}}}"))
            .await;
    }
    cluster.apply(KUEUE).await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kueue", "");
    cluster.apply(&kueue_job("train", "low")).await;
    cluster.runs("train", 2).await;
    let jobs: Api<Job> = Api::default_namespaced(cluster.client().clone());
    assert_eq!(selector(&jobs.get("train").await.unwrap()), [("gpu", "a100"), ("zone", "a")]);

    cluster.apply(&kueue_job("urgent", "high")).await;
    cluster.runs("urgent", 2).await;
    cluster.is_gone("train").await;
    let train = eventually("the Job is suspended and restored", async || {
        let job = jobs.get("train").await.ok()?;
        let suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        (suspended && selector(&job) == [("zone", "a")]).then_some(job)
    })
    .await;
    let workload = workload_of(&cluster, &train).await;
    for (condition, reason) in [("Evicted", "Preempted"), ("Preempted", "InClusterQueue")] {
        let found = workload.data["status"]["conditions"].as_array().unwrap().iter();
        let found: Vec<_> = found.filter(|entry| entry["type"] == condition && entry["status"] == "True").collect();
        assert_eq!(found.len(), 1, "{workload:?}");
        assert_eq!(found[0]["reason"], reason);
    }
    jobs.delete("urgent", &DeleteParams::background()).await.unwrap();
    cluster.runs("train", 2).await;
}

/// A queue that does not select a namespace admits none of its Jobs, and the workload has the reason; once the namespace has the label, the
/// Job is admitted.
#[tokio::test]
async fn kueue_admits_jobs_of_selected_namespaces() {
    let cluster = ControlPlane::start("kueue_admits_jobs_of_selected_namespaces").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(&KUEUE.replace("namespaceSelector: {}", "namespaceSelector: {matchLabels: {team: a}}")).await;
    cluster.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a100}}").await;
    let _scheduler = cluster.run("reprieve", User::Admin, "Kueue", "");
    cluster.apply(&kueue_job("train", "low").replace("nodeSelector: {zone: a}", "")).await;
    let jobs: Api<Job> = Api::default_namespaced(cluster.client().clone());
    let message = eventually("the workload has a reason for not being admitted", async || {
        let workload = find_workload_of(&cluster, &jobs.get("train").await.ok()?).await?;
        let conditions = workload.data["status"]["conditions"].as_array()?.clone();
        let pending =
            conditions.into_iter().find(|entry| entry["type"] == "QuotaReserved" && entry["status"] == "False")?;
        Some(pending["message"].to_string())
    })
    .await;
    assert!(message.contains("namespaceSelector of ClusterQueue team"), "{message}");
    let events: Api<Event> = Api::default_namespaced(cluster.client().clone());
    eventually("an event has the reason, too", async || {
        let events = events.list(&ListParams::default()).await.ok()?;
        let has_message = |event: &Event| event.note.as_ref().is_some_and(|note| message.contains(note));
        events
            .iter()
            .any(|event| event.reason.as_deref() == Some("FailedScheduling") && has_message(event))
            .then_some(())
    })
    .await;
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: a}}}").await;
    cluster.runs("train", 2).await;
}

async fn workload_of(cluster: &ControlPlane, job: &Job) -> DynamicObject {
    find_workload_of(cluster, job).await.expect("the Job has a workload")
}

async fn find_workload_of(cluster: &ControlPlane, job: &Job) -> Option<DynamicObject> {
    let kind = GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", "Workload");
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client().clone(), &ApiResource::from_gvk(&kind));
    let all = api.list(&ListParams::default()).await.unwrap();
    let owns = |workload: &DynamicObject| {
        workload.metadata.owner_references.iter().flatten().any(|owner| Some(&owner.uid) == job.metadata.uid.as_ref())
    };
    all.into_iter().find(owns)
}

fn selector(job: &Job) -> Vec<(&str, &str)> {
    let template = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let selector = template.and_then(|spec| spec.node_selector.as_ref()).into_iter().flatten();
    selector.map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

async fn bound(cluster: &ControlPlane, apps: &[&str]) -> usize {
    let mut count = 0;
    for app in apps {
        count += cluster.pods_of(app).await.iter().filter(|pod| !is_terminating(pod)).count();
    }
    count
}

//! The shipped roles have the required permissions, and a failed start names what is missing.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use reprieve_e2e::fixtures::{CLASSES, Fixture};
use reprieve_e2e::{ControlPlane, User, eventually, root};
use serde_json::json;

/// With only the permissions of the shipped role, the scheduler leads and preempts, and no request is forbidden.
#[tokio::test]
async fn shipped_role_is_enough_to_run() {
    let cluster = ControlPlane::start("shipped_role_is_enough_to_run").await;
    cluster.apply_manifests().await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let more = "leaderElection: {enabled: true}\n";
    let scheduler = cluster.run("reprieve", User::Run, "Kubernetes", more);
    cluster.create_pods("default", vec![Fixture::pod("train", "low", 8).build()]).await;
    cluster.runs("train", 1).await;
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    cluster.runs("urgent", 1).await;
    cluster.is_gone("train").await;
    let log = scheduler.log();
    assert!(!log.contains("forbidden"), "{log}");
    assert!(scheduler.stop().await.success(), "{log}");
}

/// The chart's roles have the permissions of the configured policies.
#[tokio::test]
async fn shipped_role_is_enough_for_every_policy() {
    let cluster = ControlPlane::start("shipped_role_is_enough_for_every_policy").await;
    cluster.apply_manifests().await;
    for policy in ["YuniKorn", "Koordinator", "Kueue"] {
        cluster.apply_roles_for(&[policy]).await;
        let scheduler = cluster.run(policy, User::Run, policy, "leaderElection: {enabled: true, leaseSeconds: 3}\n");
        eventually("the replica is the leader", async || {
            scheduler.log().contains("this replica is the leader").then_some(())
        })
        .await;
        let log = scheduler.log();
        assert!(scheduler.stop().await.success(), "{log}");
        assert!(!log.contains("forbidden") && !log.contains("cannot list"), "{log}");
    }
}

#[tokio::test]
async fn read_only_role_is_enough_to_plan() {
    let cluster = ControlPlane::start("read_only_role_is_enough_to_plan").await;
    cluster.apply_manifests().await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    cluster.create_pods("default", vec![Fixture::pod("train", "low", 8).build()]).await;
    cluster.runs("train", 1).await;
    assert!(scheduler.stop().await.success());
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    let version = async || cluster.pods_of("train").await[0].metadata.resource_version.clone();
    let before = version().await;
    let mut plan = cluster.reprieve("plan", User::Planner, &["plan", "--for", "pod/urgent"]);
    let status = plan.wait().await;
    assert_eq!(status.code(), Some(2), "the plan has victims: {}", plan.log());
    assert!(plan.log().contains("default/train"), "{}", plan.log());
    assert_eq!(version().await, before, "planning changes nothing");
}

/// A start that lacks something fails with status 1 and names what to do.
#[tokio::test]
async fn failed_start_names_what_to_do() {
    let cluster = ControlPlane::start_bare("failed_start_names_what_to_do").await;
    let head = "apiVersion: reprieve.dev/v1alpha1\nkind: Configuration\nports: {metrics: 0}\n";
    for (name, user, text, expected) in [
        ("unknown-field", User::Admin, "victims: many", "victims: unknown field"),
        ("unknown-policy", User::Admin, "profiles: [{name: a, policy: Fifo}]", "profiles[0].policy"),
        ("no-resources", User::Admin, "profiles: [{name: a, policy: Kueue}]", "kubectl apply -f deploy/crds/"),
        ("no-permissions", User::Run, "", "bind the ClusterRole"),
    ] {
        let file = cluster.folder().join(format!("{name}.yaml"));
        fs::write(&file, format!("{head}{text}\n")).unwrap();
        let mut run = cluster.reprieve(name, user, &["run", "--config", &file.display().to_string()]);
        let status = run.wait().await;
        let log = run.log();
        assert_eq!(status.code(), Some(1), "{name}: {log}");
        assert!(log.contains(expected), "{name}: {log}");
    }
}

/// The admission policies refuse what only Reprieve should write, and let Reprieve and honest users do their work.
#[tokio::test]
async fn admission_policies_refuse_marks_and_pods_that_bypass_the_scheduler() {
    let cluster = ControlPlane::start("admission_policies_refuse_marks_and_pods_that_bypass_the_scheduler").await;
    cluster.apply_manifests().await;
    cluster.create_nodes("node", 1, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let policies = fs::read_to_string(root().join("deploy/manifests/admission-policies.yaml"));
    cluster.apply(&policies.expect("the manifest exists")).await;
    let managed =
        "{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {reprieve.dev/managed: 'true'}}}";
    cluster.apply(managed).await;

    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let refusal = async |pod: &Pod| match pods.create(&PostParams { dry_run: true, ..PostParams::default() }, pod).await
    {
        Err(kube::Error::Api(status)) => status.message,
        Err(error) => panic!("{error}"),
        Ok(_) => String::new(),
    };
    let bypasses = Fixture::pod("bypasses", "low", 1).on("node-0").build();
    eventually("the policies are in effect", async || refusal(&bypasses).await.contains("spec.nodeName").then_some(()))
        .await;
    let elsewhere = Fixture::pod("elsewhere", "low", 1).scheduler("default-scheduler").build();
    assert!(refusal(&elsewhere).await.contains("spec.schedulerName"));
    let marked = |key: &str, at: &str| {
        let mut pod = json!(Fixture::pod("marked", "low", 1).build());
        pod["metadata"][at][key] = json!("a");
        serde_json::from_value::<Pod>(pod).expect("a pod")
    };
    for (key, at) in [
        ("reprieve.dev/preempted-for", "annotations"),
        ("scheduling.koordinator.sh/soft-eviction", "annotations"),
        ("scheduling.koordinator.sh/soft-eviction", "labels"),
    ] {
        assert!(refusal(&marked(key, at)).await.contains(key), "{key}");
    }

    let scheduler = cluster.run("reprieve", User::Run, "Kubernetes", "leaderElection: {enabled: true}\n");
    cluster.create_pods("default", vec![Fixture::pod("train", "low", 8).build()]).await;
    cluster.runs("train", 1).await;
    let mark = Patch::Merge(json!({"metadata": {"annotations": {"reprieve.dev/preempted-for": "Pod default/a"}}}));
    let patched = pods.patch("train", &PatchParams::default(), &mark).await;
    assert!(patched.is_err_and(|error| error.to_string().contains("preempted-for")));
    let patched = pods.patch_status("train", &PatchParams::default(), &mark).await;
    assert!(patched.is_err_and(|error| error.to_string().contains("preempted-for")));
    let moved = Patch::Merge(json!({"metadata": {"labels": {"queue": "root.other"}}}));
    let patched = pods.patch("train", &PatchParams::default(), &moved).await;
    assert!(patched.is_err_and(|error| error.to_string().contains("cannot be changed")));
    let other = Patch::Merge(json!({"metadata": {"labels": {"own": "label"}}}));
    pods.patch("train", &PatchParams::default(), &other).await.expect("another label can be changed");
    cluster.create_pods("default", vec![Fixture::pod("urgent", "high", 8).build()]).await;
    cluster.runs("urgent", 1).await;
    cluster.is_gone("train").await;
    assert!(scheduler.stop().await.success());

    let kind = GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", "Workload");
    let resource = ApiResource::from_gvk(&kind);
    let workloads: Api<DynamicObject> = Api::default_namespaced_with(cluster.client().clone(), &resource);
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": true}]);
    for (name, owners, spec, problem) in [
        ("plain", json!([]), json!({}), None),
        ("priority", json!([]), json!({"priority": 2_000_000_000}), Some("spec.priority")),
        ("of-job", owner, json!({}), Some("only Reprieve creates")),
    ] {
        let mut workload = DynamicObject::new(name, &resource).data(json!({"spec": spec}));
        workload.metadata.owner_references = serde_json::from_value(owners).expect("owner references");
        let created = workloads.create(&PostParams::default(), &workload).await.map_err(|error| error.to_string());
        match problem {
            None => drop(created.expect("a Workload that names no priority can be created")),
            Some(problem) => assert!(created.is_err_and(|error| error.contains(problem)), "{name}"),
        }
    }
}

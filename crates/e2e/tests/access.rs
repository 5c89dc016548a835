//! Rights and wrong starts: what the shipped roles suffice for, and what is said where something is missing.

use std::fs;

use reprieve_e2e::fixtures::{CLASSES, Fixture};
use reprieve_e2e::{ControlPlane, User, eventually};

/// With the rights of the shipped role and no more it leads, preempts, and is told nothing that it may not do.
#[tokio::test]
async fn the_shipped_role_suffices_to_run() {
    let cluster = ControlPlane::start("the_shipped_role_suffices_to_run").await;
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

/// Every policy finds all that it reads and writes within the shipped role.
#[tokio::test]
async fn the_shipped_role_suffices_for_every_policy() {
    let cluster = ControlPlane::start("the_shipped_role_suffices_for_every_policy").await;
    cluster.apply_manifests().await;
    for policy in ["YuniKorn", "Koordinator", "Kueue"] {
        let scheduler = cluster.run(policy, User::Run, policy, "leaderElection: {enabled: true, leaseSeconds: 3}\n");
        eventually("it schedules", async || scheduler.log().contains("this replica is the leader").then_some(())).await;
        let log = scheduler.log();
        assert!(scheduler.stop().await.success(), "{log}");
        assert!(!log.contains("forbidden") && !log.contains("cannot list"), "{log}");
    }
}

#[tokio::test]
async fn the_read_only_role_suffices_to_plan() {
    let cluster = ControlPlane::start("the_read_only_role_suffices_to_plan").await;
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
    assert_eq!(status.code(), Some(2), "somebody must yield: {}", plan.log());
    assert!(plan.log().contains("default/train"), "{}", plan.log());
    assert_eq!(version().await, before, "asking changes nothing");
}

/// What is missing is said before anything is done, with what to do, and with status 1.
#[tokio::test]
async fn a_wrong_start_says_what_to_do() {
    let cluster = ControlPlane::start_bare("a_wrong_start_says_what_to_do").await;
    let head = "apiVersion: reprieve.dev/v1alpha1\nkind: Configuration\nports: {metrics: 0}\n";
    for (name, user, text, said) in [
        ("unknown-field", User::Admin, "victims: many", "victims: unknown field"),
        ("unknown-policy", User::Admin, "profiles: [{name: a, policy: Fifo}]", "profiles[0].policy"),
        ("no-resources", User::Admin, "profiles: [{name: a, policy: Kueue}]", "kubectl apply -f deploy/crds/"),
        ("no-rights", User::Run, "", "bind the ClusterRole"),
    ] {
        let file = cluster.folder().join(format!("{name}.yaml"));
        fs::write(&file, format!("{head}{text}\n")).unwrap();
        let mut run = cluster.reprieve(name, user, &["run", "--config", &file.display().to_string()]);
        let status = run.wait().await;
        let log = run.log();
        assert_eq!(status.code(), Some(1), "{name}: {log}");
        assert!(log.contains(said), "{name}: {log}");
    }
}

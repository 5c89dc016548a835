//! Faults during a preemption: the leader is killed or stopped, the API server is unavailable or has lost its history.

use std::collections::BTreeSet;
use std::time::Duration;

use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_terminating};
use reprieve_e2e::{ControlPlane, Process, User, eventually};

const ELECTION: &str = "leaderElection: {enabled: true, namespace: default, name: reprieve, leaseSeconds: 3}\n";

/// Creates two running gangs that take some seconds to terminate.
async fn two_slow_gangs(cluster: &ControlPlane) {
    for gang in ["train-a", "train-b"] {
        cluster.apply(&group(gang, "low", 2)).await;
        let pod =
            |index| Fixture::pod(&format!("{gang}-{index}"), "low", 8).of_group(gang).terminates_after("6s").build();
        cluster.create_pods("default", (0..2).map(pod).collect()).await;
    }
    cluster.runs("train-a", 2).await;
    cluster.runs("train-b", 2).await;
}

/// Waits until one gang terminates, and returns the other one.
async fn gang_that_stays(cluster: &ControlPlane) -> &'static str {
    eventually("a gang is terminating", async || {
        for (gang, other) in [("train-a", "train-b"), ("train-b", "train-a")] {
            if cluster.pods_of(gang).await.iter().any(is_terminating) {
                return Some(other);
            }
        }
        None
    })
    .await
}

async fn uids(cluster: &ControlPlane, app: &str) -> BTreeSet<String> {
    let pods = cluster.pods_of(app).await;
    pods.into_iter().filter(|pod| !is_terminating(pod)).filter_map(|pod| pod.metadata.uid).collect()
}

/// Waits until the urgent gang runs and its victim is gone, and checks that the other gang was not touched.
async fn preemption_completes(cluster: &ControlPlane, stays: &str, before: &BTreeSet<String>) {
    cluster.runs("urgent", 2).await;
    assert_eq!(&uids(cluster, stays).await, before, "{stays} is not touched");
    cluster.is_gone(if stays == "train-a" { "train-b" } else { "train-a" }).await;
}

fn leads(replica: &Process) -> bool {
    replica.log().contains("this replica is the leader")
}

/// Two replicas: the leader and the follower.
async fn replicas(cluster: &ControlPlane) -> (Process, Process) {
    let [first, second] = ["first", "second"].map(|name| cluster.run(name, User::Admin, "Kubernetes", ELECTION));
    eventually("one replica is the leader, and the other waits", async || {
        let waits = |replica: &Process| replica.log().contains("waiting for leadership");
        (leads(&first) && waits(&second) || leads(&second) && waits(&first)).then_some(())
    })
    .await;
    if leads(&first) { (first, second) } else { (second, first) }
}

#[tokio::test]
async fn preemption_completes_after_the_leader_is_killed() {
    let cluster = ControlPlane::start("preemption_completes_after_the_leader_is_killed").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let (leader, follower) = replicas(&cluster).await;
    two_slow_gangs(&cluster).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    let stays = gang_that_stays(&cluster).await;
    leader.kill();
    let before = uids(&cluster, stays).await;
    preemption_completes(&cluster, stays, &before).await;
    assert!(leads(&follower));
}

/// A leader that is stopped releases the lease, and the other replica continues at once.
#[tokio::test]
async fn preemption_completes_after_the_leader_is_stopped() {
    let cluster = ControlPlane::start("preemption_completes_after_the_leader_is_stopped").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let (leader, follower) = replicas(&cluster).await;
    two_slow_gangs(&cluster).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    let stays = gang_that_stays(&cluster).await;
    let before = uids(&cluster, stays).await;
    assert!(leader.stop().await.success());
    preemption_completes(&cluster, stays, &before).await;
    assert!(leads(&follower));
}

/// Starts a preemption. Returns the cluster, its only scheduler, the gang that is not preempted, and the uids of its pods.
async fn start_preemption(test: &str) -> (ControlPlane, Process, &'static str, BTreeSet<String>) {
    let cluster = ControlPlane::start(test).await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    two_slow_gangs(&cluster).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    let stays = gang_that_stays(&cluster).await;
    let before = uids(&cluster, stays).await;
    (cluster, scheduler, stays, before)
}

#[tokio::test]
async fn preemption_completes_after_a_restart_of_the_api_server() {
    let (mut cluster, mut scheduler, stays, before) =
        start_preemption("preemption_completes_after_a_restart_of_the_api_server").await;
    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(3)).await;
    cluster.start_api_server().await;
    preemption_completes(&cluster, stays, &before).await;
    scheduler.check();
}

/// The API server loses its history, so that the watches must list again.
#[tokio::test]
async fn preemption_completes_after_the_api_server_lost_its_history() {
    let (mut cluster, mut scheduler, stays, before) =
        start_preemption("preemption_completes_after_the_api_server_lost_its_history").await;
    cluster.forget_history().await;
    preemption_completes(&cluster, stays, &before).await;
    scheduler.check();
    assert!(scheduler.log().contains("the API server no longer has this version"), "{}", scheduler.log());
}

/// A leader that lost its lease because the API server was unavailable keeps running, and becomes the leader again without a restart.
#[tokio::test]
async fn leader_survives_a_long_outage_of_the_api_server() {
    let mut cluster = ControlPlane::start("leader_survives_a_long_outage_of_the_api_server").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let mut leader = cluster.run("reprieve", User::Admin, "Kubernetes", ELECTION);
    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    cluster.stop_api_server();
    eventually("the replica has lost its leadership", async || {
        leader.log().contains("restarting as a follower").then_some(())
    })
    .await;
    cluster.start_api_server().await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    cluster.runs("urgent", 2).await;
    leader.check();
}

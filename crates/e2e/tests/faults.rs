//! What may go wrong in the middle of a preemption: a leader that is killed or stopped, an API server that is away or has forgotten.

use std::collections::BTreeSet;
use std::time::Duration;

use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_leaving};
use reprieve_e2e::{ControlPlane, Process, User, eventually};

const ELECTION: &str = "leaderElection: {enabled: true, namespace: default, name: reprieve, leaseSeconds: 3}\n";

/// Two gangs that take some seconds to leave, and what it takes to be one of them.
async fn two_slow_gangs(cluster: &ControlPlane) {
    for gang in ["train-a", "train-b"] {
        cluster.apply(&group(gang, "low", 2)).await;
        let pod = |at| Fixture::pod(&format!("{gang}-{at}"), "low", 8).of_group(gang).leaves_after("6s").build();
        cluster.create_pods("default", (0..2).map(pod).collect()).await;
    }
    cluster.runs("train-a", 2).await;
    cluster.runs("train-b", 2).await;
}

/// Waits until a gang has been told to go, and says which one stays.
async fn one_leaves(cluster: &ControlPlane) -> &'static str {
    eventually("a gang is on its way out", async || {
        for (gang, other) in [("train-a", "train-b"), ("train-b", "train-a")] {
            if cluster.pods_of(gang).await.iter().any(is_leaving) {
                return Some(other);
            }
        }
        None
    })
    .await
}

async fn uids(cluster: &ControlPlane, app: &str) -> BTreeSet<String> {
    let pods = cluster.pods_of(app).await;
    pods.into_iter().filter(|pod| !is_leaving(pod)).filter_map(|pod| pod.metadata.uid).collect()
}

/// The gang runs, and nobody has gone but the one that was chosen first.
async fn ends_well(cluster: &ControlPlane, stays: &str, before: &BTreeSet<String>) {
    cluster.runs("urgent", 2).await;
    assert_eq!(&uids(cluster, stays).await, before, "{stays} is not touched");
    cluster.is_gone(if stays == "train-a" { "train-b" } else { "train-a" }).await;
}

fn leads(replica: &Process) -> bool {
    replica.log().contains("this replica is the leader")
}

/// Two replicas: the one that leads, and the one that stands by.
async fn replicas(cluster: &ControlPlane) -> (Process, Process) {
    let [one, other] = ["one", "other"].map(|name| cluster.run(name, User::Admin, "Kubernetes", ELECTION));
    eventually("one of them leads, and the other stands by", async || {
        let stands_by = |replica: &Process| replica.log().contains("waiting for leadership");
        (leads(&one) && stands_by(&other) || leads(&other) && stands_by(&one)).then_some(())
    })
    .await;
    if leads(&one) { (one, other) } else { (other, one) }
}

#[tokio::test]
async fn the_leader_is_killed_in_the_middle_of_a_preemption() {
    let cluster = ControlPlane::start("the_leader_is_killed_in_the_middle_of_a_preemption").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let (leader, other) = replicas(&cluster).await;
    two_slow_gangs(&cluster).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    let stays = one_leaves(&cluster).await;
    leader.kill();
    let before = uids(&cluster, stays).await;
    ends_well(&cluster, stays, &before).await;
    assert!(leads(&other));
}

/// A leader that is asked to stop gives the lease back, and the other goes on at once.
#[tokio::test]
async fn the_leader_is_stopped_in_the_middle_of_a_preemption() {
    let cluster = ControlPlane::start("the_leader_is_stopped_in_the_middle_of_a_preemption").await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let (leader, other) = replicas(&cluster).await;
    two_slow_gangs(&cluster).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    let stays = one_leaves(&cluster).await;
    let before = uids(&cluster, stays).await;
    assert!(leader.stop().await.success());
    ends_well(&cluster, stays, &before).await;
    assert!(leads(&other));
}

/// A preemption that has begun: the cluster, its only scheduler, the gang that stays, and its pods.
async fn begun(test: &str) -> (ControlPlane, Process, &'static str, BTreeSet<String>) {
    let cluster = ControlPlane::start(test).await;
    cluster.create_nodes("node", 4, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let scheduler = cluster.run("reprieve", User::Admin, "Kubernetes", "");
    two_slow_gangs(&cluster).await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    let stays = one_leaves(&cluster).await;
    let before = uids(&cluster, stays).await;
    (cluster, scheduler, stays, before)
}

#[tokio::test]
async fn the_api_server_is_restarted_in_the_middle_of_a_preemption() {
    let (mut cluster, mut scheduler, stays, before) =
        begun("the_api_server_is_restarted_in_the_middle_of_a_preemption").await;
    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(3)).await;
    cluster.start_api_server().await;
    ends_well(&cluster, stays, &before).await;
    scheduler.check();
}

/// The API server comes back and has forgotten what happened meanwhile: everything is listed anew.
#[tokio::test]
async fn history_is_forgotten_in_the_middle_of_a_preemption() {
    let (mut cluster, mut scheduler, stays, before) = begun("history_is_forgotten_in_the_middle_of_a_preemption").await;
    cluster.forget_history().await;
    ends_well(&cluster, stays, &before).await;
    scheduler.check();
    assert!(scheduler.log().contains("the server has forgotten this version"), "{}", scheduler.log());
}

/// A leader that lost its lease because the API server was away lives on, and leads again when it is back: nobody has to start it anew.
#[tokio::test]
async fn a_leader_outlives_a_long_outage_of_the_api_server() {
    let mut cluster = ControlPlane::start("a_leader_outlives_a_long_outage_of_the_api_server").await;
    cluster.create_nodes("node", 2, &[("nvidia.com/gpu", "8")]).await;
    cluster.apply(CLASSES).await;
    let mut leader = cluster.run("reprieve", User::Admin, "Kubernetes", ELECTION);
    cluster.create_gang("train", "low", 2, 8).await;
    cluster.runs("train", 2).await;
    cluster.stop_api_server();
    eventually("it knows that it leads no more", async || leader.log().contains("begins anew").then_some(())).await;
    cluster.start_api_server().await;
    cluster.create_gang("urgent", "high", 2, 8).await;
    cluster.runs("urgent", 2).await;
    leader.check();
}

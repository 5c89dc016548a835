//! Soak test: gangs arrive, preempt each other and end for some minutes, while the leader is killed every minute; then the final objects in
//! the API are checked. `cargo xtask e2e --soak [MINUTES]` runs it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use reprieve_e2e::final_state::{self, Gang, GangSet};
use reprieve_e2e::fixtures::CLASSES;
use reprieve_e2e::{ControlPlane, Process, User, cpu_seconds, eventually, peak_megabytes};

const NODES: usize = 24;
const GPUS: u32 = 8;
const ELECTION: &str = "leaderElection: {namespace: default, leaseSeconds: 4}\n";
/// The interval at which the leader is killed.
const KILL_INTERVAL: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() {
    let minutes: u64 = std::env::args().nth(1).and_then(|minutes| minutes.parse().ok()).unwrap_or(30);
    let cluster = ControlPlane::start("soak").await;
    cluster.create_nodes("node", NODES, &[("nvidia.com/gpu", &GPUS.to_string())]).await;
    cluster.apply(CLASSES).await;
    let mut replicas = Replicas::start(&cluster);
    let (began, mut rng, mut gangs) = (Instant::now(), Rng(7), GangSet::new());
    let mut ends: BTreeMap<String, Instant> = BTreeMap::new();
    while began.elapsed().as_secs() < minutes * 60 {
        let name = format!("gang-{}", gangs.len());
        let (class, priority) = if rng.up_to(3) == 0 { ("high", 1000) } else { ("low", 100) };
        let gang = Gang { priority, size: 1 + rng.up_to(6) as usize };
        cluster.create_gang(&name, class, gang.size, GPUS).await;
        ends.insert(name.clone(), Instant::now() + Duration::from_secs(10 + rng.up_to(30)));
        gangs.insert(name, gang);
        let over: Vec<String> =
            ends.iter().filter(|(_, end)| **end < Instant::now()).map(|(gang, _)| gang.clone()).collect();
        for gang in over {
            ends.remove(&gang);
            remove(&cluster, &gang).await;
        }
        if replicas.last_kill.elapsed() > KILL_INTERVAL {
            let usage = replicas.kill_leader(&cluster);
            println!(
                "{:4} s: {} gangs so far, {} leaders killed; {usage}",
                began.elapsed().as_secs(),
                gangs.len(),
                replicas.kills
            );
        }
        tokio::time::sleep(Duration::from_millis(500 + rng.up_to(1500))).await;
    }
    let pods = settled_pods(&cluster).await;
    replicas.stop().await;
    let events: Vec<Event> = list(&cluster).await;
    let mut problems = final_state::problems(&pods, &events, &gangs);
    for gang in final_state::pending(&pods) {
        problems.extend(unexpected_plan(&cluster, gang).await);
    }
    println!(
        "{} gangs, {} leaders killed, {} pods preempted, {} gangs pending, {} problems",
        gangs.len(),
        replicas.kills,
        final_state::preemptions(&events).count(),
        final_state::pending(&pods).len(),
        problems.len()
    );
    for problem in &problems {
        println!("  {problem}");
    }
    assert!(problems.is_empty(), "the final state has problems");
}

/// Two replicas: the leader and a follower.
struct Replicas {
    both: Vec<Process>,
    kills: usize,
    last_kill: Instant,
}

impl Replicas {
    fn start(cluster: &ControlPlane) -> Self {
        let both = (0..2).map(|index| replica(cluster, index)).collect();
        Self { both, kills: 0, last_kill: Instant::now() }
    }

    /// Kills the leader, starts another replica, and returns the CPU time and memory of the leader.
    fn kill_leader(&mut self, cluster: &ControlPlane) -> String {
        self.check();
        let index = self.both.iter().position(leads).expect("one of them is the leader");
        let new_replica = replica(cluster, 2 + self.kills);
        let leader = std::mem::replace(&mut self.both[index], new_replica);
        let usage =
            format!("it used {:.1} s of CPU time and {:.0} MB", cpu_seconds(leader.id()), peak_megabytes(leader.id()));
        leader.kill();
        (self.last_kill, self.kills) = (Instant::now(), self.kills + 1);
        usage
    }

    /// Stops both replicas, and panics if one has ended before or fails.
    async fn stop(&mut self) {
        self.check();
        self.both.sort_by_key(leads); // the follower first, so that it does not take over
        for replica in self.both.drain(..) {
            let status = replica.stop().await;
            assert!(status.success(), "a stopped replica ended with {status}");
        }
    }

    /// Panics if a replica has ended.
    fn check(&mut self) {
        self.both.iter_mut().for_each(Process::check);
    }
}

fn leads(replica: &Process) -> bool {
    replica.log().contains("this replica is the leader")
}

fn replica(cluster: &ControlPlane, number: usize) -> Process {
    cluster.run(&format!("replica-{number}"), User::Admin, "Kubernetes", ELECTION)
}

async fn remove(cluster: &ControlPlane, gang: &str) {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let groups: Api<PodGroup> = Api::default_namespaced(cluster.client().clone());
    let of_gang = ListParams::default().labels(&format!("app={gang}"));
    pods.delete_collection(&DeleteParams::default(), &of_gang).await.expect("pods can be deleted");
    groups.delete(gang, &DeleteParams::default()).await.expect("a group can be deleted");
}

/// Waits until no pod has changed for ten seconds, and returns the pods.
async fn settled_pods(cluster: &ControlPlane) -> Vec<Pod> {
    let versions = |pods: &[Pod]| pods.iter().map(|pod| pod.metadata.resource_version.clone()).collect::<Vec<_>>();
    let mut before: (Vec<Pod>, Instant) = (Vec::new(), Instant::now());
    for _ in 0..300 {
        let pods = list(cluster).await;
        if versions(&before.0) != versions(&pods) {
            before = (pods, Instant::now());
        } else if before.1.elapsed() > Duration::from_secs(10) {
            return pods;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("pods still change after five minutes");
}

async fn list<K>(cluster: &ControlPlane) -> Vec<K>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(cluster.client().clone());
    eventually("the objects can be listed", async || Some(api.list(&ListParams::default()).await.ok()?.items)).await
}

/// A problem if `reprieve plan` finds a plan for a pending gang.
async fn unexpected_plan(cluster: &ControlPlane, gang: &str) -> Option<String> {
    let mut plan =
        cluster.reprieve(&format!("plan-{gang}"), User::Admin, &["plan", "--for", &format!("podgroup/{gang}")]);
    // Exit status 3: waits, 4: unschedulable.
    let waits = matches!(plan.wait().await.code(), Some(3 | 4));
    (!waits).then(|| format!("settled: {gang} is pending, but {}", plan.log()))
}

/// Random numbers, the same in each run.
struct Rng(u64);

impl Rng {
    fn up_to(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

//! Arrivals and preemptions for some minutes, while the replica that schedules is killed every minute; then everything is checked that
//! must hold of what the API has in the end. `cargo xtask e2e --soak [MINUTES]` runs it.

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
/// How often the one that schedules is killed.
const KILLED_EVERY: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() {
    let minutes: u64 = std::env::args().nth(1).and_then(|minutes| minutes.parse().ok()).unwrap_or(30);
    let cluster = ControlPlane::start("soak").await;
    cluster.create_nodes("node", NODES, &[("nvidia.com/gpu", &GPUS.to_string())]).await;
    cluster.apply(CLASSES).await;
    let mut replicas = Replicas::start(&cluster);
    let (began, mut chance, mut gangs) = (Instant::now(), Chance(7), GangSet::new());
    let mut ends: BTreeMap<String, Instant> = BTreeMap::new();
    while began.elapsed().as_secs() < minutes * 60 {
        let name = format!("gang-{}", gangs.len());
        let (class, priority) = if chance.below(3) == 0 { ("high", 1000) } else { ("low", 100) };
        let gang = Gang { priority, size: 1 + chance.below(6) as usize };
        cluster.create_gang(&name, class, gang.size, GPUS).await;
        ends.insert(name.clone(), Instant::now() + Duration::from_secs(10 + chance.below(30)));
        gangs.insert(name, gang);
        let over: Vec<String> =
            ends.iter().filter(|(_, at)| **at < Instant::now()).map(|(gang, _)| gang.clone()).collect();
        for gang in over {
            ends.remove(&gang);
            remove(&cluster, &gang).await;
        }
        if replicas.last_kill.elapsed() > KILLED_EVERY {
            let takes = replicas.kill_leader(&cluster);
            println!(
                "{:4} s: {} gangs so far, {} leaders killed; {takes}",
                began.elapsed().as_secs(),
                gangs.len(),
                replicas.kills
            );
        }
        tokio::time::sleep(Duration::from_millis(500 + chance.below(1500))).await;
    }
    let pods = rest(&cluster).await;
    replicas.stop().await;
    let events: Vec<Event> = list(&cluster).await;
    let mut problems = final_state::problems(&pods, &events, &gangs);
    for gang in final_state::waiting(&pods) {
        problems.extend(fits(&cluster, gang).await);
    }
    println!(
        "{} gangs, {} leaders killed, {} pods yielded, {} gangs wait, {} problems",
        gangs.len(),
        replicas.kills,
        final_state::preemptions(&events).count(),
        final_state::waiting(&pods).len(),
        problems.len()
    );
    for problem in &problems {
        println!("  {problem}");
    }
    assert!(problems.is_empty(), "what must hold in the end does not");
}

/// Two replicas: one schedules, the other stands by.
struct Replicas {
    both: Vec<Process>,
    kills: usize,
    last_kill: Instant,
}

impl Replicas {
    fn start(cluster: &ControlPlane) -> Self {
        let both = (0..2).map(|at| replica(cluster, at)).collect();
        Self { both, kills: 0, last_kill: Instant::now() }
    }

    /// Kills the one that schedules, starts another in its place, and says what it took of the machine.
    fn kill_leader(&mut self, cluster: &ControlPlane) -> String {
        self.check();
        let at = self.both.iter().position(leads).expect("one of them schedules");
        let fresh = replica(cluster, 2 + self.kills);
        let leader = std::mem::replace(&mut self.both[at], fresh);
        let takes =
            format!("it took {:.1} s of cpu and {:.0} MB", cpu_seconds(leader.id()), peak_megabytes(leader.id()));
        leader.kill();
        (self.last_kill, self.kills) = (Instant::now(), self.kills + 1);
        takes
    }

    /// None has ended by itself; each ends in order when it is asked to.
    async fn stop(&mut self) {
        self.check();
        self.both.sort_by_key(leads); // the one that stands by first, so that it does not take over
        for replica in self.both.drain(..) {
            let status = replica.stop().await;
            assert!(status.success(), "a replica that was asked to stop ended with {status}");
        }
    }

    /// None has ended by itself.
    fn check(&mut self) {
        self.both.iter_mut().for_each(Process::check);
    }
}

fn leads(replica: &Process) -> bool {
    replica.log().contains("this replica is the leader")
}

fn replica(cluster: &ControlPlane, at: usize) -> Process {
    cluster.run(&format!("replica-{at}"), User::Admin, "Kubernetes", ELECTION)
}

async fn remove(cluster: &ControlPlane, gang: &str) {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let groups: Api<PodGroup> = Api::default_namespaced(cluster.client().clone());
    let of_gang = ListParams::default().labels(&format!("app={gang}"));
    pods.delete_collection(&DeleteParams::default(), &of_gang).await.expect("pods can be deleted");
    groups.delete(gang, &DeleteParams::default()).await.expect("a group can be deleted");
}

/// Waits until nothing has changed for ten seconds.
async fn rest(cluster: &ControlPlane) -> Vec<Pod> {
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
    panic!("it does not come to rest");
}

async fn list<K>(cluster: &ControlPlane) -> Vec<K>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(cluster.client().clone());
    eventually("they can be listed", async || Some(api.list(&ListParams::default()).await.ok()?.items)).await
}

/// Whoever waits neither fits nor may preempt: somebody else who is asked about the same cluster says so, too.
async fn fits(cluster: &ControlPlane, gang: &str) -> Option<String> {
    let mut asked =
        cluster.reprieve(&format!("plan-{gang}"), User::Admin, &["plan", "--for", &format!("podgroup/{gang}")]);
    // 3 waits, 4 cannot be scheduled.
    let waits = matches!(asked.wait().await.code(), Some(3 | 4));
    (!waits).then(|| format!("rest: {gang} waits, but {}", asked.log()))
}

/// The same numbers each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

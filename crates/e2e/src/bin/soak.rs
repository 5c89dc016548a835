//! Arrivals and preemptions for some minutes, while the replica that schedules is killed every minute; then everything is checked that
//! must hold of what the API has in the end. `cargo xtask e2e --soak [MINUTES]` runs it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use reprieve_e2e::story::{CLASSES, is_bound, is_leaving};
use reprieve_e2e::{ControlPlane, Process, User, eventually};

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
    let mut replicas: Vec<Process> = (0..2).map(|at| start(&cluster, at)).collect();
    let (end, mut last_kill, mut kills, mut gangs) = (minutes * 60, Instant::now(), 0, 0_u64);
    let (began, mut chance) = (Instant::now(), Chance(7));
    let mut ends: BTreeMap<u64, Instant> = BTreeMap::new();
    while began.elapsed().as_secs() < end {
        let (size, class) = (1 + chance.below(6), if chance.below(3) == 0 { "high" } else { "low" });
        cluster.create_gang(&format!("gang-{gangs}"), class, size as usize, GPUS).await;
        ends.insert(gangs, Instant::now() + Duration::from_secs(10 + chance.below(30)));
        gangs += 1;
        let over: Vec<u64> = ends.iter().filter(|(_, at)| **at < Instant::now()).map(|(gang, _)| *gang).collect();
        for gang in over {
            ends.remove(&gang);
            remove(&cluster, &format!("gang-{gang}")).await;
        }
        if last_kill.elapsed() > KILLED_EVERY {
            let leader = leader(&replicas);
            let (at, fresh) = (leader, start(&cluster, 2 + kills));
            std::mem::replace(&mut replicas[at], fresh).kill();
            (last_kill, kills) = (Instant::now(), kills + 1);
            println!("{:4} s: {gangs} gangs so far, {kills} leaders killed", began.elapsed().as_secs());
        }
        tokio::time::sleep(Duration::from_millis(500 + chance.below(1500))).await;
    }
    rest(&cluster).await;
    let problems = problems(&cluster).await;
    let evictions: usize = evictions(&cluster).await;
    println!("{gangs} gangs, {kills} leaders killed, {evictions} evictions recorded, {} problems", problems.len());
    for problem in &problems {
        println!("  {problem}");
    }
    assert!(problems.is_empty(), "what must hold in the end does not");
}

fn start(cluster: &ControlPlane, at: usize) -> Process {
    cluster.run(&format!("replica-{at}"), User::Admin, "Kubernetes", ELECTION)
}

/// The replica that said last that it schedules.
fn leader(replicas: &[Process]) -> usize {
    let leads = |replica: &Process| replica.log().contains("this replica schedules");
    replicas.iter().position(leads).expect("one of them schedules")
}

async fn remove(cluster: &ControlPlane, app: &str) {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let of_gang = ListParams::default().labels(&format!("app={app}"));
    pods.delete_collection(&DeleteParams::default(), &of_gang).await.expect("pods can be deleted");
}

/// Waits until nothing has changed for ten seconds.
async fn rest(cluster: &ControlPlane) {
    let mut before: (Vec<Option<String>>, Instant) = (Vec::new(), Instant::now());
    for _ in 0..300 {
        let versions = all(cluster).await.into_iter().map(|pod| pod.metadata.resource_version).collect();
        if before.0 != versions {
            before = (versions, Instant::now());
        } else if before.1.elapsed() > Duration::from_secs(10) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it does not come to rest");
}

async fn all(cluster: &ControlPlane) -> Vec<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    eventually("the pods can be listed", async || Some(pods.list(&ListParams::default()).await.ok()?.items)).await
}

/// What does not hold: nodes are not over capacity, gangs run whole or not at all, nobody is told to yield and stays, and whoever waits
/// neither fits nor may preempt.
async fn problems(cluster: &ControlPlane) -> Vec<String> {
    let pods = all(cluster).await;
    let mut problems = Vec::new();
    let (mut by_node, mut by_gang) = (BTreeMap::new(), BTreeMap::new());
    for pod in &pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if is_leaving(pod) {
            problems.push(format!("{name} is still leaving"));
        }
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let gang = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app").cloned()).unwrap_or_default();
        let marked =
            pod.metadata.annotations.as_ref().is_some_and(|notes| notes.contains_key("reprieve.dev/preempted-for"));
        if marked {
            problems.push(format!("{name} was told to yield, and stays"));
        }
        let (bound, of) = by_gang.entry(gang).or_insert((0, 0));
        *of += 1;
        if is_bound(pod) {
            *bound += 1;
            *by_node.entry(node.unwrap_or_default()).or_insert(0) += 1;
        }
    }
    problems
        .extend(by_node.iter().filter(|(_, pods)| **pods > 1).map(|(node, pods)| format!("{node} has {pods} pods")));
    for (gang, (bound, of)) in &by_gang {
        if *bound != 0 && bound != of {
            problems.push(format!("{gang} runs in part: {bound} of {of}"));
        }
        if *bound == 0 {
            let mut asked = cluster.reprieve("plan", User::Admin, &["plan", "--for", &format!("podgroup/{gang}")]);
            let code = asked.wait().await.code();
            // 3 waits, 4 cannot be scheduled; a gang that lost pods to the end of its time waits for the rest.
            if !matches!(code, Some(3 | 4)) && !asked.log().contains("needs") {
                problems.push(format!("{gang} waits, but {}", asked.log()));
            }
        }
    }
    problems
}

async fn evictions(cluster: &ControlPlane) -> usize {
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(cluster.client().clone());
    let all = events.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    all.iter().filter(|event| event.reason.as_deref() == Some("Preempted")).count()
}

/// The same numbers each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

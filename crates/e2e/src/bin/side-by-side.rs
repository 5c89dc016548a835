//! kube-scheduler and `reprieve run` in turn on the same control plane with the same pods: how fast each preempts, whom it evicts, and
//! what it takes of the machine. `cargo xtask e2e --bench` runs it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use reprieve_e2e::fixtures::{CLASSES, Fixture, group, is_bound};
use reprieve_e2e::{ControlPlane, Process, User, cpu_seconds, peak_megabytes};
use tokio::task::JoinSet;

/// How long nobody is bound before somebody is taken for forgotten. kube-scheduler at times forgets a pod for five minutes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a shape is tried: a run in which somebody was forgotten says nothing about the others.
const ATTEMPTS: usize = 4;
/// How long a scheduler may go on about it, once all are bound, with its processor time counted: events may be late.
const AFTERMATH: Duration = Duration::from_secs(5);

/// What is preempted, and by whom.
struct Shape {
    name: &'static str,
    nodes: usize,
    /// How often it is measured: what is over in a moment more often, as no two such moments are the same.
    times: usize,
    /// Pods that are there: name, group, cpu in thousandths, node.
    victims: Vec<(String, Option<String>, u32, usize)>,
    /// Pods that come: name, group, cpu in thousandths.
    preemptors: Vec<(String, Option<String>, u32)>,
}

/// What came of it.
struct Outcome {
    seconds: f64,
    /// From creation to bound, of the one in the middle.
    median: f64,
    victims: usize,
    cpu_seconds: f64,
    megabytes: f64,
    /// The share of the machine's processor time, until all were bound, that the API server and its store used.
    api_server: f64,
}

#[tokio::main]
async fn main() {
    let only = std::env::args().nth(1);
    for shape in [basic(500), basic(1000), gangs(5), gangs(50)] {
        if only.as_ref().is_some_and(|only| !shape.name.contains(only.as_str())) {
            continue;
        }
        println!("{}", shape.name);
        let schedulers = ["kube-scheduler", "reprieve"];
        let mut measured = schedulers.map(|_| Vec::new());
        for _ in 0..shape.times {
            for (scheduler, measured) in schedulers.iter().zip(&mut measured) {
                measured.push(measure_whole(&shape, scheduler).await);
            }
        }
        let outcomes = measured.map(|outcomes| middle(&outcomes));
        for (scheduler, outcome) in schedulers.iter().zip(&outcomes) {
            let Outcome { seconds, median, victims, cpu_seconds, megabytes, api_server } = outcome;
            println!(
                "  {scheduler:14} {seconds:7.2} s  {:7.1} pods/s  median {median:6.2} s  {victims:5} victims  cpu {cpu_seconds:6.2} s  \
                 {megabytes:6.0} MB  API server {:2.0} % of the machine",
                shape.preemptors.len() as f64 / seconds,
                api_server * 100.0,
            );
        }
        let ratio = |value: fn(&Outcome) -> f64| value(&outcomes[0]) / value(&outcomes[1]);
        println!(
            "  kube-scheduler / reprieve: time {:.1}, cpu {:.1}, memory {:.1}",
            ratio(|outcome| outcome.seconds),
            ratio(|outcome| outcome.cpu_seconds),
            ratio(|outcome| outcome.megabytes),
        );
    }
}

/// Each figure is the one in the middle, but for the victims: the most count.
fn middle(outcomes: &[Outcome]) -> Outcome {
    let middle = |figure: fn(&Outcome) -> f64| {
        let mut figures: Vec<f64> = outcomes.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Outcome {
        seconds: middle(|outcome| outcome.seconds),
        median: middle(|outcome| outcome.median),
        victims: outcomes.iter().map(|outcome| outcome.victims).max().unwrap_or_default(),
        cpu_seconds: middle(|outcome| outcome.cpu_seconds),
        megabytes: middle(|outcome| outcome.megabytes),
        api_server: middle(|outcome| outcome.api_server),
    }
}

/// As many preemptors as nodes; each node is full of four pods, three of which have to go. This is a shape of Kubernetes' own benchmark of
/// its scheduler, in which pods have no labels, victims have no time to end, and neither kubelets nor controllers run.
fn basic(nodes: usize) -> Shape {
    Shape {
        name: if nodes == 500 { "PreemptionBasic, 500 nodes" } else { "PreemptionBasic, 1000 nodes" },
        nodes,
        times: 1,
        victims: (0..4 * nodes).map(|at| (format!("low-{at}"), None, 900, at % nodes)).collect(),
        preemptors: (0..nodes).map(|at| (format!("high-{at}"), None, 3000)).collect(),
    }
}

/// A gang of 100 against so many gangs on 100 nodes.
fn gangs(count: usize) -> Shape {
    Shape {
        name: if count == 5 { "gang of 100 against 5 gangs" } else { "gang of 100 against 50 gangs" },
        nodes: 100,
        times: 5,
        victims: (0..100)
            .map(|at| (format!("low-{at}"), Some(format!("gang-{}", at * count / 100)), 4000, at))
            .collect(),
        preemptors: (0..100).map(|at| (format!("high-{at}"), Some("urgent".to_owned()), 4000)).collect(),
    }
}

async fn measure_whole(shape: &Shape, scheduler: &str) -> Outcome {
    for _ in 0..ATTEMPTS {
        match measure(shape, scheduler).await {
            Ok(outcome) => return outcome,
            Err(Forgotten(pods)) => println!("  {scheduler:14} leaves {pods} waiting; once more"),
        }
    }
    panic!("{scheduler} forgets somebody each time");
}

async fn measure(shape: &Shape, scheduler: &str) -> Result<Outcome, Forgotten> {
    let mut cluster = ControlPlane::start(&format!("side-by-side-{scheduler}")).await;
    cluster.create_nodes("node", shape.nodes, &[("cpu", "4"), ("memory", "32Gi")]).await;
    cluster.stop_controllers();
    cluster.apply(CLASSES).await;
    cluster.apply(&groups(shape)).await;
    let victim = |(name, group, cpu, node): &(String, Option<String>, u32, usize)| {
        pod(name, group.as_deref(), "low", *cpu, scheduler).on(&format!("node-{node}")).build()
    };
    cluster.create_pods("default", shape.victims.iter().map(victim).collect()).await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().clone());
    let mut following = JoinSet::new();
    let seen = follow(&pods, &mut following);
    let process = start(&cluster, scheduler);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (cpu, api_server) = (cpu_seconds(process.id()), cluster.cpu_seconds());
    let began = Instant::now();
    let preemptor = |(name, group, cpu): &(String, Option<String>, u32)| {
        pod(name, group.as_deref(), "high", *cpu, scheduler).build()
    };
    cluster.create_pods("default", shape.preemptors.iter().map(preemptor).collect()).await;
    let all = shape.victims.len() + shape.preemptors.len();
    until_bound(&seen, all).await?;
    let api_server = cluster.cpu_seconds() - api_server;
    tokio::time::sleep(AFTERMATH).await;
    let left = all - pods.list(&ListParams::default()).await.expect("the pods can be listed").items.len();
    let seen = seen.lock().unwrap();
    let end = seen.bound.values().max().expect("somebody was bound");
    let seconds = end.duration_since(began).as_secs_f64();
    let mut waits: Vec<f64> = shape.preemptors.iter().map(|(name, ..)| seen.wait(name)).collect();
    waits.sort_by(f64::total_cmp);
    let machine = seconds * std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    Ok(Outcome {
        seconds,
        median: waits[waits.len() / 2],
        victims: left,
        cpu_seconds: cpu_seconds(process.id()) - cpu,
        megabytes: peak_megabytes(process.id()),
        api_server: api_server / machine,
    })
}

/// So many pods were not bound, though nothing was in their way.
struct Forgotten(usize);

/// What was seen of pods, and when.
#[derive(Default)]
struct Seen {
    created: BTreeMap<String, Instant>,
    bound: BTreeMap<String, Instant>,
}

impl Seen {
    fn see(&mut self, pod: &Pod) {
        let (name, now) = (pod.metadata.name.clone().unwrap_or_default(), Instant::now());
        self.created.entry(name.clone()).or_insert(now);
        if is_bound(pod) {
            self.bound.entry(name).or_insert(now);
        }
    }

    fn wait(&self, pod: &str) -> f64 {
        self.bound[pod].duration_since(self.created[pod]).as_secs_f64()
    }
}

/// Watches the pods from now on, for as long as the tasks are kept. The server ends a watch now and then: all are listed anew then.
fn follow(pods: &Api<Pod>, tasks: &mut JoinSet<()>) -> Arc<Mutex<Seen>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (pods, told) = (pods.clone(), Arc::clone(&seen));
    tasks.spawn(async move {
        loop {
            let Ok(list) = pods.list(&ListParams::default()).await else { continue };
            list.iter().for_each(|pod| told.lock().unwrap().see(pod));
            let version = list.metadata.resource_version.unwrap_or_default();
            let Ok(events) = pods.watch(&WatchParams::default(), &version).await else { continue };
            let mut events = events.boxed();
            while let Ok(Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod))) =
                events.try_next().await
            {
                told.lock().unwrap().see(&pod);
            }
        }
    });
    seen
}

async fn until_bound(seen: &Mutex<Seen>, all: usize) -> Result<(), Forgotten> {
    let mut last = (0, Instant::now());
    loop {
        let bound = seen.lock().unwrap().bound.len();
        if bound == all {
            return Ok(());
        }
        if bound > last.0 {
            last = (bound, Instant::now());
        }
        if last.1.elapsed() > PATIENCE {
            return Err(Forgotten(all - bound));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn groups(shape: &Shape) -> String {
    let mut sizes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let victims = shape.victims.iter().filter_map(|(_, group, ..)| Some((group.as_deref()?, "low")));
    let preemptors = shape.preemptors.iter().filter_map(|(_, group, _)| Some((group.as_deref()?, "high")));
    for group in victims.chain(preemptors) {
        *sizes.entry(group).or_default() += 1;
    }
    let texts: Vec<String> = sizes.into_iter().map(|((name, class), size)| group(name, class, size)).collect();
    texts.join("---\n")
}

fn pod(name: &str, group: Option<&str>, class: &str, cpu: u32, scheduler: &str) -> Fixture {
    let name_of_scheduler = if scheduler == "reprieve" { "reprieve" } else { "default-scheduler" };
    let pod = Fixture::pod(name, class, 0).cpu(cpu).scheduler(name_of_scheduler).leaves_at_once();
    match group {
        Some(group) => pod.of_group(group),
        None => pod.unlabelled(),
    }
}

fn start(cluster: &ControlPlane, scheduler: &str) -> Process {
    match scheduler {
        "reprieve" => cluster.run("reprieve", User::Admin, "Kubernetes", ""),
        _ => cluster.kube_scheduler(),
    }
}

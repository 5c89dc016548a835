//! Compares kube-scheduler and `reprieve run` on the same control plane with the same pods: time, victims, CPU time and memory.
//! `cargo xtask e2e --bench` runs it.

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

/// A run is incomplete if no pod is bound for this time. kube-scheduler sometimes leaves a pod pending for five minutes.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// An incomplete run is repeated this often.
const MAX_ATTEMPTS: usize = 4;
/// The CPU time is counted until this long after the last binding, because a scheduler may send events late.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// A benchmark: the victims and the preemptors.
struct Shape {
    name: &'static str,
    nodes: usize,
    /// The number of runs; short runs are repeated because they differ more.
    times: usize,
    /// The running pods: name, group, thousandths of a CPU, node.
    victims: Vec<(String, Option<String>, u32, usize)>,
    /// The preemptors: name, group, thousandths of a CPU.
    preemptors: Vec<(String, Option<String>, u32)>,
}

/// The result of a run.
struct Outcome {
    seconds: f64,
    /// The median time from creation to binding.
    median: f64,
    victims: usize,
    cpu_seconds: f64,
    megabytes: f64,
    /// The share of the machine's CPU time that the API server and etcd used until all pods were bound.
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
                measured.push(measure_complete(&shape, scheduler).await);
            }
        }
        let outcomes = measured.map(|outcomes| median_of(&outcomes));
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

/// The median of each figure, but the maximum of the victims.
fn median_of(outcomes: &[Outcome]) -> Outcome {
    let median = |figure: fn(&Outcome) -> f64| {
        let mut figures: Vec<f64> = outcomes.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Outcome {
        seconds: median(|outcome| outcome.seconds),
        median: median(|outcome| outcome.median),
        victims: outcomes.iter().map(|outcome| outcome.victims).max().unwrap_or_default(),
        cpu_seconds: median(|outcome| outcome.cpu_seconds),
        megabytes: median(|outcome| outcome.megabytes),
        api_server: median(|outcome| outcome.api_server),
    }
}

/// One preemptor per node; each node is full of four pods, three of which must be evicted. This is a benchmark of kube-scheduler itself, in which
/// pods have no labels, victims have no grace period, and neither kubelets nor controllers run.
fn basic(nodes: usize) -> Shape {
    Shape {
        name: if nodes == 500 { "PreemptionBasic, 500 nodes" } else { "PreemptionBasic, 1000 nodes" },
        nodes,
        times: 1,
        victims: (0..4 * nodes).map(|index| (format!("low-{index}"), None, 900, index % nodes)).collect(),
        preemptors: (0..nodes).map(|index| (format!("high-{index}"), None, 3000)).collect(),
    }
}

/// A gang of 100 against `count` gangs on 100 nodes.
fn gangs(count: usize) -> Shape {
    Shape {
        name: if count == 5 { "gang of 100 against 5 gangs" } else { "gang of 100 against 50 gangs" },
        nodes: 100,
        times: 5,
        victims: (0..100)
            .map(|index| (format!("low-{index}"), Some(format!("gang-{}", index * count / 100)), 4000, index))
            .collect(),
        preemptors: (0..100).map(|index| (format!("high-{index}"), Some("urgent".to_owned()), 4000)).collect(),
    }
}

async fn measure_complete(shape: &Shape, scheduler: &str) -> Outcome {
    for _ in 0..MAX_ATTEMPTS {
        match measure(shape, scheduler).await {
            Ok(outcome) => return outcome,
            Err(Incomplete(pods)) => println!("  {scheduler:14} leaves {pods} pods pending; repeating the run"),
        }
    }
    panic!("{scheduler} leaves pods pending in every run");
}

async fn measure(shape: &Shape, scheduler: &str) -> Result<Outcome, Incomplete> {
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
    let mut watch_tasks = JoinSet::new();
    let times = follow(&pods, &mut watch_tasks);
    let process = start(&cluster, scheduler);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (cpu, api_server) = (cpu_seconds(process.id()), cluster.cpu_seconds());
    let began = Instant::now();
    let preemptor = |(name, group, cpu): &(String, Option<String>, u32)| {
        pod(name, group.as_deref(), "high", *cpu, scheduler).build()
    };
    cluster.create_pods("default", shape.preemptors.iter().map(preemptor).collect()).await;
    let all = shape.victims.len() + shape.preemptors.len();
    until_bound(&times, all).await?;
    let api_server = cluster.cpu_seconds() - api_server;
    tokio::time::sleep(SETTLE_TIME).await;
    let evicted = all - pods.list(&ListParams::default()).await.expect("the pods can be listed").items.len();
    let times = times.lock().unwrap();
    let end = times.bound.values().max().expect("a pod was bound");
    let seconds = end.duration_since(began).as_secs_f64();
    let mut waits: Vec<f64> = shape.preemptors.iter().map(|(name, ..)| times.wait(name)).collect();
    waits.sort_by(f64::total_cmp);
    let machine = seconds * std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    Ok(Outcome {
        seconds,
        median: waits[waits.len() / 2],
        victims: evicted,
        cpu_seconds: cpu_seconds(process.id()) - cpu,
        megabytes: peak_megabytes(process.id()),
        api_server: api_server / machine,
    })
}

/// The number of pods that were not bound although they fit.
struct Incomplete(usize);

/// The times at which the watch showed pods.
#[derive(Default)]
struct PodTimes {
    created: BTreeMap<String, Instant>,
    bound: BTreeMap<String, Instant>,
}

impl PodTimes {
    fn record(&mut self, pod: &Pod) {
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

/// Watches the pods until the task is dropped. When the API server ends a watch, the pods are listed again.
fn follow(pods: &Api<Pod>, tasks: &mut JoinSet<()>) -> Arc<Mutex<PodTimes>> {
    let times = Arc::new(Mutex::new(PodTimes::default()));
    let (pods, recorded) = (pods.clone(), Arc::clone(&times));
    tasks.spawn(async move {
        loop {
            let Ok(list) = pods.list(&ListParams::default()).await else { continue };
            list.iter().for_each(|pod| recorded.lock().unwrap().record(pod));
            let version = list.metadata.resource_version.unwrap_or_default();
            let Ok(events) = pods.watch(&WatchParams::default(), &version).await else { continue };
            let mut events = events.boxed();
            while let Ok(Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod))) =
                events.try_next().await
            {
                recorded.lock().unwrap().record(&pod);
            }
        }
    });
    times
}

async fn until_bound(times: &Mutex<PodTimes>, all: usize) -> Result<(), Incomplete> {
    let mut last = (0, Instant::now());
    loop {
        let bound = times.lock().unwrap().bound.len();
        if bound == all {
            return Ok(());
        }
        if bound > last.0 {
            last = (bound, Instant::now());
        }
        if last.1.elapsed() > MAX_WAIT {
            return Err(Incomplete(all - bound));
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
    let scheduler_name = if scheduler == "reprieve" { "reprieve" } else { "default-scheduler" };
    let pod = Fixture::pod(name, class, 0).cpu(cpu).scheduler(scheduler_name).terminates_at_once();
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

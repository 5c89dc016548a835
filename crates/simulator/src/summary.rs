//! The summary of a run: the figures by which policies are compared.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_translate::queue_tree::NeutralQueues;
use serde::Serialize;

use crate::run::{JobRecord, Run, Sample};

const MICROS_PER_HOUR: f64 = 3_600_000_000.0;
const MICROS_PER_SECOND: f64 = 1_000_000.0;
/// How long a gang must have held nodes without running to be reported as stuck: longer than victims take to terminate.
const STUCK_MICROS: i64 = 600_000_000;

/// The figures of a run under one policy.
// Fields: one for each figure of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The name of the policy.
    pub policy: String,
    /// The number of submitted jobs.
    pub jobs: usize,
    /// The number of finished jobs.
    pub finished: usize,
    /// The number of jobs that never started.
    pub never_started: usize,
    /// The number of evictions of pods.
    pub evictions: usize,
    /// The number of evictions of pods for a preemptor that had itself been evicted before.
    pub second_order_evictions: usize,
    /// The number of these that the decision which evicted the preemptor expected.
    pub foreseen_second_order_evictions: usize,
    /// The number of the others.
    pub unforeseen_second_order_evictions: usize,
    /// The resource of `lost_hours`, `utilisation` and `fairness`: GPUs, or cpu if no node has GPUs.
    pub resource: String,
    /// The work of pods that finished, in hours of the resource.
    pub goodput_hours: f64,
    /// What was lost, in hours of the resource: the work of interrupted pods since their last checkpoint, and `idle_hours`.
    pub lost_hours: f64,
    /// The part of `lost_hours` that pods of incomplete gangs held without running.
    pub idle_hours: f64,
    /// The wait of jobs before their first start, by priority, highest first. A job that never started waited until the end of
    /// the run.
    pub waiting: Vec<Waiting>,
    /// The wait of gangs before their first start; `None` without gangs.
    pub gang_start: Option<Percentiles>,
    /// The mean share of the resource in use, from 0 to 1.
    pub utilisation: f64,
    /// Jain's fairness index over the use of the queues with jobs, relative to their guarantees: 1 is fair. If one of these queues has no
    /// guarantee, all count the same. `None` for fewer than two queues, or if no queue used the resource.
    pub fairness: Option<f64>,
    /// The gangs that hold nodes at the end of the run, and have not been able to run for at least 10 minutes.
    pub stuck: Vec<StuckGang>,
    /// The number of times that a preemption evicted some pods of an all-or-nothing gang, but fewer than its minimum.
    pub partial_gangs: usize,
    /// The number of calls of the engine.
    pub decisions: u64,
    /// The number of simulated events.
    pub events: u64,
    /// The number of injected faults.
    pub faults: u64,
}

/// A gang that holds nodes and cannot run, because too few of its pods are bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StuckGang {
    /// The name of the job.
    pub job: String,
    /// The number of bound pods.
    pub pods: usize,
    /// The number of pods that it needs.
    pub needed: usize,
    /// What the bound pods hold of the resource.
    pub holds: f64,
    /// Since when it has held nodes without running, in seconds after the start of the run.
    pub since_seconds: i64,
}

/// The wait of jobs of one priority before their first start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The priority of the jobs.
    pub priority: i32,
    /// The number of jobs.
    pub jobs: usize,
    /// The wait in seconds.
    #[serde(flatten)]
    pub seconds: Percentiles,
}

/// Percentiles of a wait, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// Summarizes a run.
pub fn summary(policy: &str, run: &Run, queues: &NeutralQueues) -> Summary {
    let jobs = &run.jobs;
    let hours = |micros: fn(&JobRecord) -> i64| {
        let total: f64 = jobs.iter().map(|job| micros(job) as f64 * job.each as f64).sum();
        rounded(total / MICROS_PER_HOUR / amount_per_unit(&run.resource), 100.0)
    };
    let priorities: BTreeSet<i32> = jobs.iter().map(|job| job.priority).collect();
    let waiting = priorities.into_iter().rev().filter_map(|priority| {
        let of_priority: Vec<&JobRecord> = jobs.iter().filter(|job| job.priority == priority).collect();
        Some(Waiting { priority, jobs: of_priority.len(), seconds: percentiles(run, of_priority.iter().copied())? })
    });
    let second_order = || run.evictions.iter().filter(|eviction| eviction.second_order);
    Summary {
        policy: policy.to_owned(),
        jobs: jobs.len(),
        finished: jobs.iter().filter(|job| job.finished.is_some()).count(),
        never_started: jobs.iter().filter(|job| job.started.is_none()).count(),
        evictions: run.evictions.len(),
        second_order_evictions: second_order().count(),
        foreseen_second_order_evictions: second_order().filter(|eviction| eviction.foreseen).count(),
        unforeseen_second_order_evictions: second_order().filter(|eviction| !eviction.foreseen).count(),
        resource: run.resource.clone(),
        goodput_hours: hours(|job| job.finished_micros),
        lost_hours: hours(|job| job.lost_micros.saturating_add(job.idle_micros)),
        idle_hours: hours(|job| job.idle_micros),
        waiting: waiting.collect(),
        gang_start: percentiles(run, jobs.iter().filter(|job| job.gang.is_some())),
        utilisation: rounded(mean(run, |sample| sample.used) / (run.capacity as f64).max(1.0), 1000.0),
        fairness: fairness(run, queues),
        stuck: jobs.iter().filter_map(|job| stuck_gang(run, job)).collect(),
        partial_gangs: partial_gangs(run),
        decisions: run.counts.decisions,
        events: run.counts.events,
        faults: run.counts.faults,
    }
}

/// The amount of one GPU or core: cpu is measured in thousandths.
fn amount_per_unit(resource: &str) -> f64 {
    if resource == "cpu" { 1000.0 } else { 1.0 }
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

fn percentiles<'j>(run: &Run, jobs: impl Iterator<Item = &'j JobRecord>) -> Option<Percentiles> {
    let mut waited: Vec<i64> = jobs.map(|job| job.started.unwrap_or(run.ended) - job.submitted).collect();
    waited.sort_unstable();
    let last = waited.len().checked_sub(1)?;
    let percentile = |percent: usize| {
        let index = (waited.len() * percent).div_ceil(100).saturating_sub(1).min(last);
        rounded(waited[index] as f64 / MICROS_PER_SECOND, 10.0)
    };
    Some(Percentiles { p50: percentile(50), p95: percentile(95), p99: percentile(99) })
}

/// The mean over time; a sample holds until the next one.
fn mean(run: &Run, of: impl Fn(&Sample) -> i64) -> f64 {
    let ends = run.samples.iter().skip(1).map(|sample| sample.at).chain([run.ended]);
    let sum: f64 =
        run.samples.iter().zip(ends).map(|(sample, end)| of(sample) as f64 * (end - sample.at).max(0) as f64).sum();
    sum / ((run.ended - run.began) as f64).max(1.0)
}

/// Jain's index: the square of the sum, divided by n times the sum of the squares.
fn fairness(run: &Run, queues: &NeutralQueues) -> Option<f64> {
    let names: BTreeSet<&String> = run.jobs.iter().filter_map(|job| job.queue.as_ref()).collect();
    let guarantee = |name: &str| -> Option<f64> {
        let guarantee = &queues.get(name)?.guarantee;
        let amount = if run.resource == "cpu" { *guarantee.get("cpu")? } else { run.gpus.of(guarantee) };
        (amount > 0).then(|| amount as f64 / amount_per_unit(&run.resource))
    };
    let weights: Option<BTreeMap<&String, f64>> = names.iter().map(|&name| Some((name, guarantee(name)?))).collect();
    let share = |name: &String| {
        let used =
            mean(run, |sample| sample.by_queue.iter().find(|(queue, _)| queue == name).map_or(0, |(_, used)| *used));
        used / weights.as_ref().map_or(1.0, |weights| weights[name])
    };
    let shares: Vec<f64> = names.iter().map(|&name| share(name)).collect();
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    (shares.len() > 1 && squares > 0.0).then(|| rounded(sum * sum / (shares.len() as f64 * squares), 1000.0))
}

fn stuck_gang(run: &Run, job: &JobRecord) -> Option<StuckGang> {
    let (gang, held) = (job.gang?, job.held?);
    (run.ended - held.since >= STUCK_MICROS).then(|| StuckGang {
        job: job.name.clone(),
        pods: held.pods,
        needed: gang.min,
        holds: held.pods as f64 * job.each as f64 / amount_per_unit(&run.resource),
        since_seconds: (held.since - run.began) / 1_000_000,
    })
}

/// Counts the pairs of a preemption and an all-or-nothing gang of which the preemption evicted fewer pods than the gang's minimum.
fn partial_gangs(run: &Run) -> usize {
    let gangs: BTreeMap<&str, usize> =
        run.jobs.iter().filter_map(|job| Some((job.name.as_str(), job.gang.filter(|gang| gang.whole)?.min))).collect();
    let job_of: BTreeMap<&str, &str> =
        run.evictions.iter().map(|eviction| (eviction.pod.as_str(), eviction.job.as_str())).collect();
    let mut partial = 0;
    for preemption in &run.preemptions {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for victim in &preemption.victims {
            if let Some(job) = job_of.get(victim.to_string().as_str()) {
                *taken.entry(job).or_default() += 1;
            }
        }
        partial += taken.iter().filter(|(job, taken)| gangs.get(*job).is_some_and(|min| *taken < min)).count();
    }
    partial
}

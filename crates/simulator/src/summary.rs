//! What a run comes to: the figures by which policies are compared. The same for the same seed, all but how long decisions took.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_translate::queue_tree::NeutralQueues;
use serde::Serialize;

use crate::run::{JobRecord, Run, Sample};

const HOUR: f64 = 3_600_000_000.0;

/// What a run comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The policy.
    pub policy: String,
    /// How many jobs were submitted.
    pub jobs: usize,
    /// How many of them were done in the end.
    pub finished: usize,
    /// How many never ran.
    pub never_started: usize,
    /// Pods that were evicted.
    pub evictions: usize,
    /// Those for somebody who had been evicted before and came back.
    pub second_order_evictions: usize,
    /// What the figures below are counted in: GPUs, or cpu where no node has any.
    pub resource: String,
    /// Work that was thrown away, in hours of the resource.
    pub lost_hours: f64,
    /// How long jobs waited before they first ran; those that never did, until the end. By priority, highest first.
    pub waiting: Vec<Waiting>,
    /// The same for gangs alone; `None` where there are none.
    pub gang_start: Option<Percentiles>,
    /// How much of the resource was in use, of 1.
    pub utilisation: f64,
    /// Jain's index over the queues' use, each by its guarantee: 1 is fair. `None` below two queues.
    pub fairness: Option<f64>,
    /// Gangs that yield only whole of which a part was evicted.
    pub partial_gangs: usize,
    /// Decisions.
    pub decisions: u64,
    /// Things that happened.
    pub events: u64,
    /// Faults.
    pub faults: u64,
}

/// How long jobs of a priority waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The priority.
    pub priority: i32,
    /// How many jobs have it.
    pub jobs: usize,
    /// How long they waited.
    #[serde(flatten)]
    pub seconds: Percentiles,
}

/// So many seconds at most for a half, for 95 and for 99 of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// For a half.
    pub p50: f64,
    /// For 95 of a hundred.
    pub p95: f64,
    /// For 99 of a hundred.
    pub p99: f64,
}

/// Sums a run up.
pub fn summary(policy: &str, run: &Run, queues: &NeutralQueues) -> Summary {
    let jobs = &run.jobs;
    let lost: f64 = jobs.iter().map(|job| job.lost_micros as f64 * job.each as f64).sum();
    let priorities: BTreeSet<i32> = jobs.iter().map(|job| job.priority).collect();
    let waiting = priorities.into_iter().rev().filter_map(|priority| {
        let alike: Vec<&JobRecord> = jobs.iter().filter(|job| job.priority == priority).collect();
        Some(Waiting { priority, jobs: alike.len(), seconds: percentiles(run, alike.iter().copied())? })
    });
    Summary {
        policy: policy.to_owned(),
        jobs: jobs.len(),
        finished: jobs.iter().filter(|job| job.finished.is_some()).count(),
        never_started: jobs.iter().filter(|job| job.started.is_none()).count(),
        evictions: run.evictions.len(),
        second_order_evictions: run.evictions.iter().filter(|eviction| eviction.second_order).count(),
        resource: run.resource.clone(),
        lost_hours: rounded(lost / HOUR / units(&run.resource), 100.0),
        waiting: waiting.collect(),
        gang_start: percentiles(run, jobs.iter().filter(|job| job.gang.is_some())),
        utilisation: rounded(mean(run, |sample| sample.used) / (run.capacity as f64).max(1.0), 1000.0),
        fairness: fairness(run, queues),
        partial_gangs: partial_gangs(run),
        decisions: run.counts.decisions,
        events: run.counts.events,
        faults: run.counts.faults,
    }
}

/// Cpu is counted in thousandths.
fn units(resource: &str) -> f64 {
    if resource == "cpu" { 1000.0 } else { 1.0 }
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

fn percentiles<'j>(run: &Run, jobs: impl Iterator<Item = &'j JobRecord>) -> Option<Percentiles> {
    let mut waited: Vec<i64> = jobs.map(|job| job.started.unwrap_or(run.ended) - job.submitted).collect();
    waited.sort_unstable();
    let last = waited.len().checked_sub(1)?;
    let at = |part: usize| {
        let place = (waited.len() * part).div_ceil(100).saturating_sub(1).min(last);
        rounded(waited[place] as f64 / 1e6, 10.0)
    };
    Some(Percentiles { p50: at(50), p95: at(95), p99: at(99) })
}

/// Over time: what a sample says holds until the next.
fn mean(run: &Run, of: impl Fn(&Sample) -> i64) -> f64 {
    let ends = run.samples.iter().skip(1).map(|sample| sample.at).chain([run.ended]);
    let sum: f64 =
        run.samples.iter().zip(ends).map(|(sample, end)| of(sample) as f64 * (end - sample.at).max(0) as f64).sum();
    sum / ((run.ended - run.began) as f64).max(1.0)
}

/// Jain's index: the square of the sum by n times the sum of the squares.
fn fairness(run: &Run, queues: &NeutralQueues) -> Option<f64> {
    let names: BTreeSet<&String> = run.jobs.iter().filter_map(|job| job.queue.as_ref()).collect();
    let guarantee = |name: &str| -> Option<f64> {
        let amount = *queues.get(name)?.guarantee.get(&run.resource)?;
        (amount > 0).then(|| amount as f64 / units(&run.resource))
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

/// By preemption: gangs that yield only whole, and of which fewer were taken than can run.
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

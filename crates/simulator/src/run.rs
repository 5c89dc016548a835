//! The results of a run: the history of every job, all evictions and preemptions, and samples of the usage.

use reprieve_api::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_report::gpu_hours::GpuResources;
use serde::Serialize;

/// The results of a run. Times are in microseconds since 1970.
#[derive(Debug, Default)]
pub struct Run {
    /// The start.
    pub began: i64,
    /// The end.
    pub ended: i64,
    /// All jobs.
    pub jobs: Vec<JobRecord>,
    /// All evictions.
    pub evictions: Vec<Eviction>,
    /// All decisions to evict.
    pub preemptions: Vec<Preemption>,
    /// Samples of the usage at equal intervals.
    pub samples: Vec<Sample>,
    /// Counters of the run.
    pub counts: Counts,
    /// The resource that usage is measured in: that of the GPUs, or `cpu` if no node has GPUs.
    pub resource: String,
    /// The resources that count as GPUs.
    pub gpus: GpuResources,
    /// The amount of that resource on all nodes.
    pub capacity: i64,
    /// The largest amount that bound pods requested at any time.
    pub peak: i64,
}

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Simulated events.
    pub events: u64,
    /// Steps of the scheduler.
    pub steps: u64,
    /// Decisions of the scheduler.
    pub decisions: u64,
    /// The time of all steps, in nanoseconds of real time.
    pub decision_nanos: u64,
    /// Actions of the scheduler.
    pub actions: u64,
    /// Injected faults.
    pub faults: u64,
    /// Restarts of the scheduler.
    pub restarts: u64,
}

/// The history of a job.
// Fields: one for each figure of a job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    /// Namespace and name.
    pub name: String,
    /// The priority of its pods.
    pub priority: i32,
    /// The name of its queue.
    pub queue: Option<String>,
    /// The number of pods.
    pub pods: usize,
    /// The gang of its pods.
    pub gang: Option<Gang>,
    /// The request of each pod for the resource of the run.
    pub each: i64,
    /// The time of the submission.
    pub submitted: i64,
    /// The time of the first start.
    pub started: Option<i64>,
    /// The time of the end.
    pub finished: Option<i64>,
    /// The number of evictions of its pods.
    pub evictions: u32,
    /// The lost work of all its pods.
    pub lost_micros: i64,
    /// The time for which its pods held nodes while too few of them were bound to run.
    pub idle_micros: i64,
    /// The work of all its pods that have finished.
    pub finished_micros: i64,
    /// What it holds at the end of the run without being able to run.
    pub held: Option<HeldNodes>,
    /// The intervals in which it ran, in the order of their starts; those of independent pods may overlap.
    pub ran: Vec<RunInterval>,
}

/// An interval in which a gang or an independent pod ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunInterval {
    /// The start.
    pub from: i64,
    /// The end; `None` if it still ran at the end of the run.
    pub to: Option<i64>,
}

/// The pods of an incomplete gang that are bound: they hold nodes, but are too few to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldNodes {
    /// The number of bound pods.
    pub pods: usize,
    /// Since when.
    pub since: i64,
}

/// A gang: its pods run together or not at all, and are recreated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gang {
    /// The minimum number of pods.
    pub min: usize,
    /// Whether the pods are evicted only as a whole.
    pub whole: bool,
}

/// The eviction of a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// The time of the eviction.
    pub at: i64,
    /// The evicted pod.
    pub pod: String,
    /// The job of the pod.
    pub job: String,
    /// Kind, namespace and name of the preemptor.
    pub preemptor: String,
    /// The job of the preemptor, if it still exists.
    pub preemptor_job: Option<String>,
    /// Whether the preemptor had itself been evicted before.
    pub second_order: bool,
    /// Whether the decision that evicted the preemptor expected this eviction. Always false for a first-order eviction.
    pub foreseen: bool,
}

/// A decision to evict.
#[derive(Debug)]
pub struct Preemption {
    /// The time of the decision.
    pub at: Timestamp,
    /// The preemptor.
    pub unit: String,
    /// The evicted pods or workloads.
    pub victims: Vec<NamespacedName>,
    /// Each pod of the preemptor with its node.
    pub placement: Vec<(NamespacedName, String)>,
}

/// The usage of the cluster at one time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The time of the sample.
    pub at: i64,
    /// The amount of the resource in use.
    pub used: i64,
    /// The number of bound pods.
    pub running: usize,
    /// The number of pods that wait for nodes or for quota.
    pub pending: usize,
    /// The amount that each queue uses.
    pub by_queue: Vec<(String, i64)>,
}

//! What a run leaves behind: what happened to every job, who evicted whom, and how full the cluster was.

use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use serde::Serialize;

/// What a run leaves behind.
#[derive(Debug, Default)]
pub struct Run {
    /// When it began.
    pub began: i64,
    /// When it ended.
    pub ended: i64,
    /// Every job.
    pub jobs: Vec<JobRecord>,
    /// Every eviction.
    pub evictions: Vec<Eviction>,
    /// Every decision that somebody has to yield.
    pub preemptions: Vec<Preemption>,
    /// How the cluster stood, at equal distances.
    pub samples: Vec<Sample>,
    /// What was counted.
    pub counts: Counts,
    /// What utilisation is about.
    pub resource: String,
    /// How much of it there is.
    pub capacity: i64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Things that happened.
    pub events: u64,
    /// Steps of the scheduler.
    pub steps: u64,
    /// Decisions.
    pub decisions: u64,
    /// How long they took.
    pub decision_nanos: u64,
    /// Actions.
    pub actions: u64,
    /// Faults.
    pub faults: u64,
    /// How often the scheduler was started anew.
    pub restarts: u64,
}

/// What happened to a job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: i32,
    /// Its queue.
    pub queue: Option<String>,
    /// How many pods it has.
    pub pods: usize,
    /// Whether they belong together.
    pub gang: Option<Gang>,
    /// How much of the resource each asks for.
    pub each: i64,
    /// When it was submitted, in microseconds since 1970.
    pub submitted: i64,
    /// When it first ran.
    pub started: Option<i64>,
    /// When it was done.
    pub finished: Option<i64>,
    /// How often a pod of it was evicted.
    pub evictions: u32,
    /// What it did in vain, over all its pods.
    pub lost_micros: i64,
    /// When something of it ran, in the order of the beginnings; pods that run each on its own may overlap.
    pub ran: Vec<RunInterval>,
}

/// A time in which a job, or a pod of it that runs on its own, was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunInterval {
    /// From when.
    pub from: i64,
    /// Until when; `None` where it ran in the end.
    pub to: Option<i64>,
}

/// How the pods of a job belong together: they run together or not at all, and start anew together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gang {
    /// How few will do.
    pub min: usize,
    /// Whether they yield only all together.
    pub whole: bool,
}

/// An eviction.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// When.
    pub at: i64,
    /// Who.
    pub pod: String,
    /// Its job.
    pub job: String,
    /// For whom.
    pub preemptor: String,
    /// The preemptor's job, if it is still there.
    pub preemptor_job: Option<String>,
    /// Whether the preemptor had itself been evicted, and came back.
    pub second_order: bool,
}

/// A decision that somebody has to yield.
#[derive(Debug)]
pub struct Preemption {
    /// When.
    pub at: Timestamp,
    /// For whom.
    pub unit: String,
    /// Who yields.
    pub victims: Vec<NamespacedName>,
    /// Where the preemptor lands.
    pub placement: Vec<(NamespacedName, String)>,
}

/// How the cluster stood.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// When.
    pub at: i64,
    /// How much of the resource was in use.
    pub used: i64,
    /// How many pods were bound.
    pub running: usize,
    /// How many pods waited.
    pub pending: usize,
    /// By queue: how much of the resource it used.
    pub by_queue: Vec<(String, i64)>,
}

//! The configuration of a run.

use reprieve_api::Object;
use reprieve_engine::{Policy, Timestamp};
use reprieve_report::gpu_hours::GpuResources;
use reprieve_scheduler::Scheduler;

use crate::faults::Faults;
use crate::submission::Submission;

/// The `schedulerName` of all simulated pods.
pub const SCHEDULER: &str = "reprieve";

/// The configuration of a run under one policy.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The policy of all decisions.
    pub policy: Policy,
    /// The objects that exist from the start: nodes, priority classes, queues, budgets.
    pub objects: Vec<Object>,
    /// The jobs and services, each with its time.
    pub submissions: Vec<Submission>,
    /// The virtual time of the start.
    pub start: Timestamp,
    /// The virtual time of the end, whether or not jobs still run.
    pub end: Timestamp,
    /// The rates of injected faults.
    pub faults: Faults,
    /// The time until another operator deletes a pod with the soft-eviction label.
    pub soft_eviction_micros: i64,
    /// The resources that count as GPUs.
    pub gpus: GpuResources,
    /// The time between two samples of the usage; 0 for no samples.
    pub sample_micros: i64,
    /// Whether each preemption comes with a report.
    pub explains: bool,
    /// The seed of the injected faults.
    pub seed: u64,
    /// A deliberate bug of the scheduler.
    #[cfg(feature = "deliberate-bugs")]
    pub bug: Option<reprieve_scheduler::Bug>,
}

impl RunConfig {
    pub(super) fn scheduler(&self) -> Scheduler {
        let scheduler = Scheduler::new(SCHEDULER, self.policy);
        #[cfg(feature = "deliberate-bugs")]
        let scheduler = scheduler.with_bug(self.bug);
        if self.explains { scheduler.explaining() } else { scheduler }
    }
}

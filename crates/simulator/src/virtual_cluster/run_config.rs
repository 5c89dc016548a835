//! What a run starts from.

use reprieve_api::kinds::Object;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_scheduler::Scheduler;

use crate::faults::Faults;
use crate::submission::Submission;

/// By what name pods ask for the scheduler.
pub const SCHEDULER: &str = "reprieve";

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The policy.
    pub policy: Policy,
    /// Nodes, classes, queues, budgets.
    pub objects: Vec<Object>,
    /// What is submitted, and when.
    pub submissions: Vec<Submission>,
    /// When it begins.
    pub start: Timestamp,
    /// When it ends, whatever is still running.
    pub end: Timestamp,
    /// What goes wrong.
    pub faults: Faults,
    /// How long another operator takes to delete a pod that was labelled for it.
    pub soft_eviction_micros: i64,
    /// How far apart samples are taken; 0 is never.
    pub sample_micros: i64,
    /// Whether every preemption is explained.
    pub explains: bool,
    /// Where chance comes from.
    pub seed: u64,
    /// A bug of the scheduler.
    #[cfg(feature = "deliberate-bugs")]
    pub bug: Option<reprieve_scheduler::Bug>,
}

impl RunConfig {
    /// A scheduler that knows nothing yet.
    pub(super) fn scheduler(&self) -> Scheduler {
        let scheduler = Scheduler::new(SCHEDULER, self.policy);
        #[cfg(feature = "deliberate-bugs")]
        let scheduler = scheduler.with_bug(self.bug);
        if self.explains { scheduler.explaining() } else { scheduler }
    }
}

//! What a run is counted by, and what it leaves behind.

use std::collections::BTreeSet;

use reprieve_engine::Timestamp;
use reprieve_report::decision::DecisionReport;

use super::run_config::RunConfig;
use crate::job::Job;
use crate::run::Run;
use crate::usage::Usage;

/// What is counted while a cluster runs.
pub(crate) struct Statistics {
    pub run: Run,
    pub usage: Usage,
    /// Why, by the number of the preemption, until somebody takes it: of a large cluster it is large.
    pub reports: Vec<(usize, Box<DecisionReport>)>,
    /// By uid: the pods that were evicted.
    pub evicted: BTreeSet<String>,
}

impl Statistics {
    pub fn new(setup: &RunConfig) -> Self {
        Self {
            run: Run { began: setup.start.0, ..Run::default() },
            usage: Usage::new(&setup.objects),
            reports: Vec::new(),
            evicted: BTreeSet::new(),
        }
    }

    /// The run, which ends now.
    pub fn finish(mut self, jobs: &[Job], ended: Timestamp) -> Run {
        self.run.ended = ended.0;
        self.run.jobs = jobs.iter().map(|job| self.usage.record(job)).collect();
        self.run.resource = self.usage.resource;
        self.run.capacity = self.usage.capacity;
        self.run
    }
}

//! What a run is counted by, and what it leaves behind.

use std::collections::BTreeSet;

use reprieve_engine::Timestamp;
use reprieve_report::decision::Report;

use super::setup::Setup;
use crate::job::Job;
use crate::run::{Run, Sample};
use crate::usage::Usage;

/// What is counted while a cluster runs.
pub(super) struct Statistics {
    pub run: Run,
    pub usage: Usage,
    /// Why, by the number of the preemption, until somebody takes it: of a large cluster it is large.
    pub reports: Vec<(usize, Box<Report>)>,
    /// By uid: the pods that were evicted.
    evicted: BTreeSet<String>,
}

impl Statistics {
    pub fn new(setup: &Setup) -> Self {
        Self {
            run: Run { began: setup.start.0, ..Run::default() },
            usage: Usage::new(&setup.objects),
            reports: Vec::new(),
            evicted: BTreeSet::new(),
        }
    }

    /// Whether this pod is evicted for the first time.
    pub fn is_first_eviction(&mut self, uid: &str) -> bool {
        self.evicted.insert(uid.to_owned())
    }

    /// Writes down how full the cluster is.
    pub fn sample(&mut self, now: Timestamp) {
        let (used, running, pending, by_queue) = self.usage.sample();
        self.run.samples.push(Sample { at: now.0, used, running, pending, by_queue });
    }

    /// The run, which ends now.
    pub fn finish(mut self, jobs: &[Job], ended: Timestamp) -> Run {
        self.run.ended = ended.0;
        self.run.jobs = jobs.iter().map(|job| self.usage.record(job)).collect();
        self.run.resource = self.usage.resource().to_owned();
        self.run.capacity = self.usage.capacity();
        self.run
    }
}

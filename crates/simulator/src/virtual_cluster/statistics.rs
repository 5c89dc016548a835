//! The results of a run, collected while it proceeds.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::Timestamp;
use reprieve_report::decision::DecisionReport;

use super::run_config::RunConfig;
use crate::incomplete_gangs::IncompleteGangs;
use crate::job::Job;
use crate::run::{HeldNodes, Run};
use crate::usage::Usage;

pub(crate) struct Statistics {
    pub run: Run,
    pub usage: Usage,
    pub gangs: IncompleteGangs,
    /// Reports, each with the index of its preemption, until the caller takes them: those of a large cluster need much memory.
    pub reports: Vec<(usize, Box<DecisionReport>)>,
    /// The uids of the evicted pods.
    pub evicted: BTreeSet<String>,
    /// For each part of a job that was evicted, the parts that it was expected to evict in turn. A part is given by job and index.
    pub foreseen: BTreeMap<(usize, usize), BTreeSet<(usize, usize)>>,
}

impl Statistics {
    pub fn new(setup: &RunConfig) -> Self {
        Self {
            run: Run { began: setup.start.0, gpus: setup.gpus.clone(), ..Run::default() },
            usage: Usage::new(&setup.objects, &setup.gpus),
            gangs: IncompleteGangs::default(),
            reports: Vec::new(),
            evicted: BTreeSet::new(),
            foreseen: BTreeMap::new(),
        }
    }

    pub fn finish(mut self, jobs: &[Job], ended: Timestamp) -> Run {
        self.run.ended = ended.0;
        for (index, job) in jobs.iter().enumerate() {
            let held = self.gangs.held(index).map(|(pods, since)| HeldNodes { pods, since: since.0 });
            let idle = self.gangs.idle_micros(index, ended);
            self.run.jobs.push(self.usage.job_record(job, idle, held));
        }
        self.run.resource = self.usage.measured.name().to_owned();
        self.run.capacity = self.usage.capacity;
        self.run.peak = self.usage.peak;
        self.run
    }
}

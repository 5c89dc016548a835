//! A submitted job: its pods, the work that is saved, and the work that was lost.

use std::collections::BTreeMap;

use reprieve_api::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_report::gpu_hours::lost_micros;

use crate::run::RunInterval;
use crate::submission::Submission;

/// A job that was submitted.
pub(crate) struct Job {
    pub submission: Submission,
    /// A gang has one part with all its pods; another job has one part for each pod.
    pub parts: Vec<Replica>,
    pub first_started: Option<Timestamp>,
    pub finished: Option<Timestamp>,
    /// The number of evictions of its pods.
    pub evictions: u32,
    pub lost_micros: i64,
    /// The work of the finished parts.
    pub finished_micros: i64,
    /// The intervals in which a part ran, and that are over.
    pub ran: Vec<RunInterval>,
}

/// Pods that start, stop and are recreated together.
#[derive(Default)]
pub(crate) struct Replica {
    /// Whether each pod runs.
    pub pods: BTreeMap<NamespacedName, bool>,
    /// How often the pods were created.
    pub generation: u32,
    /// The work that is saved by checkpoints.
    pub saved_micros: i64,
    pub running_since: Option<Timestamp>,
    pub done: bool,
    /// Whether a pod stopped early, so that all pods must be recreated.
    pub interrupted: bool,
    /// Whether a pod was ever preempted.
    pub was_preempted: bool,
}

impl Job {
    pub fn new(submission: Submission) -> Self {
        let n = if submission.gang.is_some() { 1 } else { submission.pods };
        let parts = (0..n).map(|_| Replica::default()).collect();
        Self {
            submission,
            parts,
            first_started: None,
            finished: None,
            evictions: 0,
            lost_micros: 0,
            finished_micros: 0,
            ran: Vec::new(),
        }
    }

    /// The indices of the pods of a part.
    pub fn members(&self, part: usize) -> std::ops::Range<usize> {
        if self.submission.gang.is_some() { 0..self.submission.pods } else { part..part + 1 }
    }

    fn n_members(&self, part: usize) -> i64 {
        i64::try_from(self.members(part).len()).unwrap_or(i64::MAX)
    }

    /// The number of pods that are still to be created: they wait for quota, or for pods of an earlier start to end.
    pub fn n_uncreated(&self) -> usize {
        let uncreated = self.parts.iter().enumerate().filter(|(_, part)| !part.done && part.pods.is_empty());
        uncreated.map(|(part, _)| self.members(part).len()).sum()
    }

    /// Notes that a pod runs. If its part now runs, returns the microseconds until the part is finished.
    pub fn started(&mut self, part: usize, pod: &NamespacedName, now: Timestamp) -> Option<i64> {
        let needed = self.submission.gang.map_or(1, |gang| gang.min);
        let state = &mut self.parts[part];
        *state.pods.get_mut(pod)? = true;
        let running = state.pods.values().filter(|runs| **runs).count();
        if state.interrupted || state.running_since.is_some() || running < needed {
            return None;
        }
        state.running_since = Some(now);
        self.first_started.get_or_insert(now);
        Some(self.submission.running_micros? - state.saved_micros)
    }

    /// Stops an unfinished part; the work since its last checkpoint is lost.
    pub fn interrupt(&mut self, part: usize, now: Timestamp) {
        let state = &mut self.parts[part];
        if state.done {
            return;
        }
        state.interrupted = true;
        let Some(since) = state.running_since.take() else { return };
        self.ran.push(RunInterval { from: since.0, to: Some(now.0) });
        let worked = now.0 - since.0;
        let kept = self.submission.checkpoint_micros.map_or(0, |every| worked / every.max(1) * every);
        state.saved_micros += kept;
        let lost = lost_micros(Some(since), Some(since.plus_micros(kept)), now).unwrap_or(0);
        self.lost_micros += lost.saturating_mul(self.n_members(part));
    }

    /// Notes that a part is finished.
    pub fn finish(&mut self, part: usize, now: Timestamp) {
        let state = &mut self.parts[part];
        state.done = true;
        if let Some(since) = state.running_since {
            self.ran.push(RunInterval { from: since.0, to: Some(now.0) });
        }
        let work = self.submission.running_micros.unwrap_or(0);
        self.finished_micros += work.saturating_mul(self.n_members(part));
        if self.is_done() {
            self.finished = Some(now);
        }
    }

    /// The intervals in which a part ran, in the order of their starts.
    pub fn all_ran(&self) -> Vec<RunInterval> {
        let running = self.parts.iter().filter(|part| !part.done).filter_map(|part| part.running_since);
        let mut ran: Vec<RunInterval> =
            self.ran.iter().copied().chain(running.map(|from| RunInterval { from: from.0, to: None })).collect();
        ran.sort_by_key(|ran| (ran.from, ran.to));
        ran
    }

    pub fn is_done(&self) -> bool {
        self.parts.iter().all(|part| part.done)
    }
}

//! A job's life: its pods, what it has done, what was lost.

use std::collections::BTreeMap;

use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;

use crate::run::RunInterval;
use crate::submission::Submission;

/// A job that was submitted.
pub(crate) struct Job {
    pub submission: Submission,
    /// A gang has one part, of all its pods; others have one for each pod.
    pub parts: Vec<Replica>,
    pub first_started: Option<Timestamp>,
    pub finished: Option<Timestamp>,
    /// How often a pod of it was evicted.
    pub evictions: u32,
    pub lost_micros: i64,
    /// What ran and stopped.
    pub ran: Vec<RunInterval>,
}

/// Pods that start, stop and start anew together.
#[derive(Default)]
pub(crate) struct Replica {
    /// By pod: whether it runs.
    pub pods: BTreeMap<NamespacedName, bool>,
    pub turn: u32,
    /// What is saved.
    pub saved_micros: i64,
    /// Since when it runs.
    pub running_since: Option<Timestamp>,
    pub done: bool,
    /// Whether it has to start anew.
    pub broken: bool,
    /// Whether it was made to start anew by a preemption.
    pub was_preempted: bool,
}

impl Job {
    pub fn new(submission: Submission) -> Self {
        let n = if submission.gang.is_some() { 1 } else { submission.pods };
        let parts = (0..n).map(|_| Replica::default()).collect();
        Self { submission, parts, first_started: None, finished: None, evictions: 0, lost_micros: 0, ran: Vec::new() }
    }

    /// The members that a part has.
    pub fn members(&self, part: usize) -> std::ops::Range<usize> {
        if self.submission.gang.is_some() { 0..self.submission.pods } else { part..part + 1 }
    }

    /// A pod runs. After how many microseconds its part will be done, if it began by that and ever is.
    pub fn started(&mut self, part: usize, pod: &NamespacedName, now: Timestamp) -> Option<i64> {
        let needed = self.submission.gang.map_or(1, |gang| gang.min);
        let state = &mut self.parts[part];
        *state.pods.get_mut(pod)? = true;
        let running = state.pods.values().filter(|runs| **runs).count();
        if state.broken || state.running_since.is_some() || running < needed {
            return None;
        }
        state.running_since = Some(now);
        self.first_started.get_or_insert(now);
        Some(self.submission.running_micros? - state.saved_micros)
    }

    /// A part stops: what it did since it last saved is lost. What is done stays done.
    pub fn interrupt(&mut self, part: usize, now: Timestamp) {
        let state = &mut self.parts[part];
        if state.done {
            return;
        }
        state.broken = true;
        let Some(since) = state.running_since.take() else { return };
        self.ran.push(RunInterval { from: since.0, to: Some(now.0) });
        let done = now.0 - since.0;
        let kept = self.submission.checkpoint_micros.map_or(0, |every| done / every.max(1) * every);
        state.saved_micros += kept;
        let pods = i64::try_from(self.members(part).len()).unwrap_or(i64::MAX);
        self.lost_micros += (done - kept).saturating_mul(pods);
    }

    /// A part is done.
    pub fn finish(&mut self, part: usize, now: Timestamp) {
        let state = &mut self.parts[part];
        state.done = true;
        if let Some(since) = state.running_since {
            self.ran.push(RunInterval { from: since.0, to: Some(now.0) });
        }
        if self.is_done() {
            self.finished = Some(now);
        }
    }

    /// When something of it ran, in the order of the beginnings.
    pub fn all_ran(&self) -> Vec<RunInterval> {
        let running = self.parts.iter().filter(|part| !part.done).filter_map(|part| part.running_since);
        let mut ran: Vec<RunInterval> =
            self.ran.iter().copied().chain(running.map(|from| RunInterval { from: from.0, to: None })).collect();
        ran.sort_by_key(|ran| (ran.from, ran.to));
        ran
    }

    /// Whether everything is done.
    pub fn is_done(&self) -> bool {
        self.parts.iter().all(|part| part.done)
    }
}

//! Those who may be taken, by node, and what it costs to take all of a node.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::ids::{JobId, NodeId, PodId, Priority};
use crate::what_if::WhatIf;

/// A pod that may be taken.
#[derive(Clone, Copy)]
pub(super) struct RemovedPod {
    pub(super) pod: PodId,
    pub(super) node: NodeId,
    pub(super) priority: Priority,
    pub(super) job: Option<JobId>,
    /// Whether it matters to others than those who look at its node.
    pub(super) affects_quota: bool,
}

/// All who may be taken. Who stands on a node that nobody looks at, and counts in no quota that is tight, would come back whatever
/// happens: it stays where it is.
pub(super) struct RemovedPods {
    /// By node.
    candidates: Vec<RemovedPod>,
    starts: Vec<usize>,
    cleared: Vec<bool>,
    /// Those who are off their nodes.
    pub(super) removed: Vec<RemovedPod>,
}

impl RemovedPods {
    pub(super) fn new(mut victims: Vec<RemovedPod>, gone: Vec<RemovedPod>, n_nodes: usize) -> Self {
        victims.sort_by_key(|victim| victim.node);
        let mut starts = vec![0; n_nodes + 1];
        for victim in &victims {
            starts[victim.node.index() + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        Self { candidates: victims, starts, cleared: vec![false; n_nodes], removed: gone }
    }

    /// Takes all off a node.
    pub(super) fn clear(&mut self, what_if: &mut WhatIf<'_>, node: NodeId) {
        if std::mem::replace(&mut self.cleared[node.index()], true) {
            return;
        }
        for victim in &self.candidates[self.starts[node.index()]..self.starts[node.index() + 1]] {
            if !victim.affects_quota {
                what_if.remove(victim.pod);
                self.removed.push(*victim);
            }
        }
    }

    /// By node: the sum over the distinct jobs of its potential victims of the rank of their priority; a pod of no job is a job.
    /// (Rule 10.)
    pub(super) fn costs(&self) -> Vec<usize> {
        let priorities: BTreeSet<Priority> = self.candidates.iter().map(|victim| victim.priority).collect();
        let priorities: Vec<Priority> = priorities.into_iter().collect();
        let rank = |victim: &RemovedPod| priorities.partition_point(|&priority| priority < victim.priority);
        let mut jobs: Vec<(JobId, usize)> = Vec::new();
        let mut cost = |at: Range<usize>| {
            jobs.clear();
            let mut sum = 0;
            for victim in &self.candidates[at] {
                match victim.job {
                    Some(job) => jobs.push((job, rank(victim))),
                    None => sum += rank(victim),
                }
            }
            jobs.sort_unstable_by_key(|&(job, rank)| (job, Reverse(rank)));
            jobs.dedup_by_key(|(job, _)| *job);
            sum + jobs.iter().map(|(_, rank)| rank).sum::<usize>()
        };
        self.starts.windows(2).map(|at| cost(at[0]..at[1])).collect()
    }
}

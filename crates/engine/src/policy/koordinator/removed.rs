//! The candidates by node, and the cost of taking all candidates of a node.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::ids::{JobId, NodeId, PodId, Priority};
use crate::what_if::WhatIf;

/// A candidate.
#[derive(Clone, Copy)]
pub(super) struct RemovedPod {
    pub(super) pod: PodId,
    pub(super) node: NodeId,
    pub(super) priority: Priority,
    pub(super) job: Option<JobId>,
    /// Whether its removal matters beyond its own node.
    pub(super) matters: bool,
}

/// All candidates. A candidate on a node that the search does not reach, and that counts in no exhausted quota, would be put back in any
/// case: it is not removed.
pub(super) struct RemovedPods {
    /// Sorted by node.
    candidates: Vec<RemovedPod>,
    starts: Vec<usize>,
    cleared: Vec<bool>,
    /// The candidates that are removed from their nodes.
    pub(super) removed: Vec<RemovedPod>,
}

impl RemovedPods {
    pub(super) fn new(mut candidates: Vec<RemovedPod>, removed: Vec<RemovedPod>, n_nodes: usize) -> Self {
        candidates.sort_by_key(|candidate| candidate.node);
        let mut starts = vec![0; n_nodes + 1];
        for candidate in &candidates {
            starts[candidate.node.index() + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        Self { candidates, starts, cleared: vec![false; n_nodes], removed }
    }

    /// Removes all candidates from a node.
    pub(super) fn clear(&mut self, what_if: &mut WhatIf<'_>, node: NodeId) {
        if std::mem::replace(&mut self.cleared[node.index()], true) {
            return;
        }
        for candidate in &self.candidates[self.starts[node.index()]..self.starts[node.index() + 1]] {
            if !candidate.matters {
                what_if.remove(candidate.pod);
                self.removed.push(*candidate);
            }
        }
    }

    /// The candidates on a node.
    pub(super) fn on(&self, node: NodeId) -> &[RemovedPod] {
        &self.candidates[self.starts[node.index()]..self.starts[node.index() + 1]]
    }

    /// docs/rules/koordinator.md#q10: by node, the sum over the distinct jobs of its candidates of the rank of their priority. A pod
    /// without a job counts as a job.
    pub(super) fn costs(&self) -> Vec<usize> {
        let priorities: BTreeSet<Priority> = self.candidates.iter().map(|candidate| candidate.priority).collect();
        let priorities: Vec<Priority> = priorities.into_iter().collect();
        let rank = |candidate: &RemovedPod| priorities.partition_point(|&priority| priority < candidate.priority);
        let mut jobs: Vec<(JobId, usize)> = Vec::new();
        let mut cost = |range: Range<usize>| {
            jobs.clear();
            let mut sum = 0;
            for candidate in &self.candidates[range] {
                match candidate.job {
                    Some(job) => jobs.push((job, rank(candidate))),
                    None => sum += rank(candidate),
                }
            }
            jobs.sort_unstable_by_key(|&(job, rank)| (job, Reverse(rank)));
            jobs.dedup_by_key(|(job, _)| *job);
            sum + jobs.iter().map(|(_, rank)| rank).sum::<usize>()
        };
        self.starts.windows(2).map(|bounds| cost(bounds[0]..bounds[1])).collect()
    }
}

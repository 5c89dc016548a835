//! Minimizes a configuration that violates an invariant.

use crate::faults::Fault;
use crate::invariants::{Violation, check};
use crate::virtual_cluster::RunConfig;

/// The smallest configuration found that violates the same invariant.
#[derive(Clone, Debug)]
pub struct MinimizedFailure {
    /// The remaining configuration.
    pub setup: RunConfig,
    /// The indices of the remaining submissions in the original configuration.
    pub kept: Vec<usize>,
    /// The violation in the remaining configuration.
    pub violation: Violation,
}

/// Removes kinds of faults, then submissions, then kinds of faults again, as long as the same invariant is violated. `kept` are the indices of
/// the submissions of `setup` in the original configuration; `runs` limits the number of runs.
pub fn shrink(setup: RunConfig, kept: Vec<usize>, violation: Violation, mut runs: usize) -> MinimizedFailure {
    let mut shrunk = MinimizedFailure { setup, kept, violation };
    shrunk.remove_faults(&mut runs);
    let mut size = shrunk.kept.len().div_ceil(2);
    while size > 0 {
        let mut index = 0;
        while index < shrunk.kept.len() && shrunk.kept.len() > 1 {
            let end = (index + size).min(shrunk.kept.len());
            let mut smaller = shrunk.setup.clone();
            smaller.submissions.drain(index..end);
            let mut kept = shrunk.kept.clone();
            kept.drain(index..end);
            if !shrunk.keep_if_violated(smaller, Some(kept), &mut runs) {
                index = end;
            }
        }
        size /= 2;
    }
    shrunk.remove_faults(&mut runs);
    shrunk
}

impl MinimizedFailure {
    fn remove_faults(&mut self, runs: &mut usize) {
        for &kind in Fault::ALL {
            let mut smaller = self.setup.clone();
            *smaller.faults.rate(kind) = 0;
            self.keep_if_violated(smaller, None, runs);
        }
    }

    fn keep_if_violated(&mut self, smaller: RunConfig, kept: Option<Vec<usize>>, runs: &mut usize) -> bool {
        let unchanged =
            smaller.faults == self.setup.faults && smaller.submissions.len() == self.setup.submissions.len();
        if unchanged || *runs == 0 {
            return false;
        }
        *runs -= 1;
        match check(smaller.clone()) {
            Err(violation) if violation.invariant == self.violation.invariant => {
                (self.setup, self.violation) = (smaller, violation);
                self.kept = kept.unwrap_or_else(|| std::mem::take(&mut self.kept));
                true
            }
            _ => false,
        }
    }
}

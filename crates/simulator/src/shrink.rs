//! A setup in which an invariant is violated, made as small as it can be with that still so.

use crate::faults::Fault;
use crate::invariants::{Violation, check};
use crate::virtual_cluster::RunConfig;

/// What is left of a setup.
#[derive(Clone, Debug)]
pub struct MinimizedFailure {
    /// The setup.
    pub setup: RunConfig,
    /// Which of its submissions are left, by their place among all.
    pub kept: Vec<usize>,
    /// What is violated in it.
    pub violation: Violation,
}

/// Leaves out kinds of faults, then submissions, then kinds of faults again, as long as the same invariant is violated. `kept` are the
/// submissions of the setup, by their place among all; at most so many runs are tried.
pub fn shrink(setup: RunConfig, kept: Vec<usize>, violation: Violation, mut runs: usize) -> MinimizedFailure {
    let mut shrunk = MinimizedFailure { setup, kept, violation };
    shrunk.leave_out_faults(&mut runs);
    let mut size = shrunk.kept.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < shrunk.kept.len() && shrunk.kept.len() > 1 {
            let end = (at + size).min(shrunk.kept.len());
            let mut smaller = shrunk.setup.clone();
            smaller.submissions.drain(at..end);
            let mut kept = shrunk.kept.clone();
            kept.drain(at..end);
            if !shrunk.take_if_violated(smaller, Some(kept), &mut runs) {
                at = end;
            }
        }
        size /= 2;
    }
    shrunk.leave_out_faults(&mut runs);
    shrunk
}

impl MinimizedFailure {
    fn leave_out_faults(&mut self, runs: &mut usize) {
        for &kind in Fault::ALL {
            let mut smaller = self.setup.clone();
            *smaller.faults.rate(kind) = 0;
            self.take_if_violated(smaller, None, runs);
        }
    }

    fn take_if_violated(&mut self, smaller: RunConfig, kept: Option<Vec<usize>>, runs: &mut usize) -> bool {
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

//! A setup in which an invariant is violated, made as small as it can be with that still so.

use crate::faults::Faults;
use crate::invariants::{Violation, check};
use crate::world::Setup;

/// What is left of a setup.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The setup.
    pub setup: Setup,
    /// Which of its submissions are left, by their place among all.
    pub kept: Vec<usize>,
    /// What is violated in it.
    pub violation: Violation,
}

/// Leaves out faults, then submissions, as long as the same invariant is violated. `kept` are the submissions of the setup, by their
/// place among all; at most so many runs are tried.
pub fn shrink(setup: Setup, kept: Vec<usize>, violation: Violation, mut runs: usize) -> Shrunk {
    let mut shrunk = Shrunk { setup, kept, violation };
    for without in kinds() {
        let mut smaller = shrunk.setup.clone();
        without(&mut smaller.faults);
        shrunk.take_if_violated(smaller, None, &mut runs);
    }
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
    shrunk
}

impl Shrunk {
    fn take_if_violated(&mut self, smaller: Setup, kept: Option<Vec<usize>>, runs: &mut usize) -> bool {
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

/// Each kind of fault, to be left out.
fn kinds() -> [fn(&mut Faults); 10] {
    [
        |faults| faults.lost_events = 0,
        |faults| faults.repeated_events = 0,
        |faults| faults.delayed_events = 0,
        |faults| faults.conflicts = 0,
        |faults| faults.failures = 0,
        |faults| faults.lost_answers = 0,
        |faults| faults.lost_requests = 0,
        |faults| faults.slow_victims = 0,
        |faults| faults.lost_nodes = 0,
        |faults| faults.restarts = 0,
    ]
}

//! In which order candidates are taken: as the preemptor's queue says, and of equals the cheaper to disturb before the rest.

use std::cmp::Reverse;

use crate::fraction::Fraction;
use crate::ids::{Timestamp, WorkloadId};
use crate::policy::kueue::Search;
use crate::workloads::{ByPriority, ByRuntime, Milestone};

/// Where a candidate stands among all; the least is taken first.
pub(super) type Order = (bool, bool, bool, i32, DisruptionCost, Reverse<i64>, i32, u64);

impl Search<'_> {
    /// Already evicted; preferred; of another queue; then lower priority, cheaper to disturb and later admitted, as far as the queue
    /// asks for that and in its order; then by uid. (Rule 15 of the flat cohorts where the queue asks for nothing else.)
    pub(super) fn order(&self, id: WorkloadId) -> Order {
        let workload = self.snapshot.workload(id);
        let admission = workload.admission.as_ref().expect("a candidate holds quota");
        let sorting = self.snapshot.quota_rules().queues[self.queue.index()].sorting;
        let priority = workload.priority.0;
        let (first, last) = match sorting.priority {
            ByPriority::First => (priority, 0),
            ByPriority::Last => (0, priority),
            ByPriority::Never => (0, 0),
        };
        let runtime = match sorting.runtime {
            ByRuntime::Lowest => Reverse(admission.since.0),
            ByRuntime::Longest => Reverse(-admission.since.0),
            ByRuntime::Never => Reverse(0),
        };
        let cost = DisruptionCost::at(&workload.milestones, admission.since, self.now);
        let own = workload.queue == Some(self.queue);
        (!admission.evicted, !self.prefers(id), own, first, cost, runtime, last, workload.rank)
    }
}

/// What it costs to disturb a workload; `None` is nothing. Boxed, because few have one and all are moved about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DisruptionCost(Option<Box<Fraction>>);

impl DisruptionCost {
    /// The cost rises or falls evenly from one milestone to the next, from nothing at the start, and stays as it is after the last.
    /// INVARIANT: the milestones are in the order of their times, no two at one time.
    fn at(milestones: &[Milestone], since: Timestamp, now: Timestamp) -> Self {
        const SECOND: i128 = 1_000_000;
        let ran = (i128::from(now.0) - i128::from(since.0)).max(0);
        let time = |milestone: &Milestone| i128::from(milestone.seconds) * SECOND;
        let next = milestones.iter().position(|milestone| time(milestone) > ran);
        let cost = |milestone: &Milestone| i128::from(milestone.cost);
        match (next, milestones.last()) {
            (_, None) => Self(None),
            (None, Some(last)) => Self::of(cost(last), 1),
            (Some(at), _) => {
                let (end, end_cost) = (time(&milestones[at]), cost(&milestones[at]));
                let before = at.checked_sub(1).map(|at| &milestones[at]);
                let (start, start_cost) = before.map_or((0, 0), |before| (time(before), cost(before)));
                Self::of(start_cost * (end - ran) + end_cost * (ran - start), end - start)
            }
        }
    }

    fn of(numerator: i128, denominator: i128) -> Self {
        Self((numerator > 0).then(|| Box::new(Fraction { numerator, denominator })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_exact_between_milestones_and_stays_after_the_last() {
        let milestones = [Milestone { seconds: 60, cost: 100 }, Milestone { seconds: 600, cost: 0 }];
        for (ran_micros, numerator, denominator) in [
            (0, 0, 1),
            (30_000_000, 50, 1),
            (60_000_000, 100, 1),
            (20_000_000, 100, 3), // a third of the way: no decimal number says it
            (330_000_000, 50, 1),
            (600_000_000, 0, 1),
            (9_000_000_000, 0, 1),
        ] {
            let cost = DisruptionCost::at(&milestones, Timestamp(0), Timestamp(ran_micros));
            assert_eq!(cost, DisruptionCost::of(numerator, denominator), "{ran_micros}");
        }
        assert_eq!(DisruptionCost::at(&[], Timestamp(0), Timestamp(1)), DisruptionCost(None));
        assert!(DisruptionCost(None) < DisruptionCost::of(1, i128::from(i64::MAX)));
    }
}

//! The order in which candidates are taken: as the preemptor's queue configures it.

use std::cmp::Reverse;

use crate::fraction::Fraction;
use crate::ids::{Timestamp, WorkloadId};
use crate::policy::kueue::Search;
use crate::workloads::{ByPriority, ByRuntime, Milestone};

/// The sort key of a candidate, in the order of K15; the least is taken first. The priority is in the first or the last of the two places for
/// it, and 0 in the other.
pub(super) type Order = (bool, bool, bool, i32, DisruptionCost, Reverse<i64>, i32, u64);

impl Search<'_> {
    /// docs/rules/kueue.md#k15: evicted, then preferred, then of another queue, then lower priority, lower disruption cost and later
    /// admission as configured, then by UID.
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
        let preferred = self.preferred.get(id.index()).copied().unwrap_or_default();
        (!admission.evicted, !preferred, own, first, cost, runtime, last, workload.rank)
    }
}

/// The cost of disrupting a workload; `None` is zero. Boxed, because few workloads have one and keys are moved often.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DisruptionCost(Option<Box<Fraction>>);

impl DisruptionCost {
    /// Interpolates linearly between milestones, from zero at the start; constant after the last. INVARIANT: milestones are sorted by time,
    /// and no two have the same time.
    fn at(milestones: &[Milestone], since: Timestamp, now: Timestamp) -> Self {
        const SECOND: i128 = 1_000_000;
        let ran = (i128::from(now.0) - i128::from(since.0)).max(0);
        let time = |milestone: &Milestone| i128::from(milestone.seconds) * SECOND;
        let next = milestones.iter().position(|milestone| time(milestone) > ran);
        let cost = |milestone: &Milestone| i128::from(milestone.cost);
        match (next, milestones.last()) {
            (_, None) => Self(None),
            (None, Some(last)) => Self::of(cost(last), 1),
            (Some(index), _) => {
                let (end, end_cost) = (time(&milestones[index]), cost(&milestones[index]));
                let before = index.checked_sub(1).map(|index| &milestones[index]);
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
            (20_000_000, 100, 3), // a third of the way: not a finite decimal number
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

//! Builds plans and compares their costs. The searches call it; `decision` has the types.

use std::cmp::Reverse;

use crate::candidates::Candidate;
use crate::fit::Placement;
use crate::ids::{Priority, Timestamp, UnitId};
use crate::snapshot::Snapshot;

pub use crate::decision::{Cost, Difference, Plan};
use crate::decision::{EvictionReason, PreemptionReason};

impl Plan {
    /// A plan that evicts pods, each for the reason that `reason` returns.
    pub(crate) fn new(
        snapshot: &Snapshot,
        placement: Placement,
        mut victims: Vec<Candidate>,
        reason: impl Fn(UnitId) -> EvictionReason,
    ) -> Self {
        victims.sort_unstable_by_key(|victim| snapshot.importance(victim.unit));
        let mut cost = Cost::NOTHING;
        for victim in &victims {
            cost.add(snapshot, victim.unit, victim.violations);
        }
        let victims: Vec<UnitId> = victims.into_iter().map(|victim| victim.unit).collect();
        let reasons = victims.iter().map(|&unit| reason(unit)).collect();
        Self { placement, victims, cost, reasons, second_order: None }
    }

    /// A plan that evicts workloads to free quota, without a placement.
    pub(crate) fn of_workloads(snapshot: &Snapshot, victims: Vec<UnitId>, reasons: Vec<PreemptionReason>) -> Self {
        let mut cost = Cost::NOTHING;
        for &unit in &victims {
            let unit = snapshot.unit(unit);
            cost.add_pods(unit.priority, 1, unit.start, 0);
        }
        let reasons = reasons.into_iter().map(EvictionReason::Quota).collect();
        Self { placement: Placement::new(), victims, cost, reasons, second_order: None }
    }

    /// docs/rules/kubernetes-groups.md#g28: the cost with the evictions that returning victims cause. The highest priority and the
    /// earliest start are those of the plan's own victims.
    pub fn total_cost(&self) -> Cost {
        let Some(second) = &self.second_order else { return self.cost };
        Cost {
            violations: self.cost.violations + second.violations,
            weight: self.cost.weight + second.weight,
            pods: self.cost.pods + second.pods,
            ..self.cost
        }
    }
}

impl Cost {
    /// The cost of a plan without victims.
    pub const NOTHING: Self =
        Self { violations: 0, top: Priority(i32::MIN), weight: 0, pods: 0, oldest: Reverse(Timestamp::NOT_STARTED) };

    /// More than any plan without a budget violation can cost.
    pub(crate) const MAX: Self = Self { top: Priority(i32::MAX), weight: i64::MAX, ..Self::NOTHING };

    /// Adds a unit with `violations` pods that violate a budget.
    pub(crate) fn add(&mut self, snapshot: &Snapshot, unit: UnitId, violations: usize) {
        let unit = snapshot.unit(unit);
        self.add_pods(unit.priority, unit.pods.len(), unit.start, violations);
    }

    #[inline]
    pub(crate) fn add_pods(&mut self, priority: Priority, pods: usize, start: Timestamp, violations: usize) {
        if self.pods == 0 || priority > self.top {
            (self.top, self.oldest) = (priority, Reverse(start));
        } else if priority == self.top {
            self.oldest = self.oldest.max(Reverse(start));
        }
        self.violations += violations;
        self.weight += pods as i64 * (i64::from(priority.0) + (1 << 31));
        self.pods += pods;
    }
}

impl Cost {
    /// The first field in which this cost differs from the cost of the chosen plan, which is not higher.
    pub(crate) fn difference(&self, chosen: &Self) -> Difference {
        let fields = [
            (self.violations != chosen.violations, Difference::Violations),
            (self.top != chosen.top, Difference::TopPriority),
            (self.weight != chosen.weight, Difference::Weight),
            (self.pods != chosen.pods, Difference::Pods),
            (self.oldest != chosen.oldest, Difference::Start),
        ];
        Difference::first(&fields)
    }
}

impl Difference {
    /// The first criterion that differs.
    pub(crate) fn first(criteria: &[(bool, Self)]) -> Self {
        criteria.iter().find(|(differs, _)| *differs).map_or(Self::FirstByName, |&(_, difference)| difference)
    }
}

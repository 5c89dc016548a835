//! Which plan is best.

use std::cmp::Reverse;

use crate::candidates::Candidate;
use crate::fit::Placement;
use crate::ids::{Priority, Timestamp, UnitId};
use crate::policy::kueue::Ground;
use crate::snapshot::Snapshot;

/// A placement of the preemptor, the victims it takes, and what they cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the preemptor's pods go.
    pub placement: Placement,
    /// Who yields, most important first.
    pub victims: Vec<UnitId>,
    /// What that costs.
    pub cost: Cost,
    /// For each victim, on what ground it is taken, under a policy that has several.
    pub grounds: Vec<Ground>,
}

impl Plan {
    pub(crate) fn new(snapshot: &Snapshot, placement: Placement, mut victims: Vec<Candidate>) -> Self {
        victims.sort_unstable_by_key(|victim| snapshot.importance(victim.unit));
        let mut cost = Cost::NOTHING;
        for victim in &victims {
            cost.add(snapshot, victim.unit, victim.violations);
        }
        let victims = victims.into_iter().map(|victim| victim.unit).collect();
        Self { placement, victims, cost, grounds: Vec::new() }
    }

    /// A plan without places: workloads that give up quota.
    pub(crate) fn of_workloads(snapshot: &Snapshot, victims: Vec<UnitId>, grounds: Vec<Ground>) -> Self {
        let mut cost = Cost::NOTHING;
        for &unit in &victims {
            let unit = snapshot.unit(unit);
            cost.add_pods(unit.priority, 1, unit.start, 0);
        }
        Self { placement: Placement::new(), victims, cost, grounds }
    }
}

/// What a plan costs; less is better. The fields are compared in this order. (Rule 17 of the pods, rule 13 of the groups.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Pods that are taken against a disruption budget.
    pub violations: usize,
    /// The highest priority among the victims.
    pub top: Priority,
    /// The sum over all pods of (priority + 2^31).
    pub weight: i64,
    /// How many pods are taken.
    pub pods: usize,
    /// The earliest start among the victims of the highest priority: the later the better.
    pub oldest: Reverse<Timestamp>,
}

impl Cost {
    /// The cost of taking nobody.
    pub const NOTHING: Self =
        Self { violations: 0, top: Priority(i32::MIN), weight: 0, pods: 0, oldest: Reverse(Timestamp::NOT_YET) };

    /// More than anything without a budget violation can cost.
    pub(crate) const MOST: Self = Self { top: Priority(i32::MAX), weight: i64::MAX, ..Self::NOTHING };

    /// Adds a unit, of which so many pods are taken against a budget.
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

/// Why a plan was not chosen although it would do: the first criterion in which it differs from the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// None: both cost the same, and the chosen place is the first by name.
    FirstByName,
    /// None: both cost the same, and the preemptor is nominated to the chosen place.
    Nominated,
    /// More pods count against a disruption budget.
    Violations,
    /// A victim has a higher priority.
    TopPriority,
    /// The sum over all pods of (priority + 2^31) is higher.
    Weight,
    /// More pods are taken.
    Pods,
    /// The victims of the highest priority started earlier.
    Start,
    /// A victim opted out of being preempted.
    OptedOut,
    /// A victim is the first pod of its application.
    Originator,
    /// Pods would have to leave this node; the chosen one has room, and only quota is short.
    NoRoom,
}

impl Difference {
    /// Whether both plans cost the same.
    pub fn is_equal_cost(self) -> bool {
        match self {
            Self::FirstByName | Self::Nominated => true,
            Self::Violations
            | Self::TopPriority
            | Self::Weight
            | Self::Pods
            | Self::Start
            | Self::OptedOut
            | Self::Originator
            | Self::NoRoom => false,
        }
    }
}

impl Cost {
    /// The first field in which this cost differs from that of the chosen plan, which is no higher.
    pub(crate) fn difference(&self, chosen: &Self) -> Difference {
        let fields = [
            (self.violations != chosen.violations, Difference::Violations),
            (self.top != chosen.top, Difference::TopPriority),
            (self.weight != chosen.weight, Difference::Weight),
            (self.pods != chosen.pods, Difference::Pods),
            (self.oldest != chosen.oldest, Difference::Start),
        ];
        let first = fields.into_iter().find(|(differs, _)| *differs);
        first.map_or(Difference::FirstByName, |(_, difference)| difference)
    }
}

/// The cheaper of two; on a tie the earlier stays.
pub(crate) fn cheaper(best: Option<Plan>, plan: Plan) -> Option<Plan> {
    match best {
        Some(best) if best.cost <= plan.cost => Some(best),
        Some(_) | None => Some(plan),
    }
}

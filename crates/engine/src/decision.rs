//! What is decided: the outcome, the plan behind it and what the plan costs.

use std::cmp::Reverse;

use crate::fit::Placement;
use crate::ids::{FlavorId, FlavorResourceId, Priority, QuotaResourceId, Timestamp, UnitId};
use crate::laws::Law;

/// An outcome, and what a workload is given by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What comes of it.
    pub outcome: Outcome,
    /// Set for a workload where the outcome is `Schedule` or `Preempt`.
    pub assignment: Option<Assignment>,
}

impl From<Outcome> for Decision {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, assignment: None }
    }
}

/// What comes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It fits now, with no victim.
    Schedule(Placement),
    /// It fits once exactly these victims are gone.
    Preempt(Plan),
    /// Nothing new may be preempted for it now.
    Wait(Law),
    /// No lawful set of victims makes it fit, or it may not preempt.
    Unschedulable(Option<Law>),
}

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
    pub reasons: Vec<PreemptionReason>,
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
        matches!(self, Self::FirstByName | Self::Nominated)
    }
}

/// On what ground a workload is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptionReason {
    /// At home, by priority.
    InClusterQueue,
    /// It holds what was lent.
    InCohortReclamation,
    /// The preemptor borrows, and it is low enough.
    InCohortReclaimWhileBorrowing,
    /// Its queue has the larger share.
    InCohortFairSharing,
}

/// What a workload is given, or will be once its victims are gone: what its `status.admission` will say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// By pod set, in the workload's order.
    pub pod_sets: Vec<PodSetAssignment>,
    /// How much of each cell of quota, over all pod sets.
    pub usage: Vec<(FlavorResourceId, i64)>,
    /// How many cohorts up it borrows; 0 where its queue's own quota will do.
    pub borrowing: usize,
}

/// What a pod set is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSetAssignment {
    /// How many pods; fewer than it asks for under partial admission.
    pub count: i64,
    /// Each resource that it asks for.
    pub resources: Vec<AssignedResource>,
}

/// A resource of a pod set, with the flavor that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedResource {
    /// The resource.
    pub resource: QuotaResourceId,
    /// Its flavor.
    pub flavor: FlavorId,
    /// How much, for all pods of the set.
    pub amount: i64,
}

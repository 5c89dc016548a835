//! The result of a decision: the outcome, the plan behind it, and the cost of the plan.

use std::cmp::Reverse;

use crate::fit::Placement;
use crate::ids::{FlavorId, FlavorResourceId, Priority, QueueId, QuotaResourceId, Timestamp, UnitId};
use crate::laws::Law;

/// An outcome, and the quota that a workload gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The outcome.
    pub outcome: Outcome,
    /// Set for a workload where the outcome is `Schedule` or `Preempt`.
    pub assignment: Option<Assignment>,
}

impl From<Outcome> for Decision {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, assignment: None }
    }
}

/// The outcome for one preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The preemptor fits without victims.
    Schedule(Placement),
    /// The preemptor fits after the victims of the plan are evicted.
    Preempt(Plan),
    /// The preemptor must wait before it may preempt.
    Wait(Law),
    /// No set of victims that the laws allow makes the preemptor fit, or the preemptor may not preempt.
    Unschedulable(Option<Law>),
}

/// A placement, its victims, and their cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The nodes of the preemptor's pods.
    pub placement: Placement,
    /// The victims, most important first.
    pub victims: Vec<UnitId>,
    /// The cost of the victims.
    pub cost: Cost,
    /// For each victim the reason for its eviction.
    pub reasons: Vec<EvictionReason>,
    /// What the victims evict when they return; `None` if that was not decided.
    pub second_order: Option<SecondOrder>,
}

/// docs/rules/kubernetes-groups.md#g28: the evictions that the returning victims of a plan cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecondOrder {
    /// The number of pods that violate a disruption budget.
    pub violations: usize,
    /// The sum over all pods of (priority + 2^31).
    pub weight: i64,
    /// The number of evicted pods.
    pub pods: usize,
    /// The evicted units, in the order of their eviction.
    pub evictions: Vec<SecondOrderEviction>,
}

/// An eviction for a victim that returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondOrderEviction {
    /// The victim of the plan that returns; the first one if several return together as a group.
    pub returning: UnitId,
    /// The unit that it evicts.
    pub evicted: UnitId,
}

/// docs/rules/kubernetes-pods.md#p17, docs/rules/kubernetes-groups.md#g13: the cost of a plan; less is better. The fields are compared in
/// this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// The number of pods that violate a disruption budget.
    pub violations: usize,
    /// The highest priority among the victims.
    pub top: Priority,
    /// The sum over all pods of (priority + 2^31).
    pub weight: i64,
    /// The number of victim pods.
    pub pods: usize,
    /// The earliest start among the victims of the highest priority; later is better.
    pub oldest: Reverse<Timestamp>,
}

/// The first criterion in which a feasible plan differs from the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// None: the costs are equal, and the chosen node or domain is first by name.
    FirstByName,
    /// None: the costs are equal, and the preemptor is nominated to the chosen node.
    Nominated,
    /// More pods violate a disruption budget.
    Violations,
    /// A victim has a higher priority.
    TopPriority,
    /// The sum over all pods of (priority + 2^31) is higher.
    Weight,
    /// More pods are taken.
    Pods,
    /// The victims of the highest priority started earlier.
    Start,
    /// A victim opted out of preemption.
    OptedOut,
    /// A victim is the first pod of its application.
    Originator,
    /// The node has no room; the chosen node has, and only quota is short.
    NoRoom,
    /// What returning victims evict was not decided for this plan, because enough plans were judged before it.
    NotJudged,
}

impl Difference {
    /// Whether the costs are equal.
    pub fn is_equal_cost(self) -> bool {
        matches!(self, Self::FirstByName | Self::Nominated)
    }
}

/// Why a unit is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionReason {
    /// Its priority is below that of the preemptor.
    LowerPriority,
    /// Its queue has no guarantee.
    NoGuarantee {
        /// The queue.
        queue: QueueId,
    },
    /// Its queue uses more than its guarantee.
    OverGuarantee {
        /// The queue.
        queue: QueueId,
    },
    /// The preemptor is a DaemonSet pod, which can run on no other node.
    DaemonNeedsNode,
    /// The unit is a workload, and the preemptor needs its quota.
    Quota(PreemptionReason),
}

/// Why a workload is preempted; the names are Kueue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptionReason {
    /// By priority in the preemptor's ClusterQueue.
    InClusterQueue,
    /// Its queue borrows quota that the preemptor's side lent.
    InCohortReclamation,
    /// The preemptor borrows, and the priority of the victim is low enough.
    InCohortReclaimWhileBorrowing,
    /// Its branch has a larger fair share.
    InCohortFairSharing,
}

/// The quota that a workload gets now or after its victims are evicted; the content of its `status.admission`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The assignments of the pod sets, in the workload's order.
    pub pod_sets: Vec<PodSetAssignment>,
    /// The total of each flavor and resource over all pod sets.
    pub usage: Vec<(FlavorResourceId, i64)>,
    /// The borrowing level: the number of cohorts above its queue from which it borrows; 0 if the queue's own quota is enough.
    pub borrowing: usize,
}

/// The assignment of one pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSetAssignment {
    /// The number of pods; fewer than the pod set has under partial admission.
    pub count: i64,
    /// Its requested resources.
    pub resources: Vec<AssignedResource>,
}

/// A resource of a pod set and its flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedResource {
    /// The resource.
    pub resource: QuotaResourceId,
    /// The flavor that provides the resource.
    pub flavor: FlavorId,
    /// The amount for all pods of the set.
    pub amount: i64,
}

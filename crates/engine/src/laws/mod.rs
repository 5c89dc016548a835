//! The laws, and those that more than one policy uses, one file each. A law spares a candidate or refuses a preemptor, and every refusal names its law.

pub mod in_progress;
pub mod never;
pub(crate) mod obstacle;
pub mod opt_out;
pub mod priority;
pub(crate) mod protected;
pub mod toleration;
pub mod unknown_class;

use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, Priority, QueueId, ResourceId, ShareMilli, TextId, Timestamp, UnitId};
use crate::snapshot::Snapshot;

/// A resource of a guarantee of which less is left than is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLittle {
    /// The resource.
    pub resource: ResourceId,
    /// How much is left; negative where more than the guarantee is in use.
    pub left: i64,
    /// How much the pod asks for.
    pub asked: i64,
}

/// What a member and its group disagree about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Their priorities.
    Priority {
        /// The member's.
        member: Priority,
        /// The group's.
        group: Priority,
    },
    /// Whether they may preempt.
    Preempting {
        /// Whether the member may.
        member: bool,
        /// Whether the group may.
        group: bool,
    },
}

/// A named rule by which a unit is spared or a preemptor refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// The candidate's priority is not below the preemptor's.
    Priority {
        /// The candidate's priority when it is asked to yield.
        candidate: Priority,
    },
    /// A pod of the candidate tolerates preemption by this preemptor.
    Toleration {
        /// The pod that does.
        pod: PodId,
        /// When it ends; `None` is never.
        until: Option<Timestamp>,
    },
    /// A pod of the candidate opted out.
    OptOut {
        /// The pod that did.
        pod: PodId,
    },
    /// Its namespace is protected.
    ProtectedNamespace,
    /// A lower pod on the node names a priority class that nothing defines: its rights are unknown, so nothing is taken there.
    UnknownPriorityClass {
        /// That pod.
        pod: PodId,
    },
    /// The preemptor's `preemptionPolicy` is `Never`.
    PreemptionPolicyNever,
    /// The preemptor, or so many of its pods that too few are left, has scheduling gates: it asks for nothing yet.
    SchedulingGates {
        /// The first pod with gates.
        pod: PodId,
        /// Its gates.
        gates: Vec<TextId>,
        /// How many pods of the preemptor have gates.
        gated: usize,
    },
    /// So many members of the preemptor name another scheduler that too few are left.
    OtherScheduler {
        /// The first of them.
        pod: PodId,
        /// How many there are.
        members: usize,
    },
    /// The preemptor has a requirement that no decision evaluates.
    Unsupported {
        /// The pod that has it; `None` where it is not a pod's.
        pod: Option<PodId>,
        /// The field.
        field: TextId,
    },
    /// A member's priority or `preemptionPolicy` is not its group's.
    GroupMismatch {
        /// The member.
        member: PodId,
        /// What they disagree about.
        about: Mismatch,
    },
    /// The candidate is of the preemptor's own job.
    SameJob,
    /// The candidate cannot be preempted, by its label or by default.
    NotPreemptible,
    /// The preemptor does not say that it may preempt, which is required.
    CanPreemptLabelMissing,
    /// The preemptor's job has fewer pods than it needs.
    TooFewMembers {
        /// How many it has.
        members: usize,
        /// How many it needs.
        needed: usize,
    },
    /// The preemptor's job would pass a limit of its quota, or of one above it.
    QuotaLimit {
        /// The quota.
        queue: QueueId,
        /// Every resource of which it would pass the limit, and by how much.
        over: Vec<(ResourceId, i64)>,
    },
    /// The workload was deactivated: it asks for no quota.
    Inactive,
    /// The workload's queue takes none of its namespace.
    NamespaceNotSelected {
        /// The queue.
        queue: QueueId,
    },
    /// A request of the workload exceeds its limit, or a LimitRange forbids what its pods ask for.
    InvalidResources,
    /// The workload's queue is in another cohort, or in none.
    OtherCohort,
    /// The workload holds nothing of what is short.
    NotContested,
    /// The queue's own rules forbid to preempt there at all.
    QueuePolicyNever,
    /// The workload's queue, or a cohort above it, uses no more than its own.
    WithinQuota {
        /// That queue or cohort.
        queue: QueueId,
        /// Whether this is so only once workloads are gone that the search has taken from it.
        has_lost: bool,
    },
    /// The strategy of fair sharing does not allow it: the preemptor's share is too large beside that of the workload's side.
    FairShare {
        /// The share of the preemptor's side, with what the preemptor asks for.
        own: ShareMilli,
        /// The queue or cohort that it was compared with.
        queue: QueueId,
        /// The share of that queue or cohort.
        theirs: ShareMilli,
        /// Whether that share is the one without the workload (`LessThanOrEqualToFinalShare`) or with it (`LessThanInitialShare`).
        is_final: bool,
    },
    /// The workload's priority is above the threshold up to which a borrower may preempt.
    AboveThreshold {
        /// The threshold.
        threshold: Priority,
    },
    /// Law 4: the preemptor's queue has not enough left of its guarantee.
    NotUnderGuarantee {
        /// The queue.
        queue: QueueId,
        /// Every asked resource of which too little is left; empty where no guarantee is about what is asked for.
        short: Vec<TooLittle>,
    },
    /// The candidate is larger than what is left of the guarantee by which the preemptor takes.
    ExceedsGuaranteeHeadroom {
        /// The preemptor's queue.
        queue: QueueId,
        /// Every resource of which the candidate has more than is left; empty where there is no guarantee.
        short: Vec<TooLittle>,
    },
    /// Law 5: the candidate's queue is not over its guarantee.
    NotOverGuarantee {
        /// The queue.
        queue: QueueId,
        /// The asked resource of which least is left, and how much; `None` where no guarantee is about what is asked for.
        left: Option<(ResourceId, i64)>,
    },
    /// Law 2: taking the candidate would leave a queue under its guarantee.
    WouldBreakGuarantee {
        /// The queue.
        queue: QueueId,
        /// The resource that it would have too little of.
        resource: ResourceId,
        /// What it is guaranteed.
        guarantee: i64,
        /// What it would have.
        after: i64,
    },
    /// Law 6: the candidate's priority is higher than the preemptor's, seen through the queues in between.
    HigherPriority {
        /// The candidate's priority.
        candidate: Priority,
        /// Up to which priority its queue yields; `None` where it yields nobody.
        limit: Option<Priority>,
    },
    /// Law 7: the candidate is outside the preemptor's fence.
    Fence {
        /// The queue that is the fence.
        root: Option<QueueId>,
    },
    /// Law 3, which holds for the whole queue: the candidate is in the preemptor's own.
    SameQueue,
    /// The candidate's queue yields nobody.
    QueueDisabled {
        /// The queue.
        queue: QueueId,
    },
    /// The pod is in no queue.
    NoQueue,
    /// The candidate belongs to a DaemonSet.
    DaemonSet,
    /// The candidate is leaving already.
    Terminating,
    /// Preemption is switched off.
    PreemptionDisabled,
    /// The preemptor has not waited long enough.
    PreemptionDelay {
        /// When it will have.
        until: Timestamp,
    },
    /// The preemptor would take a queue over its ceiling.
    QueueLimit {
        /// The queue.
        queue: QueueId,
    },
    /// The node is reserved for another pod.
    NodeReserved {
        /// That pod.
        pod: PodId,
    },
    /// An earlier preemption for it is still under way.
    PreemptionInProgress {
        /// The victims that are still leaving.
        leaving: Vec<PodId>,
        /// The nodes they leave.
        nodes: Vec<NodeId>,
        /// When the last one's grace ends.
        until: Timestamp,
    },
}

impl Law {
    /// Whether the law refuses the preemptor because of what it is, so that no room and no victim would help.
    pub fn is_obstacle(&self) -> bool {
        matches!(self, Self::SchedulingGates { .. } | Self::OtherScheduler { .. } | Self::Unsupported { .. })
    }
}

/// The law that spares a unit from this preemptor, if there is one.
pub fn spares(snapshot: &Snapshot, ask: &Preemptor, unit: UnitId, now: Timestamp) -> Option<Law> {
    let unit = snapshot.unit(unit);
    priority::spares(unit, ask).or_else(|| {
        if !unit.shielded {
            return None;
        }
        protected::spares(snapshot, unit)
            .or_else(|| opt_out::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, ask, now))
    })
}

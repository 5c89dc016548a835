//! The table of laws, and the laws that several policies share, one file each. A law is a named rule that spares a candidate (`spares`) or
//! refuses a preemptor (`refuses`); every refusal names its law. Laws of a single policy are in `policy/NAME`; `crates/report` turns a law
//! into text. The rules are in `docs/rules`, and each variant of [`Law`] links to its rule there.

pub mod in_progress;
pub mod never;
pub(crate) mod obstacle;
pub mod opt_out;
pub mod priority;
pub(crate) mod protected;
pub(crate) mod set_aside;
pub mod toleration;
pub mod unknown_class;

use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, Priority, QueueId, ResourceId, ShareMilli, TextId, Timestamp, UnitId};
pub use crate::snapshot::Mismatch;
use crate::snapshot::{QueueRefusal, Snapshot};

/// A guaranteed resource of which less is left than is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLittle {
    /// The resource.
    pub resource: ResourceId,
    /// The part of the guarantee that is not used; negative if the queue uses more than its guarantee.
    pub left: i64,
    /// The amount that the pod requests.
    pub requested: i64,
}

/// A named rule that spares a unit or refuses a preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// The candidate's priority is not below the preemptor's. docs/rules/kubernetes-pods.md#p11, docs/rules/kubernetes-groups.md#g3,
    /// docs/rules/koordinator.md#q1, docs/rules/kueue.md#k13, docs/rules/yunikorn.md#y17
    Priority {
        /// The candidate's priority as a victim.
        candidate: Priority,
    },
    /// A pod of the candidate tolerates preemption by this preemptor. docs/rules/toleration.md#t7, docs/rules/toleration.md#t9
    Toleration {
        /// The pod that tolerates the preemptor.
        pod: PodId,
        /// The end of the toleration; `None` if it has no end.
        until: Option<Timestamp>,
    },
    /// The priority class of a pod of the candidate opted out of preemption. docs/rules/toleration.md#t10
    OptOut {
        /// The pod whose class opted out.
        pod: PodId,
    },
    /// The candidate is in a protected namespace. docs/rules/kubernetes-pods.md#p23
    ProtectedNamespace,
    /// A part of the candidate's object cannot be read, so the laws cannot judge it. docs/rules/kubernetes-pods.md#p24
    SetAside {
        /// The pod that cannot be read; `None` for a workload.
        pod: Option<PodId>,
    },
    /// A lower pod on the node names a priority class that is not defined. Its tolerations are unknown, so no pod on the node is taken.
    /// docs/rules/toleration.md#t3
    UnknownPriorityClass {
        /// The pod with the undefined class.
        pod: PodId,
    },
    /// The preemptor's `preemptionPolicy` is `Never`. docs/rules/kubernetes-pods.md#p2, docs/rules/kubernetes-groups.md#g6,
    /// docs/rules/yunikorn.md#y3, docs/rules/koordinator.md#q2
    PreemptionPolicyNever,
    /// The preemptor has scheduling gates, or too few of its pods have none. docs/rules/kubernetes-pods.md#p22,
    /// docs/rules/kubernetes-groups.md#g22
    SchedulingGates {
        /// The first gated pod.
        pod: PodId,
        /// The gates of that pod.
        gates: Vec<TextId>,
        /// The number of gated pods.
        gated: usize,
    },
    /// Too few members of the preemptor name this scheduler. docs/rules/kubernetes-groups.md#g22
    OtherScheduler {
        /// The first member that names another scheduler.
        pod: PodId,
        /// The number of members that name another scheduler.
        members: usize,
    },
    /// The preemptor has a requirement that the engine does not evaluate. docs/rules/kubernetes-pods.md#p21,
    /// docs/rules/kubernetes-groups.md#g23
    Unsupported {
        /// The pod with the requirement; `None` for a requirement of a group or workload.
        pod: Option<PodId>,
        /// The path of the field.
        field: TextId,
    },
    /// The preemptor may not use the queue that it names. docs/rules/yunikorn.md#y21, docs/rules/koordinator.md#qa8
    QueueRefused {
        /// The pod that names the queue.
        pod: PodId,
        /// The name of the queue.
        queue: TextId,
        /// Why the queue is refused.
        cause: QueueRefusal,
    },
    /// The group that the preemptor names does not exist. docs/rules/kubernetes-groups.md#g26
    GroupMissing {
        /// The pod that names it.
        pod: PodId,
    },
    /// The step budget of the complete search is spent, so whether the members fit is not known. docs/rules/kubernetes-groups.md#g24
    SearchLimit,
    /// A member's priority or `preemptionPolicy` differs from that of its group. docs/rules/kubernetes-groups.md#g20
    GroupMismatch {
        /// The member.
        member: PodId,
        /// The field that differs.
        mismatch: Mismatch,
    },
    /// The candidate belongs to the preemptor's job or gang. docs/rules/koordinator.md#q1, docs/rules/yunikorn.md#y7
    SameJob,
    /// The candidate is not preemptible, by its label or by default. docs/rules/koordinator.md#q1
    NotPreemptible,
    /// A label of the preemptor says that it does not preempt. docs/rules/koordinator.md#q2
    CanPreemptLabelFalse,
    /// The preemptor lacks the label that the policy requires of pods that preempt. docs/rules/koordinator.md#q2
    CanPreemptLabelMissing,
    /// The preemptor's job has fewer pods than it needs. docs/rules/koordinator.md#q7
    TooFewMembers {
        /// The number of pods of the job.
        members: usize,
        /// The job's minimum.
        needed: usize,
    },
    /// The preemptor's job would exceed a limit of its quota or of a quota above it. docs/rules/koordinator.md#q4,
    /// docs/rules/koordinator.md#q5, docs/rules/koordinator.md#q6, docs/rules/koordinator.md#q9
    QuotaLimit {
        /// The quota whose limit would be exceeded.
        queue: QueueId,
        /// Each resource over the limit, and the excess.
        over: Vec<(ResourceId, i64)>,
    },
    /// The workload is deactivated (`spec.active: false`). docs/rules/kueue.md#k22
    Inactive,
    /// The workload's queue does not select its namespace. docs/rules/kueue.md#k22
    NamespaceNotSelected {
        /// The queue.
        queue: QueueId,
    },
    /// A request of the workload exceeds its limit, or violates a LimitRange. docs/rules/kueue.md#k22
    InvalidResources,
    /// The workload's queue is not in the preemptor's cohort tree. docs/rules/kueue.md#k13, docs/rules/kueue-cohorts.md#c10
    OtherCohort,
    /// The workload holds none of the quota that the preemptor lacks. docs/rules/kueue.md#k13, docs/rules/kueue-cohorts.md#c10
    NotContested,
    /// The preemption settings of the preemptor's queue are `Never` for this candidate's queue. docs/rules/kueue.md#k13,
    /// docs/rules/kueue.md#k14
    QueuePolicyNever,
    /// The workload's queue, or a cohort between it and the shared cohort, does not borrow. docs/rules/kueue.md#k13,
    /// docs/rules/kueue.md#k17, docs/rules/kueue-cohorts.md#c14, docs/rules/kueue-cohorts.md#c17, docs/rules/kueue-cohorts.md#c21
    WithinQuota {
        /// The queue or cohort within its quota.
        queue: QueueId,
        /// Whether it borrowed before the search took workloads from it.
        has_lost: bool,
    },
    /// No fair sharing strategy allows the preemption: the preemptor's share is too large compared with that of the candidate's branch.
    /// docs/rules/kueue-cohorts.md#c26, docs/rules/kueue-cohorts.md#c27
    FairShare {
        /// The share of the preemptor's branch, its request included.
        own: ShareMilli,
        /// The candidate's branch below the lowest shared cohort.
        queue: QueueId,
        /// The share of the candidate's branch.
        theirs: ShareMilli,
        /// Whether `theirs` is the share without the candidate (`LessThanOrEqualToFinalShare`) or with it (`LessThanInitialShare`).
        is_final: bool,
    },
    /// The workload's priority is above the queue's `maxPriorityThreshold`. docs/rules/kueue.md#k14, docs/rules/kueue-cohorts.md#c15
    AboveThreshold {
        /// The threshold.
        threshold: Priority,
    },
    /// The preemptor's queue has too little of its guarantee left. docs/rules/yunikorn.md#y10
    NotUnderGuarantee {
        /// The queue.
        queue: QueueId,
        /// Each requested resource of which too little is left; empty if no guarantee covers the request.
        short: Vec<TooLittle>,
    },
    /// The candidate is larger than what is left of the preemptor's guarantee. docs/rules/yunikorn.md#y12
    ExceedsGuaranteeHeadroom {
        /// The preemptor's queue.
        queue: QueueId,
        /// Each resource of which the candidate uses more than is left; empty if there is no guarantee.
        short: Vec<TooLittle>,
    },
    /// The candidate's queue is not over its guarantee. docs/rules/yunikorn.md#y9
    NotOverGuarantee {
        /// The queue.
        queue: QueueId,
        /// The requested resource of which least is left, and that amount; `None` if no guarantee covers the request.
        left: Option<(ResourceId, i64)>,
        /// Whether the search took pods from the queue before.
        has_lost: bool,
    },
    /// Without the candidate, a queue would use less than its guarantee. docs/rules/yunikorn.md#y9
    WouldBreakGuarantee {
        /// The queue.
        queue: QueueId,
        /// The resource below its guarantee.
        resource: ResourceId,
        /// The guarantee.
        guarantee: i64,
        /// The use of the queue without the candidate.
        after: i64,
        /// Whether the search took other pods from the queue before.
        has_lost: bool,
    },
    /// The candidate's priority is above the preemptor's, after the priority offsets and fences of the queues between them.
    /// docs/rules/yunikorn.md#y6
    HigherPriority {
        /// The candidate's priority.
        candidate: Priority,
        /// The highest priority that the candidate's queue loses; `None` if it loses no pod.
        limit: Option<Priority>,
    },
    /// The candidate is outside the preemptor's preemption fence. docs/rules/yunikorn.md#y4
    Fence {
        /// The fenced queue.
        root: Option<QueueId>,
    },
    /// The candidate is in the preemptor's queue. docs/rules/yunikorn.md#y7
    SameQueue,
    /// The candidate is in the preemptor's application, in another queue. docs/rules/yunikorn.md#y7
    SameApplication,
    /// The candidate's gang would be evicted as a whole, and a law spares another pod of the gang. docs/rules/yunikorn.md#y22
    WholeGang {
        /// The other pod.
        member: PodId,
    },
    /// Preemption is disabled for the candidate's queue. docs/rules/yunikorn.md#y5
    QueueDisabled {
        /// The queue.
        queue: QueueId,
    },
    /// The preemptor or the candidate is in no queue. docs/rules/yunikorn.md#y7, docs/rules/yunikorn.md#ya10, docs/rules/kueue.md#k22
    NoQueue,
    /// The candidate belongs to a DaemonSet. docs/rules/yunikorn.md#y7
    DaemonSet,
    /// The candidate is terminating. docs/rules/yunikorn.md#y7
    Terminating,
    /// Preemption is disabled for the partition. docs/rules/yunikorn.md#y3
    PreemptionDisabled,
    /// The preemptor has not waited for the preemption delay. docs/rules/yunikorn.md#y3, docs/rules/kueue.md#k24, docs/rules/kueue.md#k26
    PreemptionDelay {
        /// The end of the delay.
        until: Timestamp,
    },
    /// The preemptor would take a queue over its limit. docs/rules/yunikorn.md#y17
    QueueLimit {
        /// The queue.
        queue: QueueId,
    },
    /// The node is reserved for another pod. docs/rules/yunikorn.md#y13, docs/rules/yunikorn.md#y19
    NodeReserved {
        /// The pod that reserved the node.
        pod: PodId,
    },
    /// An earlier preemption for the preemptor is in progress. docs/rules/kubernetes-pods.md#p3, docs/rules/kubernetes-groups.md#g7,
    /// docs/rules/yunikorn.md#y3, docs/rules/koordinator.md#q12, docs/rules/kueue.md#k23
    PreemptionInProgress {
        /// The victims that are still terminating.
        terminating: Vec<PodId>,
        /// The nodes of those victims.
        nodes: Vec<NodeId>,
        /// The end of the last victim's grace period; `None` if another operator deletes a victim.
        until: Option<Timestamp>,
    },
}

impl Law {
    /// Whether the preemptor itself is the reason, so that neither free resources nor victims would help.
    pub fn is_obstacle(&self) -> bool {
        matches!(
            self,
            Self::SchedulingGates { .. }
                | Self::OtherScheduler { .. }
                | Self::Unsupported { .. }
                | Self::QueueRefused { .. }
                | Self::GroupMissing { .. }
        )
    }
}

/// The first law of policy Kubernetes that spares the unit from this preemptor.
pub fn spares(snapshot: &Snapshot, preemptor: &Preemptor, unit: UnitId, now: Timestamp) -> Option<Law> {
    let unit = snapshot.unit(unit);
    priority::spares(unit, preemptor).or_else(|| {
        if !unit.shielded {
            return None;
        }
        protected::spares(snapshot, unit)
            .or_else(|| set_aside::spares(snapshot, unit))
            .or_else(|| opt_out::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, preemptor, now))
    })
}

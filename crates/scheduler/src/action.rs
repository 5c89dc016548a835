//! The actions that the scheduler requests. Each action but the timer [`Action::WakeAt`] is one request to the Kubernetes API, carried out
//! by the executor (crate `cluster`) or by the simulator's API server; its result comes back as
//! [`Event::ActionCompleted`](crate::event::Event::ActionCompleted).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use reprieve_api::kueue::{AdmissionSpec, KueueWorkload};
pub use reprieve_api::pod::{PREEMPTED as PREEMPTED_VALUE, PREEMPTED_FOR, SOFT_EVICTED, SOFT_EVICTION, VICTIM};
use reprieve_api::{Kind, NamespacedName, ObjectKey};
use reprieve_engine::Timestamp;
use reprieve_engine::policy::kueue::PreemptionReason;
// Each constant is the reason of an event; `STARTED` and `STOPPED` also have its text.
use reprieve_report::planned_actions::{ADMITTED, PREEMPTED, PREEMPTING, SCHEDULED, STARTED, STOPPED};

/// Identifies an action in the event that reports its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionId(pub u64);

/// The object that an action changes. The API server rejects the action if the uid differs; for [`Action::Evict`],
/// workloads and Jobs also if the version differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Namespace and name of the object.
    pub name: NamespacedName,
    /// The uid distinguishes the object from a later one with the same name.
    pub uid: String,
    /// The resourceVersion that the decision was made on.
    pub version: u64,
}

/// The fields of a Job that decide how many pods it creates and on which nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPodSettings {
    /// `spec.parallelism`.
    pub parallelism: i32,
    /// `nodeSelector` of the pod template.
    pub node_selector: BTreeMap<String, String>,
    /// `tolerations` of the pod template.
    pub tolerations: Vec<Toleration>,
}

/// A condition to be written into the status of a pod or a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    /// The type of the condition.
    pub type_: &'static str,
    /// Whether the status is `True`.
    pub holds: bool,
    /// The reason: one word in CamelCase.
    pub reason: &'static str,
    /// The message: the code of a law or wait reason (`docs/laws.md`), alone or followed by a colon and a sentence.
    pub message: String,
    /// The last transition time.
    pub since: Timestamp,
}

/// The reason of a Kubernetes event that the scheduler emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventReason {
    /// A workload received quota.
    Admitted,
    /// A Workload was created for a Job.
    CreatedWorkload,
    /// The decision about a unit panicked.
    DecisionFailed,
    /// A unit cannot be scheduled now.
    FailedScheduling,
    /// A workload is finished: its Job has ended or was changed, or the workload was preempted and is not requeued.
    Finished,
    /// A pod or workload was preempted.
    Preempted,
    /// A unit preempts others.
    Preempting,
    /// A PodGroup asks for a preemption priority that it may not use.
    PreemptionPriorityRefused,
    /// A setting of an object is not valid, so that a default or nothing is used instead.
    InvalidSetting,
    /// An object is invalid and is ignored.
    Refused,
    /// A preempted workload waits for quota again.
    Requeued,
    /// A pod was bound to a node.
    Scheduled,
    /// A Job was started, because its workload was admitted.
    Started,
    /// A Job was suspended, because its workload has no quota.
    Stopped,
}

impl EventReason {
    /// Whether something is wrong: then the type of the event is `Warning`, otherwise `Normal`. Preemption is not wrong; kube-scheduler and
    /// Kueue write `Normal` events about it, too.
    pub const fn is_warning(self) -> bool {
        match self {
            Self::DecisionFailed
            | Self::FailedScheduling
            | Self::InvalidSetting
            | Self::PreemptionPriorityRefused
            | Self::Refused => true,
            Self::Admitted
            | Self::CreatedWorkload
            | Self::Finished
            | Self::Preempted
            | Self::Preempting
            | Self::Requeued
            | Self::Scheduled
            | Self::Started
            | Self::Stopped => false,
        }
    }

    /// The reason as it appears in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => ADMITTED,
            Self::CreatedWorkload => "CreatedWorkload",
            Self::DecisionFailed => "DecisionFailed",
            Self::FailedScheduling => "FailedScheduling",
            Self::Finished => "Finished",
            Self::InvalidSetting => "InvalidSetting",
            Self::Preempted => PREEMPTED,
            Self::Preempting => PREEMPTING,
            Self::PreemptionPriorityRefused => "PreemptionPriorityRefused",
            Self::Refused => "Refused",
            Self::Requeued => "Requeued",
            Self::Scheduled => SCHEDULED,
            Self::Started => STARTED.0,
            Self::Stopped => STOPPED.0,
        }
    }
}

/// A request to the Kubernetes API, or for a timer.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Bind a pod to a node.
    Bind {
        /// The pod to bind.
        pod: Target,
        /// The name of the node.
        node: String,
    },
    /// Set `status.nominatedNodeName` of a pod.
    Nominate {
        /// The pending pod.
        pod: Target,
        /// The name of the node; `None` removes the nomination.
        node: Option<String>,
    },
    /// Mark a pod as a victim, in one patch of the status: set the conditions `DisruptionTarget` and `reprieve.dev/PreemptedFor`, and the
    /// annotation `reprieve.dev/preempted-for`, which is only for people.
    Mark {
        /// The victim.
        pod: Target,
        /// Kind, namespace and name of the preemptor: the message of the condition `reprieve.dev/PreemptedFor`, and the annotation.
        preemptor: String,
        /// The message of the condition.
        message: String,
        /// The time of the decision.
        at: Timestamp,
    },
    /// Remove the mark of a pod that is no longer a victim.
    Unmark {
        /// The marked pod.
        pod: Target,
    },
    /// Write a condition into the status of a pod or a PodGroup.
    SetCondition {
        /// [`Kind::Pod`] or [`Kind::PodGroup`].
        kind: Kind,
        /// The pod or PodGroup.
        object: Target,
        /// The condition to write.
        condition: ConditionUpdate,
    },
    /// Delete a victim with its own grace period.
    Evict {
        /// The victim.
        pod: Target,
    },
    /// Mark a victim, label and annotate it, in one request, so that another operator evicts it.
    SoftEvict {
        /// The victim.
        pod: Target,
        /// Kind, namespace and name of the preemptor: the message of the condition `reprieve.dev/PreemptedFor`, and the annotation.
        preemptor: String,
        /// The message of the condition `DisruptionTarget`.
        message: String,
        /// The value of the annotation that tells the operator about the preemptor.
        note: String,
        /// The time of the decision.
        at: Timestamp,
    },
    /// Create a Workload for a Job.
    CreateWorkload {
        /// The Workload to create.
        workload: Box<KueueWorkload>,
    },
    /// Set the condition `QuotaReserved` of a workload to false, with the reason why it has no quota.
    SetQuotaPending {
        /// The pending workload.
        workload: Target,
        /// The message of the condition.
        message: String,
    },
    /// Give a workload its quota: `status.admission`, and the conditions `QuotaReserved` and `Admitted`.
    Admit {
        /// The pending workload.
        workload: Target,
        /// The ClusterQueue and the flavors that it receives.
        admission: Box<AdmissionSpec>,
    },
    /// Set the conditions `Evicted` and `Preempted` of a workload. The workload keeps its quota until it is requeued.
    EvictWorkload {
        /// The victim.
        workload: Target,
        /// The workload that preempts it.
        preemptor: NamespacedName,
        /// The preemptor in the message of the condition: its name, or its uid.
        shown: String,
        /// The reason of the condition `Preempted`.
        reason: PreemptionReason,
    },
    /// Remove the quota of an evicted workload whose pods are gone, so that it waits for quota again.
    RequeueWorkload {
        /// The evicted workload.
        workload: Target,
    },
    /// Set the condition `Finished` of a workload.
    FinishWorkload {
        /// The workload that gives up its quota for good.
        workload: Target,
        /// The reason of the condition.
        reason: &'static str,
    },
    /// Resume a suspended Job.
    StartJob {
        /// The Job of an admitted workload.
        job: Target,
        /// The settings for the flavors that the workload received.
        settings: JobPodSettings,
    },
    /// Suspend a Job: its controller deletes its pods.
    SuspendJob {
        /// The Job of an evicted workload.
        job: Target,
    },
    /// Restore the settings that a suspended Job was submitted with.
    RestoreJob {
        /// The suspended Job.
        job: Target,
        /// The settings at submission.
        settings: JobPodSettings,
    },
    /// Emit a Kubernetes event.
    EmitEvent {
        /// The object that the event is about (`regarding`).
        about: ObjectKey,
        /// The other object of the event (`related`).
        related: Option<ObjectKey>,
        /// The reason of the event.
        reason: EventReason,
        /// The text of the event (`note`).
        message: String,
    },
    /// Read an object again.
    GetObject {
        /// The object to read.
        key: ObjectKey,
    },
    /// List all objects of a kind again.
    Relist {
        /// The kind to list.
        kind: Kind,
    },
    /// Send [`Event::TimerFired`](crate::event::Event::TimerFired) at this time.
    WakeAt {
        /// The time of the event.
        at: Timestamp,
    },
}

impl Action {
    /// The object that the action changes, if it changes one.
    pub fn changes(&self) -> Option<(Kind, &Target)> {
        match self {
            Self::Bind { pod, .. }
            | Self::Nominate { pod, .. }
            | Self::Mark { pod, .. }
            | Self::Unmark { pod }
            | Self::Evict { pod }
            | Self::SoftEvict { pod, .. } => Some((Kind::Pod, pod)),
            Self::SetCondition { kind, object, .. } => Some((*kind, object)),
            Self::SetQuotaPending { workload, .. }
            | Self::Admit { workload, .. }
            | Self::EvictWorkload { workload, .. }
            | Self::RequeueWorkload { workload }
            | Self::FinishWorkload { workload, .. } => Some((Kind::KueueWorkload, workload)),
            Self::StartJob { job, .. } | Self::SuspendJob { job } | Self::RestoreJob { job, .. } => {
                Some((Kind::Job, job))
            }
            Self::CreateWorkload { .. }
            | Self::EmitEvent { .. }
            | Self::GetObject { .. }
            | Self::Relist { .. }
            | Self::WakeAt { .. } => None,
        }
    }
}

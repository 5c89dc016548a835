//! What the scheduler asks of the world. Each action is one request to a Kubernetes API; its result comes back as an event.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use reprieve_api::kinds::{Kind, ObjectKey};
use reprieve_api::kueue::{AdmissionSpec, KueueWorkload};
use reprieve_api::meta::NamespacedName;
pub use reprieve_api::pod::PREEMPTED_FOR;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::kueue::PreemptionReason;
pub use reprieve_report::planned_actions::SOFT_EVICTION;

/// The number of an action, by which its result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionId(pub u64);

/// Which object is meant, and in what state it must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Its name.
    pub name: NamespacedName,
    /// What sets it apart from others of its name.
    pub uid: String,
    /// Its version.
    pub version: u64,
}

/// How the pods of a Job are to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPodSettings {
    /// How many at a time.
    pub parallelism: i32,
    /// Which nodes they may use.
    pub node_selector: BTreeMap<String, String>,
    /// What they tolerate.
    pub tolerations: Vec<Toleration>,
}

/// A condition of an object's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    /// Which.
    pub type_: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// One word.
    pub reason: &'static str,
    /// What the condition is about: its message begins with it. A condition is rewritten only when this changes.
    pub subject: Cow<'static, str>,
    /// The subject, alone or followed by a colon and a sentence.
    pub message: String,
    /// Since when it holds, or does not.
    pub since: Timestamp,
}

/// A request. Those about workloads and Jobs hold only for the very version that is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Bind a pod to a node.
    Bind {
        /// The pod; its uid must be the same.
        pod: Target,
        /// The node.
        node: String,
    },
    /// Say in a pod's status which node it is meant for, or that it is meant for none.
    Nominate {
        /// The pod; its uid must be the same.
        pod: Target,
        /// The node.
        node: Option<String>,
    },
    /// Say on a victim that it is to yield, with the condition `DisruptionTarget`, and for whom.
    Mark {
        /// The victim; its uid must be the same.
        pod: Target,
        /// For whom.
        preemptor: String,
        /// The condition's message.
        message: String,
        /// When that was decided.
        at: Timestamp,
    },
    /// Take that back.
    Unmark {
        /// The pod; its uid must be the same.
        pod: Target,
    },
    /// Say on a pod or on a PodGroup how it stands with it.
    SetCondition {
        /// Which of the two.
        kind: Kind,
        /// The object; its uid must be the same.
        object: Target,
        /// What is said.
        condition: ConditionUpdate,
    },
    /// Delete a victim with its own grace.
    Evict {
        /// The victim; its uid and its version must be the same.
        pod: Target,
    },
    /// Label a victim so that another operator evicts it.
    SoftEvict {
        /// The victim; its uid must be the same.
        pod: Target,
        /// For whom.
        preemptor: String,
        /// The condition's message.
        message: String,
        /// The label's value.
        label: String,
        /// When that was decided.
        at: Timestamp,
    },
    /// Create a Workload for a Job.
    CreateWorkload {
        /// The workload.
        workload: Box<KueueWorkload>,
    },
    /// Say on a workload that it waits for quota, and why: the condition `QuotaReserved` is false.
    SetQuotaPending {
        /// The workload.
        workload: Target,
        /// Why.
        message: String,
    },
    /// Give a workload its quota: `status.admission`, and the conditions `QuotaReserved` and `Admitted`.
    Admit {
        /// The workload.
        workload: Target,
        /// What it is given.
        admission: Box<AdmissionSpec>,
    },
    /// Say on a workload that it is to yield: the conditions `Evicted` and `Preempted`. It holds its quota until it is requeued.
    EvictWorkload {
        /// The victim.
        workload: Target,
        /// For whom.
        preemptor: NamespacedName,
        /// On what ground.
        ground: PreemptionReason,
    },
    /// Take a workload's quota away, its pods being gone, so that it waits for quota again.
    RequeueWorkload {
        /// The workload.
        workload: Target,
    },
    /// Say on a workload that it is over: the condition `Finished`.
    FinishWorkload {
        /// The workload.
        workload: Target,
        /// One word.
        reason: &'static str,
    },
    /// Let a suspended Job make its pods.
    StartJob {
        /// The Job.
        job: Target,
        /// How.
        settings: JobPodSettings,
    },
    /// Suspend a Job: its controller deletes its pods.
    SuspendJob {
        /// The Job.
        job: Target,
    },
    /// Put back into a suspended Job what it was submitted with.
    RestoreJob {
        /// The Job.
        job: Target,
        /// What that was.
        settings: JobPodSettings,
    },
    /// Record an event about one object that names another.
    EmitEvent {
        /// The object.
        about: ObjectKey,
        /// The other.
        related: Option<ObjectKey>,
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// Read an object anew.
    GetObject {
        /// Which.
        key: ObjectKey,
    },
    /// List all objects of a kind anew.
    Relist {
        /// Which.
        kind: Kind,
    },
    /// Send a `Timer` event at this time.
    WakeAt {
        /// When.
        at: Timestamp,
    },
}

impl Action {
    /// The pod that it changes, if it changes one.
    pub fn pod(&self) -> Option<&Target> {
        self.changes().filter(|(kind, _)| *kind == Kind::Pod).map(|(_, pod)| pod)
    }

    /// The object that it changes, if it changes one.
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

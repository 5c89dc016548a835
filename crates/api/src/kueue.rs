//! Kueue's objects: the fields that a decision reads, in today's words, last version's, and those of the design they come from.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodTemplateSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::meta::object;

object!(
    /// A kind of node that quota is about.
    ResourceFlavor, FlavorSpec);
object!(
    /// A queue with quota.
    ClusterQueue, ClusterQueueSpec);
object!(
    /// Queues, or cohorts, that lend to each other.
    Cohort, CohortSpec);
object!(
    /// A namespace's way to a ClusterQueue.
    LocalQueue, LocalQueueSpec);
object!(
    /// A job that asks for quota or holds it.
    KueueWorkload, KueueWorkloadSpec, KueueWorkloadStatus);
object!(
    /// How important workloads are that name it.
    WorkloadPriorityClass, #[serde(flatten)] WorkloadPriorityClassSpec);

/// The annotation that names a pod's workload.
pub const WORKLOAD: &str = "kueue.x-k8s.io/workload";
/// The label that names its pod set.
pub const POD_SET: &str = "kueue.x-k8s.io/podset";

/// What nodes of a flavor are like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "kueue.x-k8s.io",
        version = "v1beta2",
        kind = "ResourceFlavor",
        root = "ResourceFlavorCrd",
        shortname = "rf"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct FlavorSpec {
    /// Their labels.
    pub node_labels: BTreeMap<String, String>,
    /// Their taints.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
    pub node_taints: Vec<Taint>,
    /// What is tolerated for whoever uses the flavor.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
    pub tolerations: Vec<Toleration>,
    /// The Topology by which Kueue places pods on the flavor's nodes. Reprieve does not evaluate it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_name: Option<String>,
}

/// A queue's quota and rules.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "kueue.x-k8s.io",
        version = "v1beta2",
        kind = "ClusterQueue",
        root = "ClusterQueueCrd",
        shortname = "cq"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterQueueSpec {
    /// The cohort that it lends to and borrows from.
    #[serde(alias = "cohort")]
    pub cohort_name: Option<String>,
    /// Its quota.
    pub resource_groups: Vec<ResourceGroupSpec>,
    /// Of which namespaces it takes workloads: `{}` is all, null none. Left out it is null; in a file, where no example need say it, `{}`.
    #[serde(deserialize_with = "present_or_null")]
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
    pub namespace_selector: Option<Option<LabelSelector>>,
    /// `BestEffortFIFO` or `StrictFIFO`.
    pub queueing_strategy: Option<String>,
    /// Whom it may preempt.
    pub preemption: PreemptionSpec,
    /// How it chooses a flavor.
    pub flavor_fungibility: FlavorFungibilitySpec,
    /// Its weight.
    pub fair_sharing: FairSharingSpec,
    /// The checks that a workload must pass besides its quota. Reprieve does not evaluate them.
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// The same, as the last version has it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub admission_checks: Vec<String>,
    /// `None`, `Hold` or `HoldAndDrain`: whether it admits workloads. Reprieve does not evaluate it.
    pub stop_policy: Option<String>,
    /// How workloads of its LocalQueues share it. Reprieve does not evaluate it.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
    pub admission_scope: Option<Value>,
    /// Whether a workload may try several flavors at once. Reprieve does not evaluate it.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
    pub concurrent_admission_policy: Option<Value>,
}

/// The checks that a workload must pass besides its quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionChecksStrategy {
    /// The checks, each with the flavors that it is for.
    #[serde(deserialize_with = "or_default")]
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
    pub admission_checks: Vec<Value>,
}

/// Nothing, where the API has null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A field that is there, if only as null.
fn present_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A cohort's own quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(feature = "crds", kube(group = "kueue.x-k8s.io", version = "v1beta2", kind = "Cohort", root = "CohortCrd"))]
#[serde(rename_all = "camelCase", default)]
pub struct CohortSpec {
    /// The cohort above it.
    #[serde(alias = "parent", skip_serializing_if = "Option::is_none")]
    pub parent_name: Option<String>,
    /// Its quota.
    pub resource_groups: Vec<ResourceGroupSpec>,
    /// Its weight.
    pub fair_sharing: FairSharingSpec,
}

/// Which ClusterQueue a LocalQueue leads to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "kueue.x-k8s.io",
        version = "v1beta2",
        kind = "LocalQueue",
        root = "LocalQueueCrd",
        namespaced,
        shortname = "lq"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalQueueSpec {
    /// Its name.
    pub cluster_queue: String,
    /// `None`, `Hold` or `HoldAndDrain`: whether it hands on workloads. Reprieve does not evaluate it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_policy: Option<String>,
}

/// Resources that take one flavor together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceGroupSpec {
    /// The resources.
    pub covered_resources: Vec<String>,
    /// The flavors, in order.
    pub flavors: Vec<FlavorQuotas>,
}

/// Quota of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlavorQuotas {
    /// The flavor.
    pub name: String,
    /// By resource.
    pub resources: Vec<ResourceQuota>,
}

/// Quota of one resource of a flavor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuota {
    /// The resource.
    pub name: String,
    /// What it has of its own.
    #[serde(alias = "min")]
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
    pub nominal_quota: Value,
    /// How much it may borrow.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
    pub borrowing_limit: Option<Value>,
    /// How much it lends.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
    pub lending_limit: Option<Value>,
    /// The design's word for what it may use in all.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
    pub max: Option<Value>,
}

/// Whom a queue may preempt.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PreemptionSpec {
    /// At home.
    pub within_cluster_queue: Option<String>,
    /// For what it has lent.
    #[serde(alias = "withinCohort")]
    pub reclaim_within_cohort: Option<String>,
    /// How long a workload waits before it may preempt, from the first time that it asked for quota.
    pub trigger_after_workload_waiting_seconds: Option<i64>,
    /// In which order candidates are taken: `ByLowestPriority`, `ByLowestRuntime`, `ByLongestRuntime`; the first two by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workload_sorting: Vec<String>,
    /// In order to borrow.
    pub borrow_within_cohort: Option<BorrowWithinCohortSpec>,
}

/// Whom a queue may preempt in order to borrow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct BorrowWithinCohortSpec {
    /// `Never` or `LowerPriority`.
    pub policy: Option<String>,
    /// Nobody above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_threshold: Option<i32>,
}

/// How a queue chooses a flavor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlavorFungibilitySpec {
    /// `MayStopSearch` (`Borrow`) or `TryNextFlavor`.
    pub when_can_borrow: Option<String>,
    /// `MayStopSearch` (`Preempt`) or `TryNextFlavor`.
    pub when_can_preempt: Option<String>,
    /// `BorrowingOverPreemption` or `PreemptionOverBorrowing`.
    pub preference: Option<String>,
}

/// A weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FairSharingSpec {
    /// 1 where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
    pub weight: Option<Value>,
}

/// What a workload asks for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "kueue.x-k8s.io",
        version = "v1beta2",
        kind = "Workload",
        root = "WorkloadCrd",
        namespaced,
        shortname = "wl",
        status = "KueueWorkloadStatus"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct KueueWorkloadSpec {
    /// The LocalQueue.
    pub queue_name: String,
    /// Whether it may run; false takes its quota away.
    pub active: Option<bool>,
    /// Its priority.
    pub priority: Option<i32>,
    /// The class that says its priority, where it says none itself.
    pub priority_class_ref: Option<PriorityClassRef>,
    /// The class's name, as the last version has it.
    pub priority_class_name: Option<String>,
    /// The class's kind, as the last version has it: `kueue.x-k8s.io/workloadpriorityclass` or `scheduling.k8s.io/priorityclass`.
    pub priority_class_source: Option<String>,
    /// Its pods.
    pub pod_sets: Vec<PodSetSpec>,
    /// What it is like to be preempted.
    pub preemption: Option<WorkloadPreemptionSpec>,
    /// `Requeue` (by default) or `Terminate`: what becomes of it when it is preempted.
    pub on_preemption: Option<String>,
    /// How long it may run. No decision depends on it.
    pub maximum_execution_time_seconds: Option<i32>,
    /// What must happen before it may preempt. Reprieve does not evaluate them.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
    pub preemption_gates: Vec<Value>,
}

/// The class that says a workload's priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PriorityClassRef {
    /// `kueue.x-k8s.io` or `scheduling.k8s.io`.
    pub group: String,
    /// `WorkloadPriorityClass` or `PriorityClass`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What it is like for a workload to be preempted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadPreemptionSpec {
    /// What that costs, by how long it ran; in between the cost is interpolated.
    pub disruption_cost_milestones: Vec<MilestoneSpec>,
}

/// What a preemption costs after so long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MilestoneSpec {
    /// How long it ran.
    pub seconds: i64,
    /// The cost.
    pub cost: i64,
}

/// Pods of one kind.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodSetSpec {
    /// Its name.
    pub name: String,
    /// How many.
    pub count: i64,
    /// How few will do.
    pub min_count: Option<i64>,
    /// What each is like.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
    pub template: PodTemplateSpec,
    /// In which part of a Topology its pods must be. Reprieve does not evaluate it.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
    pub topology_request: Option<Value>,
}

/// How important workloads of a class are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "kueue.x-k8s.io",
        version = "v1beta2",
        kind = "WorkloadPriorityClass",
        root = "WorkloadPriorityClassCrd"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadPriorityClassSpec {
    /// Their priority.
    pub value: i32,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// What came of a workload.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct KueueWorkloadStatus {
    /// The quota that it holds.
    pub admission: Option<AdmissionSpec>,
    /// Its conditions.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
    pub conditions: Vec<Condition>,
    /// What it has been through.
    pub scheduling_stats: Option<SchedulingStats>,
    /// When it asks again, where it was put off. Reprieve does not evaluate it.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
    pub requeue_state: Option<Value>,
    /// Pods that are over and need no quota any more. Reprieve does not evaluate them.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
    pub reclaimable_pods: Vec<Value>,
}

/// What a workload has been through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingStats {
    /// How often it was evicted, by reason.
    pub evictions: Vec<EvictionStats>,
}

/// How often a workload was evicted for a reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionStats {
    /// `Preempted`, say.
    pub reason: String,
    /// More about it.
    pub underlying_cause: String,
    /// How often.
    pub count: i32,
}

/// The quota that a workload holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionSpec {
    /// Whose.
    pub cluster_queue: String,
    /// By pod set.
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// The quota that a pod set holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodSetAssignment {
    /// Its name.
    pub name: String,
    /// By resource: its flavor.
    pub flavors: BTreeMap<String, String>,
    /// By resource: how much.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
    pub resource_usage: BTreeMap<String, Value>,
    /// How many pods.
    pub count: Option<i64>,
}

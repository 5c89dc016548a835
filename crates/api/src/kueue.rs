//! The objects of Kueue: the fields that decisions read. A field may also have the name of the previous API version, or the name in the
//! design document of Kueue.
//!
//! The field comments are the descriptions in `deploy/crds`; `cargo xtask fix` writes them there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodTemplateSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::meta::{object, spec_types};

object!(
    /// A set of nodes with the same labels and taints, to which quota refers.
    ResourceFlavor, FlavorSpec);
object!(
    /// A queue with quota.
    ClusterQueue, ClusterQueueSpec);
object!(
    /// ClusterQueues and cohorts that lend quota to each other.
    Cohort, CohortSpec);
object!(
    /// Connects a namespace with a ClusterQueue.
    LocalQueue, LocalQueueSpec);
object!(
    /// A job that requests or holds quota.
    KueueWorkload, KueueWorkloadSpec, KueueWorkloadStatus);
object!(
    /// The priority of the workloads that name it.
    WorkloadPriorityClass, #[serde(flatten)] WorkloadPriorityClassSpec);

/// The annotation of a pod that names its workload.
pub const WORKLOAD: &str = "kueue.x-k8s.io/workload";
/// The label of a pod that names its pod set.
pub const POD_SET: &str = "kueue.x-k8s.io/podset";

/// Returns the name of the Workload that Reprieve creates for a Job.
pub fn workload_of_job(job: &str, uid: &str) -> String {
    /// The longest name that the API server accepts.
    const MAX_LENGTH: usize = 253;
    let short: String = job.chars().take(MAX_LENGTH - "job--00000".len()).collect();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3); // FNV-1a
    let digest = uid.bytes().fold(0xcbf2_9ce4_8422_2325, step) & 0xf_ffff;
    format!("job-{short}-{digest:05x}")
}

/// Decodes null as the default value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Distinguishes a field that is null (`Some(None)`) from one that is missing.
fn present_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

spec_types! {
    /// The nodes of a flavor.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "kueue.x-k8s.io", version = "v1beta2",
        kind = "ResourceFlavor", root = "ResourceFlavorCrd", shortname = "rf"))]
    pub struct FlavorSpec {
        /// The labels of the nodes.
        pub node_labels: BTreeMap<String, String>,
        /// The taints of the nodes.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
        pub node_taints: Vec<Taint>,
        /// Tolerations that Kueue adds to pods that use the flavor.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
        pub tolerations: Vec<Toleration>,
        /// The Topology by which Kueue places pods on the flavor's nodes. Reprieve does not evaluate it.
        pub topology_name: Option<String>,
    }

    /// The quota and the rules of a queue.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "kueue.x-k8s.io", version = "v1beta2",
        kind = "ClusterQueue", root = "ClusterQueueCrd", shortname = "cq"))]
    pub struct ClusterQueueSpec {
        /// The cohort in which the queue lends and borrows quota.
        #[serde(alias = "cohort")]
        pub cohort_name: Option<String>,
        /// The quota by resource and flavor.
        pub resource_groups: Vec<ResourceGroupSpec>,
        /// The namespaces whose workloads the queue admits: `{}` selects all, null none. The default is null in a cluster, `{}` in a file.
        #[serde(deserialize_with = "present_or_null")]
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
        pub namespace_selector: Option<Option<LabelSelector>>,
        /// `BestEffortFIFO` or `StrictFIFO`.
        pub queueing_strategy: Option<String>,
        /// Which workloads the queue may preempt.
        pub preemption: PreemptionSpec,
        /// How the queue chooses a flavor.
        pub flavor_fungibility: FlavorFungibilitySpec,
        /// The weight for fair sharing.
        pub fair_sharing: FairSharingSpec,
        /// The checks that a workload must pass in addition to its quota. Reprieve does not evaluate them.
        pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
        /// The admission checks in the previous API version. Reprieve does not evaluate them.
        #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
        pub admission_checks: Vec<String>,
        /// `None`, `Hold` or `HoldAndDrain`: whether the queue admits workloads. Reprieve does not evaluate it.
        pub stop_policy: Option<String>,
        /// How workloads of its LocalQueues share the queue. Reprieve does not evaluate it.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
        pub admission_scope: Option<Value>,
        /// Whether a workload may try several flavors at once. Reprieve does not evaluate it.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
        pub concurrent_admission_policy: Option<Value>,
    }

    /// The checks that a workload must pass in addition to its quota.
    pub struct AdmissionChecksStrategy {
        /// The checks, each with its flavors.
        #[serde(deserialize_with = "or_default")]
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
        pub admission_checks: Vec<Value>,
    }

    /// The quota of a cohort itself.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "kueue.x-k8s.io", version = "v1beta2",
        kind = "Cohort", root = "CohortCrd"))]
    pub struct CohortSpec {
        /// The parent cohort.
        #[serde(alias = "parent")]
        pub parent_name: Option<String>,
        /// The quota by resource and flavor.
        pub resource_groups: Vec<ResourceGroupSpec>,
        /// The weight for fair sharing.
        pub fair_sharing: FairSharingSpec,
    }

    /// The ClusterQueue of a LocalQueue.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "kueue.x-k8s.io", version = "v1beta2",
        kind = "LocalQueue", root = "LocalQueueCrd", namespaced, shortname = "lq"))]
    pub struct LocalQueueSpec {
        /// The name of the ClusterQueue.
        pub cluster_queue: String,
        /// `None`, `Hold` or `HoldAndDrain`: whether the LocalQueue submits workloads. Reprieve does not evaluate it.
        pub stop_policy: Option<String>,
    }

    /// Resources of which a pod set gets all from the same flavor.
    pub struct ResourceGroupSpec {
        /// The resources.
        pub covered_resources: Vec<String>,
        /// The flavors in the order in which Kueue tries them.
        pub flavors: Vec<FlavorQuotas>,
    }

    /// The quota of one flavor.
    pub struct FlavorQuotas {
        /// The name of the ResourceFlavor.
        pub name: String,
        /// The quota of each resource.
        pub resources: Vec<ResourceQuota>,
    }

    /// The quota of one resource of a flavor.
    pub struct ResourceQuota {
        /// The resource.
        pub name: String,
        /// The amount that belongs to the queue.
        #[serde(alias = "min")]
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
        pub nominal_quota: Value,
        /// The largest amount that the queue may borrow.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
        pub borrowing_limit: Option<Value>,
        /// The largest amount that the queue lends.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
        pub lending_limit: Option<Value>,
        /// The largest amount that the queue may use, as in the design: nominal quota and borrowing limit together.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
        pub max: Option<Value>,
    }

    /// Which workloads a queue may preempt.
    pub struct PreemptionSpec {
        /// Candidates in the queue itself.
        pub within_cluster_queue: Option<String>,
        /// Candidates in queues of the cohort that borrow.
        #[serde(alias = "withinCohort")]
        pub reclaim_within_cohort: Option<String>,
        /// Seconds that a workload waits before it may preempt, from its first request for quota.
        pub trigger_after_workload_waiting_seconds: Option<i64>,
        /// The order of candidates: `ByLowestPriority`, `ByLowestRuntime`, `ByLongestRuntime`; the first two by default.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workload_sorting: Vec<String>,
        /// Candidates in the cohort for a preemptor that borrows.
        pub borrow_within_cohort: Option<BorrowWithinCohortSpec>,
    }

    /// Which workloads a queue may preempt in order to borrow.
    pub struct BorrowWithinCohortSpec {
        /// `Never` or `LowerPriority`.
        #[serialize_always]
        pub policy: Option<String>,
        /// The highest priority of a candidate.
        pub max_priority_threshold: Option<i32>,
    }

    /// How a queue chooses a flavor.
    pub struct FlavorFungibilitySpec {
        /// `MayStopSearch` (`Borrow`) or `TryNextFlavor`.
        pub when_can_borrow: Option<String>,
        /// `MayStopSearch` (`Preempt`) or `TryNextFlavor`.
        pub when_can_preempt: Option<String>,
        /// `BorrowingOverPreemption` or `PreemptionOverBorrowing`.
        pub preference: Option<String>,
    }

    /// The weight of a queue or cohort for fair sharing.
    pub struct FairSharingSpec {
        /// The default is 1.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantity"))]
        pub weight: Option<Value>,
    }

    /// The queue, the priority and the pods of a workload.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "kueue.x-k8s.io", version = "v1beta2",
        kind = "Workload", root = "WorkloadCrd", namespaced, shortname = "wl", status = "KueueWorkloadStatus"))]
    pub struct KueueWorkloadSpec {
        /// The name of the LocalQueue.
        pub queue_name: String,
        /// Whether the workload may run. If false, Kueue evicts it.
        pub active: Option<bool>,
        /// The priority.
        pub priority: Option<i32>,
        /// The class that defines the priority if `priority` is not set.
        pub priority_class_ref: Option<PriorityClassRef>,
        /// The name of the class in the previous API version.
        pub priority_class_name: Option<String>,
        /// The kind of the class in the previous API version: `kueue.x-k8s.io/workloadpriorityclass` or
        /// `scheduling.k8s.io/priorityclass`.
        pub priority_class_source: Option<String>,
        /// The pods of the workload.
        pub pod_sets: Vec<PodSetSpec>,
        /// The cost of preempting the workload.
        pub preemption: Option<WorkloadPreemptionSpec>,
        /// `Requeue` (the default) or `Terminate`: what happens to the workload when it is preempted.
        pub on_preemption: Option<String>,
        /// Seconds that the workload may run. No decision depends on it.
        pub maximum_execution_time_seconds: Option<i32>,
        /// Conditions for the workload to preempt. Reprieve does not evaluate them.
        #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
        pub preemption_gates: Vec<Value>,
    }

    /// The class that defines the priority of a workload.
    pub struct PriorityClassRef {
        /// `kueue.x-k8s.io` or `scheduling.k8s.io`.
        pub group: String,
        /// `WorkloadPriorityClass` or `PriorityClass`.
        pub kind: String,
        /// The name of the class.
        pub name: String,
    }

    /// The cost of preempting a workload.
    pub struct WorkloadPreemptionSpec {
        /// The cost after certain running times. Between two milestones the cost is interpolated.
        pub disruption_cost_milestones: Vec<MilestoneSpec>,
    }

    /// The cost of a preemption after a running time.
    pub struct MilestoneSpec {
        /// The running time in seconds.
        pub seconds: i64,
        /// The cost.
        pub cost: i64,
    }

    /// Pods that are created from one template.
    pub struct PodSetSpec {
        /// The name of the pod set.
        pub name: String,
        /// The number of pods.
        pub count: i64,
        /// The number of pods with which the workload can start, for partial admission.
        pub min_count: Option<i64>,
        /// The template of the pods.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
        pub template: PodTemplateSpec,
        /// The part of a Topology in which the pods must be. Reprieve does not evaluate it.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
        pub topology_request: Option<Value>,
    }

    /// The priority of the workloads of a class.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "kueue.x-k8s.io", version = "v1beta2",
        kind = "WorkloadPriorityClass", root = "WorkloadPriorityClassCrd"))]
    pub struct WorkloadPriorityClassSpec {
        /// The priority.
        pub value: i32,
        /// A description for users.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub description: String,
    }

    /// The state of a workload.
    pub struct KueueWorkloadStatus {
        /// The quota that the workload holds.
        pub admission: Option<AdmissionSpec>,
        /// The conditions.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
        pub conditions: Vec<Condition>,
        /// Counts of past evictions.
        pub scheduling_stats: Option<SchedulingStats>,
        /// The time at which Kueue requeues the workload. Reprieve does not evaluate it.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::object"))]
        pub requeue_state: Option<Value>,
        /// Pods that have finished and need no more quota. Reprieve does not evaluate them.
        #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::objects"))]
        pub reclaimable_pods: Vec<Value>,
    }

    /// Counts of past evictions of a workload.
    pub struct SchedulingStats {
        /// The number of evictions by reason.
        pub evictions: Vec<EvictionStats>,
    }

    /// The number of evictions for one reason.
    pub struct EvictionStats {
        /// The reason, for example `Preempted`.
        pub reason: String,
        /// The cause of the reason.
        pub underlying_cause: String,
        /// The number of evictions.
        pub count: i32,
    }

    /// The quota that a workload holds.
    pub struct AdmissionSpec {
        /// The ClusterQueue of the quota.
        pub cluster_queue: String,
        /// The quota of each pod set.
        pub pod_set_assignments: Vec<PodSetAssignment>,
    }

    /// The quota that a pod set holds.
    pub struct PodSetAssignment {
        /// The name of the pod set.
        pub name: String,
        /// The flavor of each resource.
        pub flavors: BTreeMap<String, String>,
        /// The amount of each resource.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
        pub resource_usage: BTreeMap<String, Value>,
        /// The number of pods.
        #[serialize_always]
        pub count: Option<i64>,
    }
}

//! The Workload of `scheduling.k8s.io` as the design (KEP-5710) and Kubernetes 1.35 (`v1alpha1`) have it: its pod groups, their disruption
//! mode, and both priorities. From `v1alpha2` on a Workload has only templates, from which controllers copy, so nothing of it is read: a group is a PodGroup.

use serde::{Deserialize, Serialize};

use crate::meta::object;

object!(
    /// A Workload with the fields that decisions read.
    Workload, WorkloadSpec);

/// The pod groups and the priorities of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// The class of the scheduling priority.
    pub priority_class_name: Option<String>,
    /// The class of the preemption priority.
    pub preemption_priority_class_name: Option<String>,
    /// The pod groups.
    pub pod_groups: Vec<WorkloadGroup>,
}

/// A pod group of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadGroup {
    /// The name within the Workload.
    pub name: String,
    /// The scheduling policy.
    pub policy: GroupPolicy,
}

/// The scheduling policy of a pod group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupPolicy {
    /// The settings of a gang; without them the pods are scheduled one by one.
    pub gang: Option<Gang>,
}

/// A group of which at least `min_count` pods start together, or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gang {
    /// The number of members that must run.
    pub min_count: i32,
    /// The default is pod by pod.
    pub preemption_mode: Option<PreemptionMode>,
}

/// How a gang is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreemptionMode {
    /// Pod by pod.
    Pod,
    /// All pods at once.
    PodGroup,
}

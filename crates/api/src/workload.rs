//! The Workload of the workload-aware design: its pod groups, how they yield, and both priorities. Today's API has moved these
//! fields to the PodGroup; whoever still writes them here is understood.

use serde::{Deserialize, Serialize};

use crate::meta::object;

object!(
    /// A Workload; fields that no decision reads are left out.
    Workload, WorkloadSpec);

/// What a Workload asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// The class of its priority when it asks.
    pub priority_class_name: Option<String>,
    /// The class of its priority when it is asked to yield.
    pub preemption_priority_class_name: Option<String>,
    /// Its pod groups.
    #[serde(alias = "podGroupTemplates")]
    pub pod_groups: Vec<WorkloadGroup>,
}

/// A pod group of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadGroup {
    /// Its name within the Workload.
    pub name: String,
    /// How it is scheduled.
    #[serde(alias = "schedulingPolicy")]
    pub policy: GroupPolicy,
}

/// How a pod group is scheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupPolicy {
    /// As a gang.
    pub gang: Option<Gang>,
}

/// All at once, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gang {
    /// How many members must run.
    pub min_count: i32,
    /// How it yields.
    pub preemption_mode: Option<PreemptionMode>,
}

/// How a gang yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreemptionMode {
    /// Pod by pod.
    Pod,
    /// Whole.
    PodGroup,
}

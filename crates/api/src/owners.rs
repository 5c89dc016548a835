//! Controllers to which pods refer as their owners: the fields that confirm such a reference, and those that say whether the pods of the
//! owner form a gang (docs/rules/kubernetes-groups.md#ga8).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{object, spec_types};

object!(
    /// `apps/v1` DaemonSet.
    DaemonSet, DaemonSetSpec);
object!(
    /// `apps/v1` StatefulSet.
    StatefulSet, Unread);
object!(
    /// `batch/v1` Job, as the owner of pods. [`crate::Kind::Job`] has all fields.
    OwnerJob, OwnerJobSpec);
object!(
    /// `jobset.x-k8s.io` JobSet.
    JobSet, Unread);
object!(
    /// `leaderworkerset.x-k8s.io` LeaderWorkerSet.
    LeaderWorkerSet, Unread);
object!(
    /// `kubeflow.org` MPIJob.
    MpiJob, Unread);
object!(
    /// `ray.io` RayCluster.
    RayCluster, RayClusterSpec);
object!(
    /// `trainer.kubeflow.org` TrainJob.
    TrainJob, Unread);

/// The pods of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonSetSpec {
    /// Selects its pods.
    pub selector: LabelSelector,
}

/// A spec of which no field is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unread {}

spec_types! {
    /// Whether the pods of a Job need each other.
    #[derive(Eq)]
    pub struct OwnerJobSpec {
        /// `Indexed` if each pod has an index.
        pub completion_mode: Option<String>,
        /// The number of pods that must succeed.
        pub completions: Option<i64>,
        /// The number of pods that run at the same time.
        pub parallelism: Option<i64>,
        /// Set if the Job continues after an index failed.
        pub backoff_limit_per_index: Option<i64>,
        /// Set if the Job controller creates the PodGroup of the pods, or if the Job says that they need none.
        pub scheduling: Option<Value>,
        /// The template of its pods.
        pub template: OwnerJobTemplate,
    }

    /// The template of a Job's pods.
    #[derive(Eq)]
    pub struct OwnerJobTemplate {
        /// The spec of its pods.
        pub spec: OwnerJobPodSpec,
    }

    /// The spec of a Job's pods.
    #[derive(Eq)]
    pub struct OwnerJobPodSpec {
        /// Set if the pods can find each other by name.
        pub subdomain: Option<String>,
    }

    /// Whether the number of a RayCluster's pods changes.
    #[derive(Eq)]
    pub struct RayClusterSpec {
        /// Whether the cluster starts and stops workers by load.
        pub enable_in_tree_autoscaling: Option<bool>,
    }
}

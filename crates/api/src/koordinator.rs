//! Koordinator's elastic quotas and jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::object;
use crate::{NamespacedName, Pod};

/// The label of an ElasticQuota that names its parent.
pub const PARENT: &str = "quota.scheduling.koordinator.sh/parent";
/// The label of a pod that names its quota.
pub const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
/// The label of a pod that names its job.
pub const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

object!(
    /// `scheduling.sigs.k8s.io/v1alpha1` ElasticQuota; labels name its parent and its tree.
    ElasticQuota, ElasticQuotaSpec);
object!(
    /// `scheduling.sigs.k8s.io/v1alpha1` PodGroup.
    KoordinatorPodGroup, KoordinatorPodGroupSpec);

/// The limits of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "scheduling.sigs.k8s.io",
        version = "v1alpha1",
        kind = "ElasticQuota",
        shortname = "eq",
        root = "ElasticQuotaCrd",
        namespaced
    )
)]
#[serde(default)]
pub struct ElasticQuotaSpec {
    /// What those who cannot be preempted may use.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
    pub min: BTreeMap<String, Value>,
    /// What all may use.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
    pub max: BTreeMap<String, Value>,
}

/// How many pods a job needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "scheduling.sigs.k8s.io",
        version = "v1alpha1",
        kind = "PodGroup",
        shortname = "pg",
        root = "PodGroupCrd",
        namespaced
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct KoordinatorPodGroupSpec {
    /// All of these, or none.
    pub min_member: i64,
}

/// The value of a label of a pod.
pub fn label<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The job that a pod names.
pub fn job_of(pod: &Pod) -> Option<NamespacedName> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    label(pod, JOB).filter(|name| !name.is_empty()).map(|name| NamespacedName::new(namespace, name))
}

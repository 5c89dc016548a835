//! Koordinator's elastic quotas and jobs.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FullName, Pod};

/// The label of an ElasticQuota that names its parent.
pub const PARENT: &str = "quota.scheduling.koordinator.sh/parent";
/// The label of a pod that names its quota.
pub const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
/// The label of a pod that names its job.
pub const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

/// `scheduling.sigs.k8s.io/v1alpha1` ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ElasticQuota {
    /// `scheduling.sigs.k8s.io/v1alpha1`.
    pub api_version: String,
    /// `ElasticQuota`.
    pub kind: String,
    /// Its metadata; labels name the parent and the tree.
    pub metadata: ObjectMeta,
    /// Its limits.
    pub spec: QuotaSpec,
}

/// The limits of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "crds", derive(schemars::JsonSchema, kube::CustomResource))]
#[cfg_attr(
    feature = "crds",
    kube(
        group = "scheduling.sigs.k8s.io",
        version = "v1alpha1",
        kind = "ElasticQuota",
        plural = "elasticquotas",
        shortname = "eq",
        root = "ElasticQuotaCrd",
        namespaced
    )
)]
#[serde(default)]
pub struct QuotaSpec {
    /// What those who cannot be preempted may use.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
    pub min: BTreeMap<String, Value>,
    /// What all may use.
    #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
    pub max: BTreeMap<String, Value>,
}

/// `scheduling.sigs.k8s.io/v1alpha1` PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobGroup {
    /// `scheduling.sigs.k8s.io/v1alpha1`.
    pub api_version: String,
    /// `PodGroup`.
    pub kind: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// How many pods it needs.
    pub spec: JobSpec,
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
        plural = "podgroups",
        shortname = "pg",
        root = "PodGroupCrd",
        namespaced
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// All of these, or none.
    pub min_member: i64,
}

/// The value of a label of a pod.
pub fn label<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The job that a pod names.
pub fn job_of(pod: &Pod) -> Option<FullName> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    label(pod, JOB).filter(|name| !name.is_empty()).map(|name| FullName::new(namespace, name))
}

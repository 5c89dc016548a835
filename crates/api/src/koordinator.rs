//! The objects of Koordinator that decisions read, elastic quotas and PodGroups (jobs), and the labels of its pods.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::membership::owner_gang_of;
use crate::meta::{object, spec_types};
use crate::{NamespacedName, Pod};

/// The label of an ElasticQuota that names its parent.
pub const PARENT: &str = "quota.scheduling.koordinator.sh/parent";
/// The label of a pod that names its quota.
pub const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
/// The label of a pod that names its job.
pub const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

object!(
    /// `scheduling.sigs.k8s.io/v1alpha1` ElasticQuota; a label names its parent.
    ElasticQuota, ElasticQuotaSpec);
object!(
    /// `scheduling.sigs.k8s.io/v1alpha1` PodGroup.
    KoordinatorPodGroup, KoordinatorPodGroupSpec);

spec_types! {
    /// The guarantee and the limit of a quota.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "scheduling.sigs.k8s.io", version = "v1alpha1",
        kind = "ElasticQuota", shortname = "eq", root = "ElasticQuotaCrd", namespaced))]
    pub struct ElasticQuotaSpec {
        /// The amounts that are guaranteed; pods that cannot be preempted may use at most these.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
        pub min: BTreeMap<String, Value>,
        /// The largest amounts that all pods of the quota may use.
        #[cfg_attr(feature = "crds", schemars(schema_with = "crate::schema::quantities"))]
        pub max: BTreeMap<String, Value>,
    }

    /// The size of a job.
    #[cfg_attr(feature = "crds", derive(kube::CustomResource), kube(group = "scheduling.sigs.k8s.io", version = "v1alpha1",
        kind = "PodGroup", shortname = "pg", root = "PodGroupCrd", namespaced))]
    pub struct KoordinatorPodGroupSpec {
        /// The number of pods that must run at the same time.
        pub min_member: i64,
    }
}

/// Returns the value of a pod's label.
pub fn label<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Returns the job of a pod: the one that it names, or the gang that its owners form.
pub fn job_of(pod: &Pod) -> Option<NamespacedName> {
    named_job_of(pod).or_else(|| owner_gang_of(pod))
}

/// Returns the job that a pod names.
pub fn named_job_of(pod: &Pod) -> Option<NamespacedName> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    label(pod, JOB).filter(|name| !name.is_empty()).map(|name| NamespacedName::new(namespace, name))
}

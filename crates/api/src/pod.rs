//! The fields of a pod that decisions read. All other fields are skipped while decoding, because a large cluster has many pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as api;
use k8s_openapi::api::core::v1::{
    Affinity, ContainerPort, ContainerRestartRule, PodCondition, PodResourceClaim, PodSchedulingGate,
    PodSchedulingGroup, ResourceRequirements, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::skip_serializing_none;

use crate::requests::fill_requests;
use crate::volumes::{BoundMounts, Volumes};

/// The annotation of a victim: the preemptor for which it is marked, as `KIND NAMESPACE/NAME`.
pub const PREEMPTED_FOR: &str = "reprieve.dev/preempted-for";
/// The type of a condition of a victim, whose message is only the preemptor. The status of a pod is not writable by the tenant who owns the
/// pod, so the condition is the record of the preemption; the annotation [`PREEMPTED_FOR`] and the label [`SOFT_EVICTION`] are never read.
pub const VICTIM: &str = "reprieve.dev/PreemptedFor";
/// The reason of the condition [`VICTIM`] of a pod that another operator was asked to evict.
pub const SOFT_EVICTED: &str = "SoftEvicted";
/// The label that asks another operator to evict a pod, and the annotation that tells this operator for which preemptor.
pub const SOFT_EVICTION: &str = "scheduling.koordinator.sh/soft-eviction";
/// The value of the label [`SOFT_EVICTION`].
pub const PREEMPTED: &str = "preempted";

/// `v1` Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WirePod")]
pub struct Pod {
    /// The metadata without managed fields.
    pub metadata: ObjectMeta,
    /// The spec; pods with equal specs may share one.
    pub spec: Option<Arc<PodSpec>>,
    /// The node to which the pod is bound: `spec.nodeName` in the API.
    pub node_name: Option<String>,
    /// The status.
    pub status: Option<PodStatus>,
    /// The name of the gang that its owners form; no field of the API. The loader sets it on a pod that names no group.
    pub owner_gang: Option<Arc<str>>,
}

/// The spec of a pod. Each field is the API field of that name.
// Fields: those of the API that are read.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct PodSpec {
    pub affinity: Option<Affinity>,
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    pub host_network: Option<bool>,
    pub host_users: Option<bool>,
    pub init_containers: Option<Vec<Container>>,
    #[serde(skip_serializing_if = "WireNodeName::is_none")]
    pub node_name: WireNodeName,
    pub node_selector: Option<BTreeMap<String, String>>,
    pub overhead: Option<BTreeMap<String, Quantity>>,
    pub preemption_policy: Option<String>,
    pub priority: Option<i32>,
    pub priority_class_name: Option<String>,
    pub resource_claims: Option<Vec<PodResourceClaim>>,
    pub resources: Option<ResourceRequirements>,
    pub runtime_class_name: Option<String>,
    pub scheduler_name: Option<String>,
    pub scheduling_gates: Option<Vec<PodSchedulingGate>>,
    pub scheduling_group: Option<PodSchedulingGroup>,
    pub termination_grace_period_seconds: Option<i64>,
    pub tolerations: Option<Vec<Toleration>>,
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Only the volumes that a scheduler has to consider.
    #[serde(skip_serializing_if = "Volumes::is_empty")]
    pub volumes: Volumes,
    /// The group of the pod in Kubernetes 1.35; later versions have `schedulingGroup`.
    pub workload_ref: Option<PodWorkloadReference>,
}

/// `spec.workloadRef`: a pod group of a Workload. Each field is the API field of that name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct PodWorkloadReference {
    pub name: String,
    pub pod_group: String,
    pub pod_group_replica_key: Option<String>,
}

/// `spec.nodeName` while a pod is decoded or encoded. At other times the name is in [`Pod::node_name`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct WireNodeName(Option<String>);

impl WireNodeName {
    fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl From<Option<String>> for WireNodeName {
    fn from(node: Option<String>) -> Self {
        Self(node)
    }
}

impl From<WireNodeName> for Option<String> {
    fn from(node: WireNodeName) -> Self {
        node.0
    }
}

/// A container of a pod. Each field is the API field of that name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Container {
    pub image: Option<String>,
    pub name: String,
    pub ports: Option<Vec<ContainerPort>>,
    pub resources: Option<ResourceRequirements>,
    pub restart_policy: Option<String>,
    pub restart_policy_rules: Option<Vec<ContainerRestartRule>>,
    /// Only the mounts with bind mount options.
    #[serde(skip_serializing_if = "BoundMounts::is_empty")]
    pub volume_mounts: BoundMounts,
}

/// The status of a pod. Each field is the API field of that name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct PodStatus {
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    pub conditions: Option<Vec<PodCondition>>,
    pub container_statuses: Option<Vec<ContainerStatus>>,
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
    pub nominated_node_name: Option<String>,
    pub phase: Option<String>,
    pub resources: Option<ResourceRequirements>,
    pub start_time: Option<Time>,
}

impl PodStatus {
    /// Returns the status without its conditions.
    pub fn without_conditions(&self) -> Self {
        Self { conditions: None, ..self.clone() }
    }
}

/// The status of a container. Each field is the API field of that name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct ContainerStatus {
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    pub name: String,
    pub resources: Option<ResourceRequirements>,
}

/// A pod while it is decoded.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePod {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    spec: Option<PodSpec>,
    status: Option<PodStatus>,
}

impl From<WirePod> for Pod {
    fn from(WirePod { metadata, spec, status }: WirePod) -> Self {
        match spec {
            Some(mut spec) => {
                fill_container_requests(&mut spec);
                Self { status, ..Self::new(metadata, spec) }
            }
            None => Self { metadata, status, ..Self::default() },
        }
    }
}

impl Pod {
    /// Returns a pod without a status. Unlike decoding, this does not copy limits to requests; `loader::Defaults` completes pods that are
    /// created from a template.
    pub fn new(metadata: ObjectMeta, mut spec: PodSpec) -> Self {
        let node_name = std::mem::take(&mut spec.node_name).0;
        Self { metadata, spec: Some(Arc::new(spec)), node_name, status: None, owner_gang: None }
    }

    /// Whether all containers have terminated, so that the pod no longer takes room.
    pub fn is_finished(&self) -> bool {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    /// docs/rules/koordinator.md#q12: whether another operator was asked to delete the pod: it has the label and the condition of a preempted
    /// pod. Its owner can write the label; so a pod that Reprieve has marked counts only if the condition [`VICTIM`] says that Reprieve
    /// wrote the label.
    pub fn is_soft_evicted(&self) -> bool {
        let has_label = self.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SOFT_EVICTION));
        let conditions = || self.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let find = |type_: &str| conditions().find(|condition| condition.type_ == type_ && condition.status == "True");
        let has_reason = |condition: &PodCondition, reason: &str| condition.reason.as_deref() == Some(reason);
        has_label
            && find("DisruptionTarget").is_some_and(|condition| has_reason(condition, "PreemptionByScheduler"))
            && find(VICTIM).is_none_or(|record| has_reason(record, SOFT_EVICTED))
    }

    /// Returns the spec for changes.
    pub fn spec_mut(&mut self) -> &mut PodSpec {
        Arc::make_mut(self.spec.get_or_insert_default())
    }
}

impl Serialize for Pod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { metadata, spec, node_name, status, owner_gang: _ } = self;
        let bound = node_name.as_ref().map(|node| {
            let spec = spec.as_deref().cloned().unwrap_or_default();
            PodSpec { node_name: WireNodeName(Some(node.clone())), ..spec }
        });
        let spec = bound.as_ref().or(spec.as_deref());
        let status = status.as_ref();
        SerializedPod { api_version: "v1", kind: "Pod", metadata, spec, status }.serialize(serializer)
    }
}

/// A pod while it is encoded.
#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SerializedPod<'p> {
    api_version: &'static str,
    kind: &'static str,
    metadata: &'p ObjectMeta,
    spec: Option<&'p PodSpec>,
    status: Option<&'p PodStatus>,
}

/// Defines the conversions between a type of the API and the type with fewer fields here.
macro_rules! convert_fields {
    ($type:ident { $($same:ident),+ $(; $each:ident, $some:ident)? }) => {
        impl From<api::$type> for $type {
            #[allow(clippy::needless_update, reason = "only the spec of a pod has a field of an earlier version of the API")]
            fn from(from: api::$type) -> Self {
                Self {
                    $($each: each(from.$each), $some: from.$some.map(each),)?
                    $($same: from.$same.into(),)+
                    ..Self::default()
                }
            }
        }

        impl From<$type> for api::$type {
            fn from(from: $type) -> Self {
                Self {
                    $($each: each(from.$each), $some: from.$some.map(each),)?
                    $($same: from.$same.into(),)+
                    ..Self::default()
                }
            }
        }
    };
}

convert_fields!(PodSpec {
    affinity, host_network, host_users, node_name, node_selector, overhead, preemption_policy, priority,
    priority_class_name, resource_claims, resources, runtime_class_name, scheduler_name, scheduling_gates,
    scheduling_group, termination_grace_period_seconds, tolerations, topology_spread_constraints, volumes; containers,
    init_containers
});
convert_fields!(Container { image, name, ports, resources, restart_policy, restart_policy_rules, volume_mounts });

fn each<T: Into<U>, U>(all: Vec<T>) -> Vec<U> {
    all.into_iter().map(Into::into).collect()
}

/// Decodes null as the default value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Decodes metadata without the managed fields, which are larger than all other fields.
fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    // Fields: those of the API, which a remote definition lists completely.
    #[derive(Deserialize)]
    #[serde(remote = "ObjectMeta", rename_all = "camelCase", expecting = "metadata")]
    struct MetadataFields {
        annotations: Option<BTreeMap<String, String>>,
        creation_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        deletion_timestamp: Option<Time>,
        finalizers: Option<Vec<String>>,
        generate_name: Option<String>,
        generation: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        #[serde(skip)]
        managed_fields: Option<Vec<ManagedFieldsEntry>>,
        name: Option<String>,
        namespace: Option<String>,
        owner_references: Option<Vec<OwnerReference>>,
        resource_version: Option<String>,
        #[serde(skip)]
        self_link: Option<String>,
        uid: Option<String>,
    }
    #[derive(Default, Deserialize)]
    struct Metadata(#[serde(with = "MetadataFields")] ObjectMeta);
    or_default(deserializer).map(|Metadata(metadata)| metadata)
}

/// Sets the missing requests of each container to its limits, as the API server does.
pub fn fill_container_requests(spec: &mut PodSpec) {
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        if let Some(resources) = &mut container.resources {
            fill_requests(resources);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decoded_pod_has_the_fields_of_the_api_pod() {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "labels": {"app": "a"}},
            "spec": {
                "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
                "nodeName": "node",
                "priority": 5,
                "schedulerName": "reprieve",
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        });
        let mut full = pod.clone();
        full["metadata"]["managedFields"] = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]);
        full["spec"]["volumes"] = json!([{"name": "tmp", "emptyDir": {}}]);
        full["spec"]["containers"][0]["command"] = json!(["sleep"]);
        let read: Pod = serde_json::from_value(full.clone()).expect("a pod");
        assert_eq!(serde_json::to_value(&read).expect("a value"), pod);
        let same: api::Pod = serde_json::from_value(full).expect("a pod of the API");
        assert_eq!(read.node_name.as_deref(), Some("node"));
        let same = Pod::new(ObjectMeta::default(), same.spec.map(PodSpec::from).unwrap_or_default());
        assert_eq!((read.spec, read.node_name), (same.spec, same.node_name));
        let empty: Pod =
            serde_json::from_value(json!({"metadata": null, "spec": {"containers": null}})).expect("a pod");
        assert_eq!(empty, Pod { spec: Some(Arc::default()), ..Pod::default() });
    }
}

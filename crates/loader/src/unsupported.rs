//! Finds fields that no decision evaluates. A preemptor with such a field is refused by the law `Unsupported`, which names the field.
//!
//! Fields that no scheduler has to consider (emptyDir volumes, probes, images and so on) are not listed here. The complete list for users
//! is `docs/evaluated.md`.

use std::collections::BTreeMap;

use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use reprieve_engine::Policy;
use serde_json::Value;

use crate::Warning;
use crate::requests::is_pod_level;
use reprieve_api::koordinator::KoordinatorPodGroup;
use reprieve_api::kueue::{
    ClusterQueueSpec, FlavorSpec, KueueWorkload, KueueWorkloadStatus, LocalQueueSpec, PodSetSpec,
};
use reprieve_api::{Container, ObjectKey, ObjectSet, Pod, PodSpec};

/// Requirements of pods that `plan --assume` can treat as met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// Volumes that are not available on every node.
    Volumes,
    /// Claimed devices (`spec.resourceClaims`).
    Claims,
    /// Features that the node's kubelet must declare: `restartPolicyRules` with `RestartAllContainers`, `bindMountOptions`, and the host
    /// network in a user namespace.
    Features,
}

impl Requirement {
    /// All requirements.
    pub const ALL: [Self; 3] = [Self::Volumes, Self::Claims, Self::Features];

    /// Returns the value of `--assume` for the requirement.
    pub fn word(self) -> &'static str {
        match self {
            Self::Volumes => "volumes",
            Self::Claims => "claims",
            Self::Features => "features",
        }
    }
}

/// Annotations of pods and PodGroups that policy Koordinator does not evaluate.
const KOORDINATOR: [&str; 6] = [
    "gang.scheduling.koordinator.sh/name",
    "gang.scheduling.koordinator.sh/groups",
    "scheduling.koordinator.sh/reservation-affinity",
    "scheduling.koordinator.sh/resource-spec",
    "scheduling.koordinator.sh/numa-topology-spec",
    "scheduling.koordinator.sh/device-joint-allocate",
];
/// Annotations of pods that policy YuniKorn does not evaluate.
const YUNIKORN: [&str; 2] = ["yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups"];
/// Annotations of a Kueue Workload that policy Kueue does not evaluate.
const WORKLOAD: [&str; 3] = [
    "kueue.x-k8s.io/admission-gated-by",
    "kueue.x-k8s.io/workload-allowed-resource-flavors",
    "kueue.x-k8s.io/workload-slice-replacement-for",
];
/// Annotations of a Job's pod template from which Kueue creates a topology request.
const POD_SET: [&str; 6] = [
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
    "kueue.x-k8s.io/podset-group-name",
];

/// Fields of a topology request that require a topology.
const TOPOLOGY: [&str; 6] = [
    "required",
    "preferred",
    "unconstrained",
    "podSetSliceRequiredTopology",
    "podSetSliceSize",
    "podsetSliceRequiredTopologyConstraints",
];

type Annotations = BTreeMap<String, String>;

/// Returns the first field of a pending pod that the policy does not evaluate.
pub fn field_of_pod(pod: &Pod, policy: &Policy) -> Option<String> {
    let annotations: &[&str] = match policy {
        Policy::Koordinator(_) => &KOORDINATOR,
        Policy::YuniKorn(_) => &YUNIKORN,
        Policy::Kubernetes(_) | Policy::Kueue(_) => &[],
    };
    let spec = pod.spec.as_deref()?;
    let of_spec = Requirement::ALL.into_iter().find_map(|requirement| field_of_spec(spec, requirement));
    let of_spec = of_spec.or_else(|| non_pod_level_resource(spec));
    of_spec.map(|field| format!("spec.{field}")).or_else(|| annotation(pod.metadata.annotations.as_ref(), annotations))
}

/// Returns a warning for each toleration of a pending pod with operator `Gt` or `Lt`, which tolerates no taint, as in a cluster without
/// that feature gate.
pub(crate) fn ignored_tolerations(key: &ObjectKey, pod: &Pod) -> Vec<Warning> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    let tolerations = tolerations.into_iter().flatten().enumerate();
    let ignored = tolerations.filter_map(|(index, toleration)| {
        let operator = toleration.operator.as_deref().filter(|operator| matches!(*operator, "Gt" | "Lt"))?;
        let field = format!("spec.tolerations[{index}].operator");
        let text = format!("Pod {}: {field}: {operator} is not supported; the toleration is ignored", key.name);
        Some(Warning::about(key.clone(), text))
    });
    ignored.collect()
}

/// Returns the first field of a pod spec with such a requirement, as a path below `spec`.
fn field_of_spec(spec: &PodSpec, requirement: Requirement) -> Option<String> {
    match requirement {
        Requirement::Volumes => spec.volumes.first_path(),
        Requirement::Claims => {
            let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
            let of_spec = claims.then(|| "resourceClaims[0]".to_owned());
            of_spec.or_else(|| container_field(spec, |container| claims_of(container).map(str::to_owned)))
        }
        Requirement::Features => {
            let without_host_users = spec.host_network == Some(true) && spec.host_users == Some(false);
            let of_spec = without_host_users.then(|| "hostUsers".to_owned());
            of_spec.or_else(|| container_field(spec, feature_of))
        }
    }
}

/// Returns a resource in the pod-level requests or limits that only containers may have. The API server rejects such a pod.
fn non_pod_level_resource(spec: &PodSpec) -> Option<String> {
    let resources = spec.resources.as_ref()?;
    let lists = [("requests", &resources.requests), ("limits", &resources.limits)];
    lists.into_iter().find_map(|(name, list)| {
        let resource = list.iter().flatten().map(|(resource, _)| resource).find(|resource| !is_pod_level(resource))?;
        Some(format!("resources.{name}.{resource}"))
    })
}

fn container_field(spec: &PodSpec, field: impl Fn(&Container) -> Option<String>) -> Option<String> {
    let init = spec.init_containers.iter().flatten().enumerate().map(|(index, one)| ("initContainers", index, one));
    let all = init.chain(spec.containers.iter().enumerate().map(|(index, one)| ("containers", index, one)));
    all.into_iter().find_map(|(list, index, container)| Some(format!("{list}[{index}].{}", field(container)?)))
}

fn claims_of(container: &Container) -> Option<&'static str> {
    let claims = container.resources.as_ref()?.claims.as_ref()?;
    (!claims.is_empty()).then_some("resources.claims[0]")
}

fn feature_of(container: &Container) -> Option<String> {
    let mut rules = container.restart_policy_rules.iter().flatten();
    let restarts_all = rules.position(|rule| rule.action == "RestartAllContainers");
    restarts_all
        .map(|index| format!("restartPolicyRules[{index}].action"))
        .or_else(|| container.volume_mounts.first_path())
}

fn annotation(annotations: Option<&Annotations>, unread: &[&str]) -> Option<String> {
    let annotations = annotations?;
    let found = unread.iter().find(|key| annotations.contains_key(**key))?;
    Some(format!("metadata.annotations[{found}]"))
}

/// Returns the first field of a Koordinator job that no decision evaluates.
pub fn field_of_job(group: &KoordinatorPodGroup) -> Option<String> {
    annotation(group.metadata.annotations.as_ref(), &KOORDINATOR)
}

/// Returns the first field of a PodGroup that no decision evaluates.
pub fn field_of_group(group: &PodGroup) -> Option<String> {
    let spec = &group.spec;
    let parent = spec.parent_composite_pod_group_name.as_ref().filter(|name| !name.is_empty());
    let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    let topology = spec.scheduling_constraints.as_ref().and_then(|constraints| constraints.topology.as_ref());
    let field = parent.map(|_| "spec.parentCompositePodGroupName");
    let field = field.or_else(|| claims.then_some("spec.resourceClaims[0]"));
    let field = field
        .or_else(|| topology.is_some_and(|keys| keys.len() > 1).then_some("spec.schedulingConstraints.topology[1]"));
    field.map(str::to_owned)
}

/// Returns the first field of a pending Kueue Workload that no decision evaluates. `places_pods` says whether this scheduler places the
/// pods; if not, another scheduler evaluates their volumes and features. Claims always count, because Kueue charges quota for devices.
pub fn field_of_workload(workload: &KueueWorkload, places_pods: impl Fn(&PodSpec) -> bool) -> Option<String> {
    let spec = &workload.spec;
    let gates = (!spec.preemption_gates.is_empty()).then(|| "spec.preemptionGates[0]".to_owned());
    let status = workload.status.as_ref();
    let reclaimable = status.is_some_and(has_reclaimable_pods);
    let requeued_later = status.and_then(|status| status.requeue_state.as_ref()?.get("requeueAt"));
    let requeued_later = requeued_later.is_some_and(|index| !index.is_null());
    let sets = || spec.pod_sets.iter().enumerate();
    let of_set = |(index, set): (usize, &PodSetSpec)| {
        field_of_pod_set(set, &places_pods).map(|field| format!("spec.podSets[{index}].{field}"))
    };
    gates
        .or_else(|| reclaimable.then(|| "status.reclaimablePods".to_owned()))
        .or_else(|| requeued_later.then(|| "status.requeueState.requeueAt".to_owned()))
        .or_else(|| annotation(workload.metadata.annotations.as_ref(), &WORKLOAD))
        .or_else(|| sets().find_map(of_set))
}

/// Whether some pods of a workload have finished and need no more quota.
pub fn has_reclaimable_pods(status: &KueueWorkloadStatus) -> bool {
    status.reclaimable_pods.iter().any(|pods| pods.get("count").and_then(Value::as_i64) != Some(0))
}

fn field_of_pod_set(set: &PodSetSpec, places_pods: impl Fn(&PodSpec) -> bool) -> Option<String> {
    let topology = set.topology_request.as_ref().and_then(|request| {
        // Kueue writes a request with only index labels into every workload of a Job, which requires no topology.
        let is_set = |key: &&&str| {
            request.get(**key).is_some_and(|value| !value.is_null() && *value != Value::Array(Vec::new()))
        };
        TOPOLOGY.iter().find(is_set).map(|key| format!("topologyRequest.{key}"))
    });
    let metadata = set.template.metadata.as_ref();
    let by_annotation =
        || annotation(metadata?.annotations.as_ref(), &POD_SET).map(|field| format!("template.{field}"));
    let of_spec = || {
        let spec = PodSpec::from(set.template.spec.clone()?);
        let requirements: &[Requirement] = if places_pods(&spec) { &Requirement::ALL } else { &[Requirement::Claims] };
        let field = requirements.iter().find_map(|&requirement| field_of_spec(&spec, requirement));
        let field = field.or_else(|| non_pod_level_resource(&spec))?;
        Some(format!("template.spec.{field}"))
    };
    topology.or_else(by_annotation).or_else(of_spec)
}

/// Returns the first field of a ClusterQueue on which the admission of its workloads depends and that no decision evaluates.
pub fn field_of_cluster_queue(spec: &ClusterQueueSpec) -> Option<&'static str> {
    let checks = spec.admission_checks_strategy.as_ref();
    let checks = checks.is_some_and(|strategy| !strategy.admission_checks.is_empty());
    (checks.then_some("spec.admissionChecksStrategy"))
        .or((!spec.admission_checks.is_empty()).then_some("spec.admissionChecks"))
        .or(is_stopped(spec.stop_policy.as_deref()).then_some("spec.stopPolicy"))
        .or(spec.concurrent_admission_policy.as_ref().map(|_| "spec.concurrentAdmissionPolicy"))
}

/// Returns the field of a LocalQueue that no decision evaluates.
pub fn field_of_local_queue(spec: &LocalQueueSpec) -> Option<&'static str> {
    is_stopped(spec.stop_policy.as_deref()).then_some("spec.stopPolicy")
}

/// Returns the field of a ResourceFlavor that no decision evaluates.
pub fn field_of_flavor(spec: &FlavorSpec) -> Option<&'static str> {
    spec.topology_name.as_ref().filter(|name| !name.is_empty()).map(|_| "spec.topologyName")
}

fn is_stopped(policy: Option<&str>) -> bool {
    policy.is_some_and(|policy| !matches!(policy, "" | "None"))
}

/// Removes the fields of these requirements from every pending pod and workload, so that decisions treat them as met.
pub fn assume(objects: &mut ObjectSet, assumed: &[Requirement]) {
    use std::sync::Arc;

    if assumed.is_empty() {
        return;
    }
    for pod in &mut objects.pods {
        let spec = pod.object.spec.as_deref().filter(|_| pod.object.node_name.as_ref().is_none_or(String::is_empty));
        if spec.is_some_and(|spec| has_any(spec, assumed)) {
            remove_requirements(Arc::make_mut(&mut pod.object).spec_mut(), assumed);
        }
    }
    for workload in &mut objects.kueue_workloads {
        let pending = workload.object.status.as_ref().is_none_or(|status| status.admission.is_none());
        let read = |set: &PodSetSpec| set.template.spec.clone().map(PodSpec::from);
        let any = |set: &PodSetSpec| read(set).is_some_and(|spec| has_any(&spec, assumed));
        if !pending || !workload.object.spec.pod_sets.iter().any(any) {
            continue;
        }
        for set in &mut Arc::make_mut(&mut workload.object).spec.pod_sets {
            if let Some(mut spec) = read(set) {
                remove_requirements(&mut spec, assumed);
                set.template.spec = Some(spec.into());
            }
        }
    }
}

fn has_any(spec: &PodSpec, assumed: &[Requirement]) -> bool {
    assumed.iter().any(|&requirement| field_of_spec(spec, requirement).is_some())
}

/// Removes the fields that [`field_of_spec`] finds: a field that is added there must be removed here, or `--assume` has no effect on it.
fn remove_requirements(spec: &mut PodSpec, assumed: &[Requirement]) {
    for requirement in assumed {
        let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
        match requirement {
            Requirement::Volumes => spec.volumes.clear(),
            Requirement::Claims => {
                containers
                    .filter_map(|container| container.resources.as_mut())
                    .for_each(|resources| resources.claims = None);
                spec.resource_claims = None;
            }
            Requirement::Features => {
                for container in containers {
                    container.restart_policy_rules = None;
                    container.volume_mounts.clear();
                }
                spec.host_users = None;
            }
        }
    }
}

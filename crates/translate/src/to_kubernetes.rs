//! Translates a cluster to objects of Kubernetes itself: a Koordinator job or a Kueue Workload becomes a PodGroup with its pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeStatus, PodCondition, PodSchedulingGroup};
use k8s_openapi::api::scheduling::v1beta1::{
    AllDisruptionMode, DisruptionMode, GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_engine::Priority;

use crate::queue_tree::LOCAL_QUEUE;
use crate::synthetic::{named, synthetic};
use reprieve_api::koordinator::label;
use reprieve_api::kueue::KueueWorkload;
use reprieve_api::quantity::{MAX_AMOUNT, format};
use reprieve_api::{InputError, NamespacedName, ObjectSet, Pod, PodSpec, PodStatus, Reader, Sourced, group_of, job_of};
use reprieve_loader::{Amounts, Defaults, Quarantine, WorkloadClasses, find_membership};

/// The name of the synthetic node in a cluster without nodes.
const NODE: &str = "cluster";
/// A workload with more pods is refused.
const MAX_PODS: i64 = 10_000;

/// A cluster in objects of Kubernetes itself.
#[derive(Clone, Debug)]
pub struct KubernetesObjects {
    /// Nodes, pods, PodGroups, classes, budgets.
    pub objects: ObjectSet,
    /// The Kueue workload of each pod.
    pub workload_of: BTreeMap<NamespacedName, NamespacedName>,
}

impl KubernetesObjects {
    /// Converts Koordinator's jobs to gangs, and Kueue's workloads to gangs that are evicted whole. Missing pods of workloads are created
    /// from their templates.
    pub fn from_objects(objects: &ObjectSet) -> Result<Self, InputError> {
        // LimitRanges and RuntimeClasses are not kept, because `pods_of` completes the templates of workloads.
        let objects_of_kubernetes = retain(objects, &[Reader::Kubernetes]);
        let mut plain = Self { objects: objects_of_kubernetes, workload_of: BTreeMap::new() };
        plain.add_jobs(objects);
        plain.add_workloads(objects)?;
        if objects.nodes.is_empty() && !plain.workload_of.is_empty() {
            let node = synthetic_node(objects, plain.objects.pods.len());
            plain.objects.nodes.push(synthetic(node));
        }
        Ok(plain)
    }

    /// Returns the ClusterQueue whose quota a pod uses.
    pub(crate) fn cluster_queue_of(&self, pod: &Pod, objects: &ObjectSet) -> Option<String> {
        let name = NamespacedName::from_meta(&pod.metadata);
        let queue_of = |queue: &str| {
            let local = NamespacedName::new(&name.namespace, queue);
            let found = objects.local_queues.iter().find(|one| one.name() == local)?;
            Some(found.object.spec.cluster_queue.clone())
        };
        let Some(workload) = self.workload_of.get(&name) else { return label(pod, LOCAL_QUEUE).and_then(queue_of) };
        let workload = objects.kueue_workloads.iter().find(|one| one.name() == *workload)?;
        let admission = workload.object.status.as_ref().and_then(|status| status.admission.as_ref());
        let admitted = admission.map(|admission| admission.cluster_queue.clone());
        admitted.or_else(|| queue_of(&workload.object.spec.queue_name))
    }

    /// Converts jobs to gangs of which all pods are required.
    fn add_jobs(&mut self, objects: &ObjectSet) {
        let mut jobs: BTreeMap<NamespacedName, Vec<usize>> = BTreeMap::new();
        for (index, pod) in objects.pods.iter().enumerate() {
            if let (Some(job), None) = (job_of(&pod.object), group_of(&pod.object)) {
                jobs.entry(job).or_default().push(index);
            }
        }
        for (job, members) in jobs {
            let defined = objects.koordinator_pod_groups.iter().find(|one| one.name() == job);
            let needed = defined.map_or(0, |job| usize::try_from(job.object.spec.min_member).unwrap_or(0));
            let needed = needed.max(members.len());
            self.gather(&job, &members, needed, None);
        }
    }

    fn add_workloads(&mut self, objects: &ObjectSet) -> Result<(), InputError> {
        let mut existing: BTreeMap<NamespacedName, Vec<usize>> = BTreeMap::new();
        let membership = find_membership(objects);
        let classes = WorkloadClasses::new(objects);
        let defaults = Defaults::new(objects);
        for (index, pod) in objects.pods.iter().enumerate() {
            if let Some((workload, _)) = membership.get(&pod.name()) {
                existing.entry(workload.clone()).or_default().push(index);
            }
        }
        for sourced in &objects.kueue_workloads {
            let workload = &sourced.object;
            if reprieve_loader::is_finished(workload) {
                continue;
            }
            let name = NamespacedName::from_meta(&workload.metadata);
            let mut members = existing.remove(&name).unwrap_or_default();
            let holds_quota = workload.status.as_ref().is_some_and(|status| status.admission.is_some());
            if members.is_empty() && (!holds_quota || objects.nodes.is_empty()) {
                let state = match (objects.nodes.is_empty(), holds_quota) {
                    (true, true) => SyntheticPodState::Running,
                    (true, false) => SyntheticPodState::PendingWithoutNodes,
                    (false, _) => SyntheticPodState::Pending,
                };
                // A workload whose class is missing is set aside.
                let Ok(priority) = classes.priority(&workload.spec) else { continue };
                let pods = pods_of(sourced, &name, priority, state, &defaults)?;
                members = (self.objects.pods.len()..self.objects.pods.len() + pods.len()).collect();
                self.objects.pods.extend(pods);
            }
            for &index in &members {
                self.workload_of
                    .insert(NamespacedName::from_meta(&self.objects.pods[index].object.metadata), name.clone());
            }
            if members.len() > 1 {
                let whole = DisruptionMode { all: Some(AllDisruptionMode::default()), ..DisruptionMode::default() };
                self.gather(&name, &members, members.len(), Some(whole));
            }
        }
        Ok(())
    }

    /// Combines pods to a gang, by default with the priority of its first pod. A PodGroup that already has this name is kept as it is.
    fn gather(
        &mut self,
        name: &NamespacedName,
        members: &[usize],
        needed: usize,
        disruption_mode: Option<DisruptionMode>,
    ) {
        let first = self.objects.pods[members[0]].object.spec.clone().unwrap_or_default();
        for &index in members {
            let spec = Arc::make_mut(&mut self.objects.pods[index].object).spec_mut();
            spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some(name.name.clone()) });
        }
        let gang = GangSchedulingPolicy { min_count: i32::try_from(needed).unwrap_or(i32::MAX) };
        let spec = PodGroupSpec {
            scheduling_policy: PodGroupSchedulingPolicy { gang: Some(gang), ..PodGroupSchedulingPolicy::default() },
            disruption_mode,
            priority: first.priority,
            priority_class_name: first.priority_class_name.clone(),
            preemption_policy: first.preemption_policy.clone(),
            ..PodGroupSpec::default()
        };
        let has_name = |group: &Sourced<PodGroup>| group.name() == *name;
        if !self.objects.pod_groups.iter().any(has_name) {
            let metadata = named(&name.name, Some(&name.namespace));
            self.objects.pod_groups.push(synthetic(PodGroup { metadata, spec, ..PodGroup::default() }));
        }
    }
}

/// The state of a pod that was created from a template.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SyntheticPodState {
    /// The pod runs on the synthetic node of a cluster without nodes.
    Running,
    /// The pod is pending in a cluster without nodes. It has no node selector, because the synthetic node has no labels.
    PendingWithoutNodes,
    /// The pod is pending in a cluster with nodes.
    Pending,
}

/// Returns the pods of a workload, running since the workload got its quota, or pending.
fn pods_of(
    sourced: &Sourced<KueueWorkload>,
    name: &NamespacedName,
    priority: Priority,
    state: SyntheticPodState,
    defaults: &Defaults,
) -> Result<Vec<Sourced<Pod>>, InputError> {
    let workload = &sourced.object;
    let sets = &workload.spec.pod_sets;
    let total = sets.iter().fold(0_i64, |sum, set| sum.saturating_add(set.count.max(0)));
    if total > MAX_PODS {
        let problem = format!("{total} pods are too many to compare policies; use at most {MAX_PODS}");
        return Err(sourced.locate(InputError::new(problem).field("spec.podSets")));
    }
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    let since: Option<&Time> = conditions
        .filter(|condition| condition.type_ == "QuotaReserved" && condition.status == "True")
        .map(|condition| &condition.last_transition_time)
        .next();
    let templates =
        sets.iter().flat_map(|set| (0..set.count.max(0)).map(|_| set.template.spec.clone().map(PodSpec::from)));
    let pod = |(index, template): (usize, Option<PodSpec>)| {
        let mut spec = template.unwrap_or_default();
        defaults.admit_spec(&name.namespace, &mut spec);
        spec.priority = Some(priority.0);
        if state != SyntheticPodState::Pending {
            (spec.node_selector, spec.affinity, spec.topology_spread_constraints) = (None, None, None);
        }
        let pod_name = if total == 1 { name.name.clone() } else { format!("{}-{index}", name.name) };
        let mut metadata = named(&pod_name, Some(&name.namespace));
        metadata.creation_timestamp.clone_from(&workload.metadata.creation_timestamp);
        let scheduled = since.map(|since| PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(since.clone()),
            ..PodCondition::default()
        });
        let status = match state {
            SyntheticPodState::Running => PodStatus {
                phase: Some("Running".to_owned()),
                start_time: since.cloned(),
                conditions: Some(scheduled.into_iter().collect()),
                ..PodStatus::default()
            },
            SyntheticPodState::PendingWithoutNodes | SyntheticPodState::Pending => {
                PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() }
            }
        };
        let node_name = (state == SyntheticPodState::Running).then(|| NODE.to_owned());
        synthetic(Pod { node_name, status: Some(status), ..Pod::new(metadata, spec) })
    };
    Ok(templates.enumerate().map(pod).collect())
}

/// Returns a node with the sum of all nominal quotas, so that only quota limits the pods.
fn synthetic_node(objects: &ObjectSet, n_pods: usize) -> Node {
    let mut offered = Amounts::new();
    for (resource, amount) in reprieve_loader::queue_specs(objects, &mut Quarantine::unreported())
        .into_iter()
        .flat_map(|queue| queue.guarantee)
    {
        let sum = offered.entry(resource).or_default();
        *sum = sum.saturating_add(amount).min(MAX_AMOUNT);
    }
    offered.insert("pods".to_owned(), i64::try_from(n_pods).unwrap_or(i64::MAX));
    let quantity = |(resource, amount): (String, i64)| {
        let quantity = Quantity(format(&resource, amount));
        (resource, quantity)
    };
    let allocatable = Some(offered.into_iter().map(quantity).collect());
    let status = Some(NodeStatus { allocatable, ..NodeStatus::default() });
    Node { metadata: named(NODE, None), status, ..Node::default() }
}

pub(crate) fn retain(objects: &ObjectSet, readers: &[Reader]) -> ObjectSet {
    let mut kept = objects.clone();
    kept.retain_kinds(|kind| readers.iter().any(|reader| kind.resource().reader.includes(*reader)));
    kept
}

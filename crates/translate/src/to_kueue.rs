//! Translates queues to Kueue's ClusterQueues and Cohorts, and gangs and single pods to its Workloads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use reprieve_loader::build::allocatable;
use reprieve_loader::requests::requests;
use reprieve_loader::time::time;
use reprieve_loader::{Amounts, Loaded, QueueSpec, by_name};

use crate::kueue_objects::{ROOT, cluster_queue, cohort, flavor, flavor_quotas, local_queue, resource_groups};
use crate::queue_tree::NeutralQueues;
use crate::synthetic::{named, source, synthetic};
use reprieve_api::kueue::{
    AdmissionSpec, KueueWorkload, KueueWorkloadSpec, KueueWorkloadStatus, POD_SET, PodSetAssignment, PodSetSpec,
    WORKLOAD,
};
use reprieve_api::quantity::format;
use reprieve_api::{InputError, NamespacedName, Object, ObjectSet, Pod, Sourced, group_of};

/// The only flavor.
const FLAVOR: &str = "default";

/// A cluster in the objects of a policy.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The objects of the cluster.
    pub objects: ObjectSet,
    /// The workload of each pod, if the policy has workloads.
    pub workload_of: BTreeMap<NamespacedName, NamespacedName>,
}

/// Converts Kueue's queues to those of other policies: a cohort's guarantee includes the quota below it, and the limit of a root is its
/// quota, because it cannot borrow.
pub(crate) fn limit_roots_to_their_quota(mut queues: Vec<QueueSpec>) -> Vec<QueueSpec> {
    let depth =
        |queues: &[QueueSpec], index: usize| std::iter::successors(Some(index), |&index| queues[index].parent).count();
    let mut deepest_first: Vec<usize> = (0..queues.len()).collect();
    deepest_first.sort_by_key(|&index| std::cmp::Reverse(depth(&queues, index)));
    let mut below: Vec<Amounts> = vec![Amounts::new(); queues.len()];
    for index in deepest_first {
        let queue = &mut queues[index];
        let mut total = std::mem::take(&mut below[index]);
        for (resource, sum) in &total {
            if let Some(own) = queue.guarantee.get(resource) {
                queue.guarantee.insert(resource.clone(), own.saturating_add(*sum));
            }
            if let Some(own) = queue.limit.get(resource) {
                queue.limit.insert(resource.clone(), own.saturating_add(*sum));
            }
        }
        total.extend(queue.guarantee.clone());
        match queue.parent {
            None => queue.limit = total,
            Some(parent) => {
                for (resource, amount) in total {
                    let sum = below[parent].entry(resource).or_default();
                    *sum = sum.saturating_add(amount);
                }
            }
        }
    }
    queues
}

/// Returns a Cohort for each queue with children, a ClusterQueue with a LocalQueue in each namespace for each other queue, and a root
/// Cohort with the resources of the nodes beyond all guarantees, which every queue can borrow. `unlimited` has the nominal quota of each
/// ClusterQueue for resources that no queue mentions; other such resources are not covered.
pub fn queue_objects(
    queues: &NeutralQueues,
    offered: &Amounts,
    unlimited: &Amounts,
    namespaces: &BTreeSet<&str>,
) -> Vec<Object> {
    let mentioned = queues.resources();
    let resources: BTreeSet<&str> = mentioned.iter().copied().chain(unlimited.keys().map(String::as_str)).collect();
    let unlimited = |resource: &str| unlimited.get(resource).filter(|_| !mentioned.contains(resource)).copied();
    let resource_groups =
        |quota: &dyn Fn(&str) -> (i64, Option<i64>)| resource_groups(vec![flavor_quotas(FLAVOR, &resources, quota)]);
    let root = resource_groups(&|resource| {
        let offered = offered.get(resource).filter(|_| mentioned.contains(resource)).copied().unwrap_or(0);
        (offered.saturating_sub(queues.guaranteed_below(None, resource)).max(0), None)
    });
    let mut objects = vec![Object::from(flavor(FLAVOR, BTreeMap::new())), Object::from(cohort(ROOT, None, root))];
    for (index, queue) in queues.queues.iter().enumerate() {
        let is_cohort = queues.has_children(index);
        let quota = resource_groups(&|resource| match unlimited(resource) {
            Some(amount) => (if is_cohort { 0 } else { amount }, None),
            None => {
                let guarantee = queues.guarantee(index, resource);
                let limit = queue.limit.get(resource).map(|limit| limit.saturating_sub(guarantee).max(0));
                (guarantee.saturating_sub(queues.guaranteed_below(Some(index), resource)).max(0), limit)
            }
        });
        let above = queue.parent.map_or(ROOT, |parent| &queues.queues[parent].name);
        if is_cohort {
            objects.push(Object::from(cohort(&queue.name, Some(above), quota)));
        } else {
            objects.push(Object::from(cluster_queue(&queue.name, above, quota)));
            objects.extend(namespaces.iter().map(|namespace| Object::from(local_queue(&queue.name, namespace))));
        }
    }
    objects
}

/// The allocatable amounts of all nodes that can be read.
fn offered_by_nodes(plain: &ObjectSet) -> impl Iterator<Item = (String, i64)> + use<> {
    let nodes = by_name::<String, _>(&plain.nodes).into_values();
    let amounts: Vec<Amounts> = nodes.filter_map(|node| allocatable(&node.object).ok()).collect();
    amounts.into_iter().flatten()
}

impl NeutralQueues {
    /// The cluster with these queues and a Workload for each unit.
    pub(crate) fn to_kueue(&self, plain: &ObjectSet, loaded: &Loaded) -> Result<Translated, InputError> {
        let mut translated = plain.clone();
        let mut offered = Amounts::new();
        for (resource, amount) in offered_by_nodes(plain) {
            let sum = offered.entry(resource).or_default();
            *sum = sum.saturating_add(amount);
        }
        let namespaces = self.of_pod.keys().map(|pod| pod.namespace.as_str()).collect();
        let queues = self.with_guarantees_of_children();
        for object in queue_objects(&queues, &offered, &Amounts::new(), &namespaces) {
            translated.push(&object, &source());
        }
        let units = self.units(plain, loaded);
        translated.kueue_workloads = units.iter().map(|(name, pods)| self.workload(name, pods, loaded)).collect();
        let workload_of = units.into_iter().flat_map(|(name, pods)| {
            pods.into_iter().map(move |pod| (NamespacedName::from_meta(&pod.metadata), name.clone()))
        });
        let workload_of: BTreeMap<NamespacedName, NamespacedName> = workload_of.collect();
        for pod in &mut translated.pods {
            let name = pod.name();
            if let Some(workload) = workload_of.get(&name) {
                let metadata = &mut Arc::make_mut(&mut pod.object).metadata;
                metadata.annotations.get_or_insert_default().insert(WORKLOAD.to_owned(), workload.name.clone());
                metadata.labels.get_or_insert_default().insert(POD_SET.to_owned(), name.name);
            }
        }
        Ok(Translated { objects: translated, workload_of })
    }

    /// Returns the pods of each workload. The running part of a gang that runs only in part is a separate workload.
    fn units<'p>(&self, plain: &'p ObjectSet, loaded: &Loaded) -> BTreeMap<NamespacedName, Vec<&'p Pod>> {
        let groups: BTreeSet<NamespacedName> = plain.pods.iter().filter_map(|pod| group_of(&pod.object)).collect();
        let mut units: BTreeMap<NamespacedName, (Vec<&Pod>, Vec<&Pod>)> = BTreeMap::new();
        for Sourced { object: pod, .. } in &plain.pods {
            let name = NamespacedName::from_meta(&pod.metadata);
            let Some(id) = loaded.names.pod_id(&name).filter(|_| self.of_pod.contains_key(&name)) else { continue };
            let unit = match group_of(pod) {
                Some(group) => group,
                None if groups.contains(&name) => NamespacedName::new(&name.namespace, &format!("{}-pod", name.name)),
                None => name,
            };
            let (running, pending) = units.entry(unit).or_default();
            let part = if loaded.snapshot.bound_node(id).is_some() { running } else { pending };
            part.push(pod);
        }
        let mut split = BTreeMap::new();
        for (name, (running, pending)) in units {
            if running.is_empty() || pending.is_empty() {
                split.insert(name, if running.is_empty() { pending } else { running });
            } else {
                split.insert(NamespacedName::new(&name.namespace, &format!("{}-running", name.name)), running);
                split.insert(name, pending);
            }
        }
        split
    }

    fn workload(&self, name: &NamespacedName, pods: &[&Pod], loaded: &Loaded) -> Sourced<KueueWorkload> {
        let first = NamespacedName::from_meta(&pods[0].metadata);
        let queue = &self.queues[self.of_pod[&first]].name;
        let ids: Vec<_> =
            pods.iter().filter_map(|pod| loaded.names.pod_id(&NamespacedName::from_meta(&pod.metadata))).collect();
        let running = ids.iter().all(|&id| loaded.snapshot.bound_node(id).is_some());
        let requested: Vec<(String, Amounts)> = pods.iter().map(|pod| self.requests_of(pod)).collect();
        let sets = requested.iter().map(|(name, amounts)| pod_set(name, amounts));
        let since = ids.iter().map(|&id| loaded.snapshot.pod(id).start).min().and_then(time);
        let admission = running.then(|| AdmissionSpec {
            cluster_queue: queue.clone(),
            pod_set_assignments: requested
                .iter()
                .map(|(name, amounts)| self.assignment(name, amounts.clone()))
                .collect(),
        });
        let reserved = Condition {
            type_: "QuotaReserved".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Time(since.unwrap_or_default()),
            message: String::new(),
            observed_generation: None,
            reason: "QuotaReserved".to_owned(),
        };
        let conditions = admission.iter().map(|_| reserved.clone()).collect();
        let mut metadata = named(&name.name, Some(&name.namespace));
        metadata.creation_timestamp.clone_from(&pods[0].metadata.creation_timestamp);
        synthetic(KueueWorkload {
            metadata,
            spec: KueueWorkloadSpec {
                queue_name: queue.clone(),
                priority: ids.first().map(|&id| loaded.snapshot.pod(id).priority.0),
                pod_sets: sets.collect(),
                ..KueueWorkloadSpec::default()
            },
            status: Some(KueueWorkloadStatus { admission, conditions, ..KueueWorkloadStatus::default() }),
            ..KueueWorkload::default()
        })
    }

    fn requests_of(&self, pod: &Pod) -> (String, Amounts) {
        // A pod with unreadable requests is set aside, and uses no quota that could be translated.
        let mut amounts = requests(pod).unwrap_or_default();
        let resources = self.resources();
        amounts.retain(|resource, _| resources.contains(resource.as_str()));
        (NamespacedName::from_meta(&pod.metadata).name, amounts)
    }

    /// Returns the quota of a pod set with one pod. If a queue has quota for `pods`, the pod itself counts.
    fn assignment(&self, name: &str, mut amounts: Amounts) -> PodSetAssignment {
        if self.resources().contains("pods") {
            amounts.insert("pods".to_owned(), 1);
        }
        let usage = amounts.iter().map(|(resource, amount)| (resource.clone(), json!(format(resource, *amount))));
        PodSetAssignment {
            name: name.to_owned(),
            resource_usage: usage.collect(),
            flavors: amounts.into_keys().map(|resource| (resource, FLAVOR.to_owned())).collect(),
            count: Some(1),
        }
    }
}

fn pod_set(name: &str, amounts: &Amounts) -> PodSetSpec {
    let requests =
        amounts.iter().map(|(resource, amount)| (resource.clone(), Quantity(format(resource, *amount)))).collect();
    let resources = ResourceRequirements { requests: Some(requests), ..ResourceRequirements::default() };
    let container = Container { name: "all".to_owned(), resources: Some(resources), ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    let template = PodTemplateSpec { spec: Some(spec), ..PodTemplateSpec::default() };
    PodSetSpec { name: name.to_owned(), count: 1, template, ..PodSetSpec::default() }
}

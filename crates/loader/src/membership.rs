//! Assigns pods to Kueue workloads, and creates synthetic pods for pending workloads. Under `placement: Joint` of policy Kueue,
//! [`crate::build`] needs both to decide about quota and nodes together.
//!
//! Kueue sets the annotation `kueue.x-k8s.io/workload` and the label `kueue.x-k8s.io/podset` on the pods that it starts. A pod without the
//! annotation belongs to the workload with the same owner, or to the workload that the pod itself owns. Owners are those of the pod's
//! namespace; if both references, or the reference and the pod, have a uid, it must be the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use reprieve_engine::snapshot::{Pod, Snapshot};
use reprieve_engine::workloads::{FlavorNodes, Workload};
use reprieve_engine::{PodId, WorkloadId};

use crate::builder::{NodeDraft, ReadPod};
use crate::quarantine::{Quarantine, key_of};
use crate::{Defaults, Names, SnapshotBuilder, by_name, nth_rank};
use reprieve_api::kueue::{KueueWorkload, POD_SET, PodSetSpec, WORKLOAD};
use reprieve_api::{
    InputError, Kind, NamespacedName, ObjectKey, ObjectSet, Pod as ApiPod, PodSpec, ProblemCode, Sourced,
};

/// More synthetic pods than any cluster has are refused.
const MAX_PODS: i64 = 1_000_000;

/// The workload of each pod, and the index of its pod set.
pub type WorkloadMembership = BTreeMap<NamespacedName, (NamespacedName, usize)>;

/// The namespace, kind and name of an owner.
type OwnerKey<'o> = (&'o str, &'o str, &'o str);

/// Finds the workload of every pod that has one.
pub fn find_membership(objects: &ObjectSet) -> WorkloadMembership {
    let workloads: BTreeMap<NamespacedName, &KueueWorkload> =
        objects.kueue_workloads.iter().map(|workload| (workload.name(), &*workload.object)).collect();
    let mut owned: BTreeMap<OwnerKey<'_>, Vec<(&str, &NamespacedName)>> = BTreeMap::new();
    for (name, workload) in &workloads {
        for owner in workload.metadata.owner_references.iter().flatten() {
            owned.entry((&name.namespace, &owner.kind, &owner.name)).or_default().push((&owner.uid, name));
        }
    }
    let owned_by = |namespace: &str, kind: &str, name: &str, uid: &str| {
        // Of several workloads with the same owner the last by name counts.
        let mut all = owned.get(&(namespace, kind, name))?.iter().rev();
        let is_same = |of: &&(&str, &NamespacedName)| of.0 == uid || of.0.is_empty() || uid.is_empty();
        all.find(is_same).map(|(_, workload)| NamespacedName::clone(workload))
    };
    let mut membership = WorkloadMembership::new();
    for pod in &objects.pods {
        let metadata = &pod.object.metadata;
        let name = NamespacedName::from_meta(metadata);
        let written = metadata.annotations.as_ref().and_then(|annotations| annotations.get(WORKLOAD));
        let named = written.map(|workload| NamespacedName::new(&name.namespace, workload));
        let controller = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        let by_owner = |owner: &OwnerReference| owned_by(&name.namespace, &owner.kind, &owner.name, &owner.uid);
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let by_pod = || owned_by(&name.namespace, "Pod", &name.name, uid);
        let workload = named.or_else(|| controller.and_then(by_owner)).or_else(by_pod);
        if let Some((workload, object)) = workload.and_then(|name| workloads.get_key_value(&name)) {
            membership.insert(name, (workload.clone(), pod_set_of(metadata, object)));
        }
    }
    membership
}

/// Returns the bound pods of every admitted workload.
pub fn bound_pods(objects: &ObjectSet, snapshot: &Snapshot, names: &Names) -> BTreeMap<WorkloadId, Vec<PodId>> {
    let mut pods: BTreeMap<WorkloadId, Vec<PodId>> = BTreeMap::new();
    for (pod, (workload, _)) in find_membership(objects) {
        let Some((pod, workload)) = names.pod_id(&pod).zip(names.workload_id(&workload)) else { continue };
        if snapshot.bound_node(pod).is_some() && snapshot.workload(workload).admission.is_some() {
            pods.entry(workload).or_default().push(pod);
        }
    }
    pods
}

fn pod_set_of(metadata: &ObjectMeta, workload: &KueueWorkload) -> usize {
    let named = metadata.labels.as_ref().and_then(|labels| labels.get(POD_SET));
    let position = |name: &String| workload.spec.pod_sets.iter().position(|set| set.name == *name);
    named.and_then(position).unwrap_or_default()
}

/// The pods of a pending workload's pod set that do not exist yet.
struct SyntheticPods {
    /// The pod without a name of its own.
    template: ApiPod,
    workload: NamespacedName,
    /// The index and the name of the pod set.
    set: (usize, String),
    count: usize,
}

/// Returns the missing pods of pending workloads. A pod set with more pods than all nodes can hold (`max_pods`) gets none, because it
/// cannot fit. If there are too many pods, the largest workloads of the namespaces with most pods get none and are set aside, so that a
/// namespace with fewer pods is not affected.
fn missing_pods(
    objects: &ObjectSet,
    membership: &WorkloadMembership,
    pods: &[(NamespacedName, Pod)],
    max_pods: i64,
    defaults: &Defaults,
    too_large: &mut Vec<NamespacedName>,
) -> Vec<SyntheticPods> {
    let mut existing: BTreeMap<(&NamespacedName, usize), i64> = BTreeMap::new();
    for (name, _) in pods.iter().filter(|(_, pod)| is_pending(pod)) {
        if let Some((workload, set)) = membership.get(name) {
            *existing.entry((workload, *set)).or_default() += 1;
        }
    }
    let missing_of = |name: &NamespacedName, sourced: &Sourced<KueueWorkload>| {
        let sets = sourced.object.spec.pod_sets.iter().enumerate().filter(|(_, set)| set.count <= max_pods);
        let counts = sets.map(|(index, set)| {
            let count = set.count.saturating_sub(existing.get(&(name, index)).copied().unwrap_or_default());
            (index, count.max(0))
        });
        let counts: Vec<(usize, i64)> = counts.collect();
        let total = counts.iter().fold(0_i64, |sum, (_, count)| sum.saturating_add(*count));
        (total, counts)
    };
    let is_pending =
        |workload: &KueueWorkload| workload.status.as_ref().is_none_or(|status| status.admission.is_none());
    let named = by_name::<NamespacedName, _>(&objects.kueue_workloads).into_iter();
    let named = named.filter(|(_, sourced)| is_pending(&sourced.object));
    let workloads = named.map(|(name, sourced)| {
        let (total, counts) = missing_of(&name, sourced);
        (total, name, sourced, counts)
    });
    let mut workloads: Vec<_> = workloads.collect();
    let mut by_namespace: BTreeMap<String, i64> = BTreeMap::new();
    for (total, name, ..) in &workloads {
        let sum = by_namespace.entry(name.namespace.clone()).or_default();
        *sum = sum.saturating_add(*total);
    }
    workloads.sort_by_cached_key(|(total, name, ..)| {
        (by_namespace.get(&name.namespace).copied(), name.namespace.clone(), *total, name.clone())
    });
    let (mut all, mut sum) = (Vec::new(), 0_i64);
    for (total, name, sourced, counts) in workloads {
        sum = sum.saturating_add(total);
        if sum > MAX_PODS {
            too_large.push(name);
            continue;
        }
        for (index, count) in counts {
            let set = &sourced.object.spec.pod_sets[index];
            let count = usize::try_from(count).unwrap_or_default();
            let template = template(&name, set, defaults);
            all.push(SyntheticPods { template, workload: name.clone(), set: (index, set.name.clone()), count });
        }
    }
    all
}

impl SyntheticPods {
    /// Returns names that no object can have: `WORKLOAD/SET-0`.
    fn names(&self) -> impl Iterator<Item = NamespacedName> + '_ {
        let (NamespacedName { namespace, name }, (_, set)) = (&self.workload, &self.set);
        (0..self.count).map(move |index| NamespacedName::new(namespace, &format!("{name}/{set}-{index}")))
    }
}

/// Returns a pod of a pod set, completed as by the API server.
fn template(workload: &NamespacedName, set: &PodSetSpec, defaults: &Defaults) -> ApiPod {
    let mut metadata = set.template.metadata.clone().unwrap_or_default();
    metadata.namespace = Some(workload.namespace.clone());
    metadata.name = Some(format!("{}/{}", workload.name, set.name));
    metadata.labels.get_or_insert_default().insert(POD_SET.to_owned(), set.name.clone());
    metadata.annotations.get_or_insert_default().insert(WORKLOAD.to_owned(), workload.name.clone());
    let mut spec = PodSpec::from(set.template.spec.clone().unwrap_or_default());
    defaults.admit_spec(&workload.namespace, &mut spec);
    ApiPod { node_name: None, ..ApiPod::new(metadata, spec) }
}

impl SnapshotBuilder {
    /// Adds the missing pods of pending workloads to `pods`, in the order of names. Returns the workload of each pod. A workload whose pods
    /// cannot be read is set aside.
    pub fn add_synthetic_pods(
        &mut self,
        objects: &ObjectSet,
        max_pods: i64,
        pods: &mut Vec<(NamespacedName, Pod)>,
        broken: &mut BTreeSet<NamespacedName>,
        quarantine: &mut Quarantine,
    ) -> WorkloadMembership {
        let mut membership = find_membership(objects);
        let mut too_large = Vec::new();
        for missing in missing_pods(objects, &membership, pods, max_pods, &Defaults::new(objects), &mut too_large) {
            let key = ObjectKey::new(Kind::KueueWorkload, missing.workload.clone());
            let ReadPod { pod, problem, .. } = self.read_pod(&missing.workload, &missing.template, None);
            if let Some(mut problem) = problem {
                let field = problem.error.field.take().unwrap_or_default();
                problem.error.field = Some(format!("spec.podSets[{}].template.{field}", missing.set.1));
                quarantine.add(key, None, problem);
                broken.insert(missing.workload.clone());
            } else if let Some(pod) = pod {
                for name in missing.names() {
                    membership.entry(name.clone()).or_insert_with(|| (missing.workload.clone(), missing.set.0));
                    pods.push((name, pod.clone()));
                }
            }
        }
        for name in too_large {
            let problem = format!("all pending workloads have more than {MAX_PODS} pods; lower the count");
            let error = InputError::new(problem).field("spec.podSets").code(ProblemCode::TooLarge);
            quarantine.add(ObjectKey::new(Kind::KueueWorkload, name.clone()), None, error);
            broken.insert(name);
        }
        // Of a workload that is set aside, the synthetic pods of its other pod sets are removed too. Only they have a name with `/`.
        pods.retain(|(name, _)| {
            membership.get(name).is_none_or(|(workload, _)| !broken.contains(workload)) || !name.name.contains('/')
        });
        pods.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (index, (_, pod)) in pods.iter_mut().enumerate() {
            pod.rank = nth_rank(index);
        }
        membership
    }

    /// Returns for each flavor, in the order of names, the nodes with its labels, and its tolerations. A flavor that cannot be read has no
    /// nodes and is set aside.
    pub fn flavors(
        &mut self,
        objects: &ObjectSet,
        nodes: &[NodeDraft<'_>],
        broken: &mut BTreeSet<String>,
        quarantine: &mut Quarantine,
    ) -> Vec<FlavorNodes> {
        let mut flavors = Vec::new();
        for (name, flavor) in by_name::<String, _>(&objects.resource_flavors) {
            let spec = &flavor.object.spec;
            let has_labels = |node: &NodeDraft<'_>| {
                let labels = node.object.metadata.labels.as_ref();
                let has = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
                spec.node_labels.iter().all(has)
            };
            let tolerations = spec.tolerations.iter().map(|toleration| self.interners.toleration(toleration));
            match tolerations.collect::<Result<Vec<_>, _>>() {
                Ok(tolerations) => {
                    flavors.push(FlavorNodes { nodes: nodes.iter().map(has_labels).collect(), tolerations });
                }
                Err(error) => {
                    quarantine.add(key_of(flavor), Some(&flavor.source), error);
                    broken.insert(name);
                    flavors.push(FlavorNodes { nodes: vec![false; nodes.len()], tolerations: Vec::new() });
                }
            }
        }
        flavors
    }
}

fn is_pending(pod: &Pod) -> bool {
    pod.node.is_none() && pod.terminating.is_none()
}

/// Assigns to every pod set its pending pods and, if the workload is admitted, its bound pods.
pub fn assign_pods(
    workloads: &mut [Workload],
    names: &[NamespacedName],
    membership: &WorkloadMembership,
    pods: &[(NamespacedName, Pod)],
) {
    for (index, (name, pod)) in pods.iter().enumerate() {
        let Some((workload, set)) = membership.get(name) else { continue };
        let Ok(owner) = names.binary_search(workload) else { continue };
        let admitted = workloads[owner].admission.is_some();
        if let Some(set) = workloads[owner].pod_sets.get_mut(*set)
            && (is_pending(pod) || admitted && pod.node.is_some())
        {
            set.pods.push(PodId::new(index));
        }
    }
}

//! Builds a snapshot from a complete list of objects. `cli` and `simulator` call [`load_for`]; [`crate::cache`] calls [`build_for`].

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node as ApiNode;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::PlacementMode;
use reprieve_engine::queues::QueueTree;
use reprieve_engine::snapshot::{Cluster, Group, Job, Node, Pod, Snapshot, Topology};
use reprieve_engine::workloads::QuotaRules;
use reprieve_engine::{ApplicationId, JobId, NodeId, PodId, Policy, WorkloadId};

use crate::builder::NodeDraft;
use crate::names::{Numbered, QueueNames};
use crate::owner_gangs::assign_gangs;
use crate::quarantine::{self, Quarantine, Quarantined, key_of};
use crate::queue_settings::LoadScope;
use crate::quota::{BrokenForKueue, kueue_tables};
use crate::{Amounts, Names, SnapshotBuilder, Warning, by_name, membership, nth_rank, requests};
use reprieve_api::{InputError, NamespacedName, ObjectSet};

/// A snapshot with the names of its objects.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The input of a decision.
    pub snapshot: Snapshot,
    /// The names of the ids in the snapshot.
    pub names: Names,
    /// Problems of the input that do not prevent a decision.
    pub warnings: Vec<Warning>,
    /// The objects that are set aside, in the order of kinds, names and fields.
    pub quarantined: Vec<Quarantined>,
    /// The bound pods of admitted workloads under policy Kueue with `placement: QuotaOnly`. Decisions do not read them; only the report
    /// of violated disruption budgets does. [`crate::cache`] leaves the map empty.
    pub workload_pods: BTreeMap<WorkloadId, Vec<PodId>>,
    /// The nodes whose room is not known, with the bound pods that are set aside there. Such a node offers nothing; only reports read this.
    pub blocked: BTreeMap<NodeId, BTreeSet<NamespacedName>>,
}

pub use crate::on_invalid::OnInvalid;

/// Builds the snapshot for policy Kubernetes. The result does not depend on the order of the objects.
pub fn load(objects: &ObjectSet, on_invalid: OnInvalid) -> Result<Loaded, InputError> {
    load_for(objects, on_invalid, &Policy::Kubernetes(Kubernetes::default()))
}

/// Builds the snapshot for a policy. Its settings matter: `placement: Joint` of policy Kueue adds the pods of workloads, and policy
/// Kubernetes may limit preemption priorities.
pub fn load_for(objects: &ObjectSet, on_invalid: OnInvalid, policy: &Policy) -> Result<Loaded, InputError> {
    load_as(objects, on_invalid, policy, &LoadScope::default())
}

/// Builds the snapshot for one scheduler with its queues, which does not place members of gangs that name another scheduler. Without a name,
/// each gang belongs to the scheduler that its members name.
pub fn load_as(
    objects: &ObjectSet,
    on_invalid: OnInvalid,
    policy: &Policy,
    scope: &LoadScope,
) -> Result<Loaded, InputError> {
    let mut quarantine = Quarantine::new(policy);
    quarantine.add_duplicates(objects);
    let (mut loaded, _) = build(objects, policy, scope, &mut quarantine);
    if on_invalid == OnInvalid::Reject
        && let Some(first) = loaded.quarantined.first()
    {
        let cause = quarantine::root_cause(&loaded.quarantined, &first.object);
        return Err(cause.unwrap_or(first).error.clone());
    }
    loaded.warnings.extend(quarantine::warnings(&loaded.quarantined).into_iter().map(Warning::from));
    if let Policy::Kueue(kueue) = policy
        && kueue.placement == PlacementMode::QuotaOnly
        && !loaded.snapshot.budgets().is_empty()
    {
        loaded.workload_pods = membership::bound_pods(objects, &loaded.snapshot, &loaded.names);
    }
    Ok(loaded)
}

/// Builds the snapshot from the objects that can be read, and returns the builder, with which the caller can convert more objects later.
/// Building never fails: an object that cannot be read is set aside, and so is what refers to it.
pub fn build_for(objects: &ObjectSet, policy: &Policy, scope: &LoadScope) -> (Loaded, SnapshotBuilder) {
    build(objects, policy, scope, &mut Quarantine::new(policy))
}

/// The same; `quarantine` has the object that is being read, in case of a panic.
pub(crate) fn build(
    objects: &ObjectSet,
    policy: &Policy,
    scope: &LoadScope,
    quarantine: &mut Quarantine,
) -> (Loaded, SnapshotBuilder) {
    let joint = matches!(policy, Policy::Kueue(kueue) if kueue.placement == PlacementMode::Joint);
    // 0. The gangs that owners form.
    let (objects, as_stated) = assign_gangs(objects, policy);
    let objects = objects.as_ref();
    // 1. Objects to which pods refer: classes, namespaces, groups, jobs and queues.
    let (mut builder, named_groups) = SnapshotBuilder::new(objects, policy, scope, quarantine);
    builder.add_unreadable(objects, quarantine);
    builder.warnings.extend(as_stated.map(Warning::from));
    // 2. The nodes that can be read.
    let drafts = node_drafts(objects, &mut builder, quarantine);
    builder.block_nodes_of_unreadable(objects);
    // 3. The pods. Under `placement: Joint` also the pods that pending workloads will have.
    let mut pods = builder.pods(objects, quarantine);
    let mut broken = BrokenForKueue::default();
    let membership = if joint {
        let max_pods = drafts.iter().filter_map(|node| node.allocatable.get("pods"));
        let max_pods = max_pods.fold(0_i64, |sum, pods| sum.saturating_add(*pods));
        builder.add_synthetic_pods(objects, max_pods, &mut pods, &mut broken.workloads, quarantine)
    } else {
        BTreeMap::new()
    };
    quarantine.reading = None;
    builder.set_aside_beyond_sum(&mut pods, quarantine);
    // 4. Groups, flavors and nodes, now that all labels that pods, groups and flavors read are known.
    let groups = builder.groups_with_topologies(named_groups);
    let flavors = if joint { builder.flavors(objects, &drafts, &mut broken.flavors, quarantine) } else { Vec::new() };
    let (topologies, domains) = builder.topologies(&drafts);
    let nodes = builder.nodes(drafts);
    // 5. The tables of the engine without queues and budgets.
    let mut cluster = tables(&builder, nodes, &pods, groups, topologies);
    // 6. Queues, and the workloads in them.
    let scheduler = (builder.obstacles.schedulers.name(), joint);
    let kueue = kueue_tables(objects, scheduler, &broken, &mut builder.interners.texts, quarantine);
    quarantine.reading = None;
    let (queues, warnings) = builder.queues.fill(&mut cluster, builder.interners.resources.names(), kueue);
    if matches!(policy, Policy::Kueue(_)) {
        builder.warnings.extend(warnings.into_iter().map(Warning::from));
    }
    cluster.quota_rules.flavors = flavors;
    membership::assign_pods(&mut cluster.workloads, &queues.workloads.names, &membership, &pods);
    // 7. Disruption budgets.
    builder.add_budgets(objects, &mut cluster, &pods, quarantine);
    quarantine.reading = None;
    // 8. Nodes whose room is not known.
    builder.allocatable = cluster.nodes.iter().map(|node| node.allocatable.clone()).collect();
    for &node in builder.blocked.keys() {
        cluster.nodes[node.index()].allocatable = builder.offered(node);
    }
    // 9. The names of all ids.
    let names = names(&builder, pods, queues, domains);
    builder.shapes.new.clear();
    let warnings = std::mem::take(&mut builder.warnings);
    let (snapshot, quarantined) = (Snapshot::new(cluster), quarantine.take_list());
    let blocked = builder.blocked.clone();
    (Loaded { snapshot, names, warnings, quarantined, workload_pods: BTreeMap::new(), blocked }, builder)
}

/// Reads the nodes, in the order of their names, and gives them ids. A node that cannot be read is set aside.
fn node_drafts<'o>(
    objects: &'o ObjectSet,
    builder: &mut SnapshotBuilder,
    quarantine: &mut Quarantine,
) -> Vec<NodeDraft<'o>> {
    let mut drafts = Vec::new();
    for (name, sourced) in by_name::<String, _>(&objects.nodes) {
        quarantine.reads(sourced);
        let object = &*sourced.object;
        let taints = object.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let taints: Result<Vec<_>, _> = taints.map(|taint| builder.interners.taint(taint)).collect();
        match taints.and_then(|_| allocatable(object)) {
            Ok(allocatable) => drafts.push(NodeDraft { name, object, allocatable }),
            Err(error) => {
                quarantine.add(key_of(sourced), Some(&sourced.source), error);
                builder.broken.nodes.insert(name, key_of(sourced));
            }
        }
    }
    let numbered = drafts.iter().enumerate().map(|(index, node)| (node.name.clone(), NodeId::new(index)));
    builder.nodes = numbered.collect();
    drafts
}

/// Returns the tables of the engine without queues, workloads and budgets.
fn tables(
    builder: &SnapshotBuilder,
    nodes: Vec<Node>,
    pods: &[(NamespacedName, Pod)],
    groups: Vec<Group>,
    topologies: Vec<Topology>,
) -> Cluster {
    let job = |(index, (_, min_member)): (usize, &(JobId, usize))| Job {
        rank: nth_rank(index),
        min_member: *min_member,
        members: Vec::new(),
    };
    let mut cluster = Cluster {
        n_resources: builder.interners.resources.names().len(),
        nodes,
        shapes: builder.shapes(),
        pods: pods.iter().map(|(_, pod)| pod.clone()).collect(),
        groups,
        jobs: builder.jobs.values().enumerate().map(job).collect(),
        budgets: Vec::new(),
        topologies,
        queues: QueueTree::default(),
        workloads: Vec::new(),
        quota_rules: QuotaRules::default(),
        numbers: builder.interners.values.names().iter().map(|value| value.parse().ok()).collect(),
    };
    for (index, pod) in cluster.pods.iter().enumerate() {
        if let Some(job) = pod.job {
            cluster.jobs[job.index()].members.push(PodId::new(index));
        }
        if let Some(group) = pod.group {
            cluster.groups[group.index()].members.push(PodId::new(index));
        }
    }
    mark_originators(&mut cluster.pods);
    cluster
}

fn names(
    builder: &SnapshotBuilder,
    pods: Vec<(NamespacedName, Pod)>,
    queues: QueueNames,
    domains: Vec<Vec<String>>,
) -> Names {
    let interners = &builder.interners;
    let groups = Numbered { names: builder.groups.keys().cloned().collect(), ids: builder.groups.clone() };
    Names {
        nodes: builder.nodes.keys().cloned().collect(),
        pods: Numbered::new(pods.into_iter().map(|(name, _)| name).collect(), PodId::new),
        groups,
        jobs: builder.jobs.keys().cloned().collect(),
        budgets: builder.budgets.iter().map(|rule| rule.name.clone()).collect(),
        queues,
        resources: interners.resources.names().to_vec(),
        topologies: interners.topologies.names().to_vec(),
        domains,
        keys: interners.keys.names().to_vec(),
        values: interners.values.names().to_vec(),
        texts: interners.texts.names().to_vec(),
    }
}

/// Marks the oldest pod of each YuniKorn application as its originator; of two pods with the same age, the first by name.
fn mark_originators(pods: &mut [Pod]) {
    let mut oldest: BTreeMap<ApplicationId, usize> = BTreeMap::new();
    for (index, pod) in pods.iter().enumerate() {
        if let Some(application) = pod.application {
            let first = oldest.entry(application).or_insert(index);
            if pod.created < pods[*first].created {
                *first = index;
            }
        }
    }
    for index in oldest.into_values() {
        pods[index].originator = true;
    }
}

/// Returns the allocatable amounts of a node; the default is its capacity.
pub fn allocatable(node: &ApiNode) -> Result<Amounts, InputError> {
    let Some(status) = &node.status else { return Ok(Amounts::new()) };
    let (list, path) = match &status.allocatable {
        Some(list) => (Some(list), "status.allocatable"),
        None => (status.capacity.as_ref(), "status.capacity"),
    };
    list.map_or(Ok(Amounts::new()), |list| requests::amounts(list, path))
}

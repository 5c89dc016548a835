//! Objects in, snapshot out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node as ApiNode;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::PlacementMode;
use reprieve_engine::queues::QueueTree;
use reprieve_engine::snapshot::{Cluster, Group, Job, Node, Pod, Snapshot, Topology};
use reprieve_engine::workloads::QuotaRules;
use reprieve_engine::{ApplicationId, JobId, NodeId, PodId, WorkloadId};

use crate::membership::{self, WorkloadMembership};
use crate::names::{Numbered, QueueNames};
use crate::quota::kueue_tables;
use crate::{Amounts, Names, SnapshotBuilder, by_name, nth_rank, requests};
use reprieve_api::{InputError, NamespacedName, ObjectSet, Sourced};

/// A snapshot, the names of what is in it, and what is odd about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The cluster.
    pub snapshot: Snapshot,
    /// Its names.
    pub names: Names,
    /// What a person should know, though it is no error.
    pub warnings: Vec<String>,
    /// The bound pods of admitted workloads, where the snapshot does not have them (`placement: QuotaOnly` of policy Kueue). Decisions do
    /// not read them; only the report of violated disruption budgets does. Empty where a cluster is watched.
    pub workload_pods: BTreeMap<WorkloadId, Vec<PodId>>,
}

pub use crate::on_invalid::OnInvalid;

/// Builds the snapshot. The order of the objects plays no part.
pub fn load(objects: &ObjectSet, on_invalid: OnInvalid) -> Result<Loaded, InputError> {
    load_for(objects, on_invalid, &Policy::Kubernetes(Kubernetes::default()))
}

/// Builds the snapshot as the policy's settings ask: under `placement: Joint` of policy Kueue with the pods of workloads, too; under policy
/// Kubernetes with the limit on preemption priorities.
pub fn load_for(objects: &ObjectSet, on_invalid: OnInvalid, policy: &Policy) -> Result<Loaded, InputError> {
    load_as(objects, on_invalid, policy, None)
}

/// The same for the scheduler of this name: members of gangs that name another one are not placed. Without a name each gang belongs to
/// the scheduler that its members name.
pub fn load_as(
    objects: &ObjectSet,
    on_invalid: OnInvalid,
    policy: &Policy,
    scheduler_name: Option<&str>,
) -> Result<Loaded, InputError> {
    let (mut loaded, _) = build_for(objects, on_invalid, policy, scheduler_name)?;
    if let Policy::Kueue(kueue) = policy
        && kueue.placement == PlacementMode::QuotaOnly
        && !loaded.snapshot.budgets().is_empty()
    {
        loaded.workload_pods = membership::bound_pods(objects, &loaded.snapshot, &loaded.names);
    }
    Ok(loaded)
}

/// The same, with what is needed to take in more objects later.
pub fn build_for(
    objects: &ObjectSet,
    on_invalid: OnInvalid,
    policy: &Policy,
    scheduler_name: Option<&str>,
) -> Result<(Loaded, SnapshotBuilder), InputError> {
    let joint = matches!(policy, Policy::Kueue(kueue) if kueue.placement == PlacementMode::Joint);
    // 1. What pods refer to: classes, namespaces, groups, jobs and queues.
    let (mut builder, named_groups) = SnapshotBuilder::new(objects, policy, scheduler_name)?;
    // 2. The names of the nodes, and what they offer.
    let named_nodes = by_name::<String, _>(&objects.nodes)?;
    builder.nodes = named_nodes.keys().cloned().enumerate().map(|(index, name)| (name, NodeId::new(index))).collect();
    let allocatable = allocatables(&named_nodes)?;
    // 3. The pods. Under `placement: Joint` also those that pending workloads will have, and whose each is.
    let mut pods = builder.pods(objects, on_invalid)?;
    let membership =
        if joint { builder.add_synthetic_pods(objects, &allocatable, &mut pods)? } else { WorkloadMembership::new() };
    // 4. Groups, flavors and nodes: all labels that pods, groups and flavors read are known now.
    let groups = builder.groups_with_topologies(named_groups);
    let flavors = if joint { builder.flavors(objects, &named_nodes)? } else { Vec::new() };
    let nodes = builder.nodes(&named_nodes, &allocatable)?;
    let (topologies, domains) = builder.topologies(&objects.nodes);
    // 5. The tables, without queues and budgets.
    let mut cluster = tables(&builder, nodes, &pods, groups, topologies);
    refuse_uncountable(&cluster, builder.interners.resources.names())?;
    // 6. Queues, and the workloads in them.
    let kueue = kueue_tables(objects, builder.obstacles.schedulers.name(), joint, &mut builder.interners.texts)?;
    let (queues, warnings) = builder.queues.fill(&mut cluster, builder.interners.resources.names(), kueue);
    if matches!(policy, Policy::Kueue(_)) {
        builder.warnings.extend(warnings);
    }
    cluster.quota_rules.flavors = flavors;
    membership::assign_pods(&mut cluster.workloads, &queues.workloads.names, &membership, &pods);
    // 7. Disruption budgets.
    builder.add_budgets(objects, &mut cluster, &pods)?;
    // 8. The names of all these.
    let names = names(&builder, pods, queues, domains);
    builder.shapes.new.clear();
    let warnings = std::mem::take(&mut builder.warnings);
    let snapshot = Snapshot::new(cluster);
    Ok((Loaded { snapshot, names, warnings, workload_pods: BTreeMap::new() }, builder))
}

/// The tables of the engine, except for queues, workloads and budgets.
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

/// Sums over the cluster are made all the time; what cannot be summed is refused once, here.
fn refuse_uncountable(cluster: &Cluster, resources: &[String]) -> Result<(), InputError> {
    const MOST: i128 = 1 << 62;
    for (index, resource) in resources.iter().enumerate() {
        let requested = cluster.pods.iter().map(|pod| i128::from(cluster.shapes[pod.shape.index()].requests[index]));
        let offered = cluster.nodes.iter().map(|node| i128::from(node.allocatable[index]));
        if requested.sum::<i128>() > MOST || offered.sum::<i128>() > MOST {
            let problem =
                format!("all requests for {resource}, or all that nodes offer of it, add up to more than 2^62");
            return Err(InputError::new(problem));
        }
    }
    Ok(())
}

/// The oldest pod of each application is its originator; of two of one age the first by name.
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

/// What each node offers; its capacity where nothing else is said.
pub fn allocatables(nodes: &BTreeMap<String, &Sourced<ApiNode>>) -> Result<Vec<Amounts>, InputError> {
    let of = |sourced: &&Sourced<ApiNode>| {
        let Some(status) = &sourced.object.status else { return Ok(Amounts::new()) };
        let (list, path) = match &status.allocatable {
            Some(list) => (Some(list), "status.allocatable"),
            None => (status.capacity.as_ref(), "status.capacity"),
        };
        let amounts = list.map_or(Ok(Amounts::new()), |list| requests::amounts(list, path));
        amounts.map_err(|error| sourced.locate(error))
    };
    nodes.values().map(of).collect()
}

//! Objects in, snapshot out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node as ApiNode;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::Placing;
use reprieve_engine::queues::Queues;
use reprieve_engine::snapshot::{Cluster, Job, Pod, Snapshot};
use reprieve_engine::workloads::QuotaRules;
use reprieve_engine::{ApplicationId, GroupId, NodeId, PodId, WorkloadId};

use crate::classes::Classes;
use crate::groups::groups;
use crate::index::{by_name, plain_name};
use crate::intern::Interner;
use crate::joint::{self, POD_SET, Ties};
use crate::koordinator::{jobs, quota_tree};
use crate::loader::Loader;
use crate::names::Names;
use crate::order::nth_rank;
use crate::protected::protected;
use crate::quota::world;
use crate::request::{self, Amounts};
use crate::schedulers::Schedulers;
use crate::shape::{Vocabulary, keys_of, keys_read};
use crate::unsupported::field_of_job;
use crate::yunikorn::queue_tree;
use reprieve_api::kinds::Kind;
use reprieve_api::meta::FullName;
use reprieve_api::object_set::Objects;
use reprieve_api::source::ObjectRef;
use reprieve_api::source::{InputError, Sourced};

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

pub use crate::strictness::Strictness;

/// Builds the snapshot. The order of the objects plays no part.
pub fn load(objects: &Objects, strictness: Strictness) -> Result<Loaded, InputError> {
    load_for(objects, strictness, &Policy::Kubernetes(Kubernetes::default()))
}

/// Builds the snapshot as the policy's settings ask: under `placement: Joint` of policy Kueue with the pods of workloads, too; under policy
/// Kubernetes with the limit on preemption priorities.
pub fn load_for(objects: &Objects, strictness: Strictness, policy: &Policy) -> Result<Loaded, InputError> {
    load_as(objects, strictness, policy, None)
}

/// The same for the scheduler of this name: members of gangs that name another one are not placed. Without a name each gang belongs to
/// the scheduler that its members name.
pub fn load_as(
    objects: &Objects,
    strictness: Strictness,
    policy: &Policy,
    scheduler_name: Option<&str>,
) -> Result<Loaded, InputError> {
    let (mut loaded, _) = build_for(objects, strictness, policy, scheduler_name)?;
    if let Policy::Kueue(kueue) = policy
        && kueue.placement == Placing::QuotaOnly
        && !loaded.snapshot.budgets().is_empty()
    {
        loaded.workload_pods = joint::bound_pods(objects, &loaded.snapshot, &loaded.names);
    }
    Ok(loaded)
}

/// The same, with what is needed to take in more objects later.
pub fn build_for(
    objects: &Objects,
    strictness: Strictness,
    policy: &Policy,
    scheduler_name: Option<&str>,
) -> Result<(Loaded, Loader), InputError> {
    let (placing, max_preemption_excess) = match policy {
        Policy::Kueue(kueue) => (kueue.placement, None),
        Policy::Kubernetes(kubernetes) => (Placing::QuotaOnly, kubernetes.max_preemption_priority_excess),
        Policy::YuniKorn | Policy::Koordinator(_) => (Placing::QuotaOnly, None),
    };
    let mut warnings = Vec::new();
    let classes = Classes::new(&objects.priority_classes, max_preemption_excess, &mut warnings)?;
    let mut texts = Interner::default();
    let named_groups = groups(objects, &classes, &mut texts, &mut warnings)?;
    let tree = queue_tree(objects, &mut warnings)?.unwrap_or_default();
    let quotas = quota_tree(objects)?.unwrap_or_default();
    let jobs = jobs(objects)?;
    let mut loader = Loader {
        classes,
        vocabulary: vocabulary(objects)?,
        nodes: BTreeMap::new(),
        groups: named_groups.keys().cloned().enumerate().map(|(at, name)| (name, GroupId::new(at))).collect(),
        shapes: BTreeMap::new(),
        new_shapes: Vec::new(),
        applications: Interner::default(),
        tree,
        quotas,
        jobs,
        budgets: Vec::new(),
        protected: protected(objects),
        workloads: None,
        policy: *policy,
        schedulers: Schedulers::new(objects, policy, scheduler_name),
        unsupported_jobs: unsupported_jobs(objects),
        texts,
        warnings,
    };
    loader.quotas.intern_resources(&mut loader.vocabulary.resources);
    loader.tree.intern_resources(&mut loader.vocabulary.resources);
    let nodes = by_name(Kind::Node, &objects.nodes, plain_name)?;
    loader.nodes = nodes.keys().cloned().enumerate().map(|(at, name)| (name, NodeId::new(at))).collect();
    let allocatable = allocatables(&nodes)?;
    let mut pods = loader.pods(objects, strictness)?;
    let mut ties = Ties::new();
    if placing == Placing::Joint {
        ties = joint::ties(objects);
        loader.make_up_pods(objects, &ties, &allocatable, &mut pods)?;
    }
    let topology_keys: Vec<Option<&String>> = named_groups.values().map(|named| named.topology_key.as_ref()).collect();
    let topologies_of_groups: Vec<_> =
        topology_keys.into_iter().map(|key| key.map(|key| loader.vocabulary.topology(key))).collect();
    let flavors = if placing == Placing::Joint { loader.flavors(objects, &nodes)? } else { Vec::new() };
    let nodes = loader.nodes(&nodes, &allocatable)?;
    let (topologies, domains) = loader.topologies(&objects.nodes);
    let mut cluster = Cluster {
        n_resources: loader.vocabulary.resources.names().len(),
        nodes,
        shapes: loader.shapes(),
        pods: pods.iter().map(|(_, pod)| pod.clone()).collect(),
        groups: named_groups.into_values().map(|named| named.group).collect(),
        jobs: loader
            .jobs
            .values()
            .enumerate()
            .map(|(at, (_, min_member))| Job { rank: nth_rank(at), min_member: *min_member, members: Vec::new() })
            .collect(),
        budgets: Vec::new(),
        topologies,
        queues: Queues::default(),
        workloads: Vec::new(),
        quota_rules: QuotaRules::default(),
        numbers: loader.vocabulary.values.names().iter().map(|value| value.parse().ok()).collect(),
    };
    refuse_uncountable(&cluster, loader.vocabulary.resources.names())?;
    for (group, topology) in cluster.groups.iter_mut().zip(topologies_of_groups) {
        group.topology = topology;
    }
    for (at, pod) in cluster.pods.iter().enumerate() {
        if let Some(job) = pod.job {
            cluster.jobs[job.index()].members.push(PodId::new(at));
        }
        if let Some(group) = pod.group {
            cluster.groups[group.index()].members.push(PodId::new(at));
        }
    }
    mark_originators(&mut cluster.pods);
    let resources = loader.vocabulary.resources.names();
    let offered: Vec<i64> =
        (0..resources.len()).map(|at| cluster.nodes.iter().map(|node| node.allocatable[at]).sum()).collect();
    let (scheduler, places_all) = (loader.schedulers.name().to_owned(), placing == Placing::Joint);
    let mut kueue = world(objects, &scheduler, places_all, &mut loader.texts)?.unwrap_or_default();
    let has_tree = !loader.tree.paths.is_empty();
    let has_quotas = !has_tree && !loader.quotas.names.is_empty();
    cluster.queues = if has_tree {
        loader.tree.queues(resources, &offered)
    } else if has_quotas {
        loader.quotas.queues(resources)
    } else {
        kueue.queues
    };
    let is_kueue = !has_tree && !has_quotas;
    if is_kueue {
        if matches!(policy, Policy::Kueue(_)) {
            loader.warnings.append(&mut kueue.warnings);
        }
        (cluster.workloads, cluster.quota_rules) = (kueue.workloads, kueue.rules);
        cluster.quota_rules.flavors = flavors;
        joint::tie(&mut cluster.workloads, &kueue.workload_names, &kueue.pod_set_names, &ties, &pods);
    }
    loader.workloads = kueue.reader.filter(|_| is_kueue);
    loader.add_budgets(objects, &mut cluster, &pods)?;
    let workload_names = if is_kueue { kueue.workload_names } else { Vec::new() };
    let vocabulary = &loader.vocabulary;
    let names = Names {
        nodes: loader.nodes.keys().cloned().collect(),
        pod_ids: pods.iter().enumerate().map(|(at, (name, _))| (name.clone(), PodId::new(at))).collect(),
        pods: pods.into_iter().map(|(name, _)| name).collect(),
        groups: loader.groups.keys().cloned().collect(),
        group_ids: loader.groups.clone(),
        jobs: loader.jobs.keys().cloned().collect(),
        budgets: loader.budgets.iter().map(|rule| rule.name.clone()).collect(),
        queues: if has_tree {
            loader.tree.paths.clone()
        } else if has_quotas {
            loader.quotas.names.clone()
        } else {
            kueue.queue_names
        },
        workload_ids: ids_of(&workload_names),
        workloads: workload_names,
        flavors: kueue.flavor_names,
        quota_resources: kueue.resource_names,
        pod_sets: kueue.pod_set_names,
        resources: vocabulary.resources.names().to_vec(),
        topologies: vocabulary.topologies.names().to_vec(),
        domains,
        keys: vocabulary.keys.names().to_vec(),
        values: vocabulary.values.names().to_vec(),
        texts: loader.texts.names().to_vec(),
    };
    loader.new_shapes.clear();
    let warnings = std::mem::take(&mut loader.warnings);
    let snapshot = Snapshot::new(cluster);
    Ok((Loaded { snapshot, names, warnings, workload_pods: BTreeMap::new() }, loader))
}

fn unsupported_jobs(objects: &Objects) -> BTreeMap<FullName, String> {
    let groups = objects.job_groups.iter().map(|group| (FullName::of(&group.object.metadata), &*group.object));
    groups
        .filter_map(|(name, group)| Some((name.clone(), format!("PodGroup {name}: {}", field_of_job(group)?))))
        .collect()
}

fn ids_of(workloads: &[FullName]) -> BTreeMap<FullName, WorkloadId> {
    workloads.iter().cloned().enumerate().map(|(at, name)| (name, WorkloadId::new(at))).collect()
}

/// Numbers for what every cluster has, in an order of their own, so that no order of objects shows.
fn vocabulary(objects: &Objects) -> Result<Vocabulary, InputError> {
    let mut vocabulary = Vocabulary::default();
    for resource in ["pods", "cpu", "memory", "ephemeral-storage"] {
        vocabulary.resources.id(resource);
    }
    let mut labels: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (name, namespace) in by_name(Kind::Namespace, &objects.namespaces, plain_name)? {
        labels.insert(name, namespace.object.metadata.labels.clone().unwrap_or_default());
    }
    for pod in &objects.pods {
        let namespace = FullName::of(&pod.object.metadata).namespace;
        labels.entry(namespace).or_default();
    }
    // The pod sets of a workload may get different flavors, and with them nodes.
    vocabulary.read.insert(POD_SET.to_owned());
    for budget in &objects.budgets {
        let selector = budget.object.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        vocabulary.read.extend(selector.into_iter().flat_map(keys_of).cloned());
    }
    let pods = objects.pods.iter().filter_map(|pod| pod.object.spec.as_ref());
    let pods = pods.map(|spec| (spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref()));
    let sets = objects.kueue_workloads.iter().flat_map(|workload| &workload.object.spec.pod_sets);
    let sets = sets.filter_map(|set| set.template.spec.as_ref());
    let sets = sets.map(|spec| (spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref()));
    for (affinity, spread) in pods.chain(sets) {
        vocabulary.read.extend(keys_read(affinity, spread).into_iter().cloned());
    }
    for (name, mut labels) in labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        let id = vocabulary.namespaces.id(&name);
        vocabulary.namespace_labels.insert(id, labels);
    }
    Ok(vocabulary)
}

/// Sums over the cluster are made all the time; what cannot be summed is refused once, here.
fn refuse_uncountable(cluster: &Cluster, resources: &[String]) -> Result<(), InputError> {
    const MOST: i128 = 1 << 62;
    for (at, resource) in resources.iter().enumerate() {
        let asked = cluster.pods.iter().map(|pod| i128::from(cluster.shapes[pod.shape.index()].requests[at]));
        let offered = cluster.nodes.iter().map(|node| i128::from(node.allocatable[at]));
        if asked.sum::<i128>() > MOST || offered.sum::<i128>() > MOST {
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
    for (at, pod) in pods.iter().enumerate() {
        if let Some(application) = pod.application {
            let first = oldest.entry(application).or_insert(at);
            if pod.created < pods[*first].created {
                *first = at;
            }
        }
    }
    for at in oldest.into_values() {
        pods[at].originator = true;
    }
}

/// What each node offers; its capacity where nothing else is said.
pub fn allocatables(nodes: &BTreeMap<String, &Sourced<ApiNode>>) -> Result<Vec<Amounts>, InputError> {
    let of = |(name, sourced): (&String, &&Sourced<ApiNode>)| {
        let Some(status) = &sourced.object.status else {
            return Ok(Amounts::new());
        };
        let (list, path) = match &status.allocatable {
            Some(list) => (Some(list), "status.allocatable"),
            None => (status.capacity.as_ref(), "status.capacity"),
        };
        let amounts = list.map_or(Ok(Amounts::new()), |list| request::amounts(list, path));
        amounts.map_err(|error| error.at(&sourced.source).object(ObjectRef::of(Kind::Node, name)))
    };
    nodes.iter().map(of).collect()
}

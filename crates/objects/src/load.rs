//! Objects in, snapshot out.

use std::collections::BTreeMap;

use jiff::Timestamp as Time;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod, PodStatus};
use reprieve_engine::queues::Queues;
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::{Cluster, Job, Leaving, Node, Pod, Snapshot, Topology};
use reprieve_engine::workloads::QuotaRules;
use reprieve_engine::{ApplicationId, BudgetId, GroupId, JobId, NodeId, PodId, Selector, ShapeId, Timestamp};

use crate::classes::{ALLOW_PREEMPTION, Classes};
use crate::groups::{group_of, groups};
use crate::intern::Interner;
use crate::koordinator::{QuotaTree, job_of, jobs, quota_tree, words_of};
use crate::names::Names;
use crate::objects::{FullName, Objects, by_name, plain_name};
use crate::quota::world;
use crate::request::{self, Amounts};
use crate::shape::Vocabulary;
use crate::source::{InputError, Sourced};
use crate::yunikorn::{QueueTree, application_of, daemon_node, queue_of, queue_tree};

/// A snapshot, the names of what is in it, and what is odd about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The cluster.
    pub snapshot: Snapshot,
    /// Its names.
    pub names: Names,
    /// What a person should know, though it is no error.
    pub warnings: Vec<String>,
}

/// What to do with a pod on a node that is missing: real clusters have such moments, a test should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// It is an error.
    Test,
    /// It is a warning, and the pod is left out.
    Live,
}

/// Builds the snapshot. The order of the objects plays no part.
pub fn load(objects: &Objects, strictness: Strictness) -> Result<Loaded, InputError> {
    let mut warnings = Vec::new();
    let classes = Classes::new(&objects.priority_classes, &mut warnings)?;
    let named_groups = groups(objects, &classes, &mut warnings)?;
    let tree = queue_tree(objects, &mut warnings)?.unwrap_or_default();
    let quotas = quota_tree(objects)?.unwrap_or_default();
    let jobs = jobs(objects)?;
    let mut loader = Loader {
        classes,
        vocabulary: vocabulary(objects)?,
        nodes: BTreeMap::new(),
        groups: named_groups.keys().cloned().enumerate().map(|(at, name)| (name, GroupId::new(at))).collect(),
        shapes: BTreeMap::new(),
        applications: Interner::default(),
        tree,
        quotas,
        jobs,
        warnings,
    };
    loader.quotas.intern_resources(&mut loader.vocabulary.resources);
    loader.tree.intern_resources(&mut loader.vocabulary.resources);
    let nodes = by_name("Node", &objects.nodes, plain_name)?;
    loader.nodes = nodes.keys().cloned().enumerate().map(|(at, name)| (name, NodeId::new(at))).collect();
    let allocatable = allocatables(&nodes)?;
    let pods = loader.pods(objects, strictness)?;
    let topology_keys: Vec<Option<&String>> = named_groups.values().map(|named| named.topology_key.as_ref()).collect();
    let topologies_of_groups: Vec<_> =
        topology_keys.into_iter().map(|key| key.map(|key| loader.vocabulary.topology(key))).collect();
    let nodes = loader.nodes(&nodes, &allocatable)?;
    let (topologies, domains) = loader.topologies(&objects.nodes);
    let mut cluster = Cluster {
        n_resources: loader.vocabulary.resources.names().len(),
        nodes,
        shapes: loader.take_shapes(),
        pods: pods.iter().map(|(_, pod)| pod.clone()).collect(),
        groups: named_groups.into_values().map(|named| named.group).collect(),
        jobs: loader
            .jobs
            .values()
            .map(|(_, min_member)| Job { min_member: *min_member, members: Vec::new() })
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
    let kueue = world(objects)?.unwrap_or_default();
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
        (cluster.workloads, cluster.quota_rules) = (kueue.workloads, kueue.rules);
    }
    loader.budgets(objects, &mut cluster, &pods)?;
    let names = Names {
        nodes: loader.nodes.into_keys().collect(),
        pods: pods.into_iter().map(|(name, _)| name).collect(),
        groups: loader.groups.into_keys().collect(),
        jobs: loader.jobs.into_keys().collect(),
        queues: if has_tree {
            loader.tree.paths
        } else if has_quotas {
            loader.quotas.names
        } else {
            kueue.queue_names
        },
        workloads: if is_kueue { kueue.workload_names } else { Vec::new() },
        flavors: kueue.flavor_names,
        quota_resources: kueue.resource_names,
        pod_sets: kueue.pod_set_names,
        resources: loader.vocabulary.resources.into_names(),
        topologies: loader.vocabulary.topologies.into_names(),
        domains,
        keys: loader.vocabulary.keys.into_names(),
        values: loader.vocabulary.values.into_names(),
    };
    Ok(Loaded { snapshot: Snapshot::new(cluster), names, warnings: loader.warnings })
}

/// Numbers for what every cluster has, in an order of their own, so that no order of objects shows.
fn vocabulary(objects: &Objects) -> Result<Vocabulary, InputError> {
    let mut vocabulary = Vocabulary::default();
    for resource in ["pods", "cpu", "memory", "ephemeral-storage"] {
        vocabulary.resources.id(resource);
    }
    let mut labels: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (name, namespace) in by_name("Namespace", &objects.namespaces, plain_name)? {
        labels.insert(name, namespace.object.metadata.labels.clone().unwrap_or_default());
    }
    for pod in &objects.pods {
        let namespace = FullName::of(&pod.object.metadata).namespace;
        labels.entry(namespace).or_default();
    }
    for (name, mut labels) in labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        let id = vocabulary.namespaces.id(&name);
        vocabulary.namespace_labels.insert(id, labels);
    }
    Ok(vocabulary)
}

struct Loader<'o> {
    classes: Classes<'o>,
    vocabulary: Vocabulary,
    nodes: BTreeMap<String, NodeId>,
    groups: BTreeMap<FullName, GroupId>,
    shapes: BTreeMap<Shape, ShapeId>,
    applications: Interner,
    tree: QueueTree,
    quotas: QuotaTree,
    jobs: BTreeMap<FullName, (JobId, usize)>,
    warnings: Vec<String>,
}

impl Loader<'_> {
    /// The pods that are bound or pending, by name.
    fn pods(&mut self, objects: &Objects, strictness: Strictness) -> Result<Vec<(FullName, Pod)>, InputError> {
        let mut pods = Vec::new();
        for (name, sourced) in by_name("Pod", &objects.pods, |pod| FullName::of(&pod.metadata))? {
            let located = |error: InputError| error.at(&sourced.source).object(format!("Pod {name}"));
            let phase = sourced.object.status.as_ref().and_then(|status| status.phase.as_deref());
            if matches!(phase, Some("Succeeded" | "Failed")) {
                continue;
            }
            match self.pod(&name, &sourced.object).map_err(located)? {
                Some(pod) => pods.push((name, pod)),
                None => {
                    let node = sourced.object.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
                    let problem = format!("node {node:?} is not in the input; add it, or leave the pod out");
                    if strictness == Strictness::Test {
                        return Err(located(InputError::new(problem).field("spec.nodeName")));
                    }
                    self.warnings.push(format!("Pod {name}: node {node:?} is not in the input; the pod is left out"));
                }
            }
        }
        Ok(pods)
    }

    /// `None` where the pod's node is missing.
    fn pod(&mut self, name: &FullName, object: &ApiPod) -> Result<Option<Pod>, InputError> {
        let spec = object.spec.clone().unwrap_or_default();
        let empty = PodStatus::default();
        let status = object.status.as_ref().unwrap_or(&empty);
        let node = match spec.node_name.as_deref().filter(|node| !node.is_empty()) {
            None => None,
            Some(node) => match self.nodes.get(node) {
                None => return Ok(None),
                Some(&node) => Some(node),
            },
        };
        let class = spec.priority_class_name.as_deref();
        let group = group_of(object);
        let requests = request::requests(object)?;
        let shape = self.vocabulary.shape(name, object, &requests)?;
        let next = ShapeId::new(self.shapes.len());
        let shape = *self.shapes.entry(shape).or_insert(next);
        let annotations = object.metadata.annotations.as_ref();
        let own_word = annotations.and_then(|annotations| annotations.get(ALLOW_PREEMPTION)).map(String::as_str);
        let scheduled = condition(status, "PodScheduled").filter(|condition| condition.status == "True");
        let preempted = condition(status, "DisruptionTarget").is_some_and(|condition| {
            condition.status == "True" && condition.reason.as_deref() == Some("PreemptionByScheduler")
        });
        let leaving = object.metadata.deletion_timestamp.as_ref();
        let queue = match queue_of(object).and_then(|path| self.tree.queue_id(&path)) {
            Some(queue) => Some(queue),
            None if self.tree.paths.is_empty() && !self.quotas.names.is_empty() => self.quotas.queue_of(object)?,
            None => None,
        };
        let words = words_of(object);
        let nominated = status.nominated_node_name.as_deref().and_then(|node| self.nodes.get(node)).copied();
        Ok(Some(Pod {
            shape,
            group: group.as_ref().and_then(|group| self.groups.get(group)).copied(),
            names_group: group.is_some(),
            priority: self.classes.priority(spec.priority, class)?,
            preempts: self.classes.preempts(spec.preemption_policy.as_deref(), class),
            node,
            nominated,
            start: status.start_time.as_ref().map_or(Timestamp::NOT_YET, |start| timestamp(start.0)),
            scheduled: scheduled.and_then(|at| at.last_transition_time.as_ref()).map(|time| timestamp(time.0)),
            leaving: leaving.map(|at| Leaving { until: timestamp(at.0), preempted }),
            toleration: self.classes.toleration(class),
            opted_out: self.classes.opted_out(class),
            own_opt_out: own_word.map(|word| word == "false"),
            class_unknown: self.classes.lacks(class),
            resizing: node.is_some() && request::is_resize_deferred(object),
            budgets: Vec::new(),
            created: object.metadata.creation_timestamp.as_ref().map_or(Timestamp(0), |created| timestamp(created.0)),
            queue,
            application: Some(ApplicationId(self.applications.id(&application_of(object)))),
            originator: false,
            daemon_of: daemon_node(object).and_then(|node| self.nodes.get(node)).copied(),
            job: job_of(object).and_then(|job| self.jobs.get(&job)).map(|(job, _)| *job),
            preemptible: words.preemptible,
            preemption_disabled: words.disabled,
            can_preempt: words.can_preempt,
        }))
    }

    fn nodes(
        &mut self,
        objects: &BTreeMap<String, &Sourced<ApiNode>>,
        allocatable: &[Amounts],
    ) -> Result<Vec<Node>, InputError> {
        let resources = self.vocabulary.resources.names().to_vec();
        let mut nodes = Vec::new();
        for ((name, sourced), allocatable) in objects.iter().zip(allocatable) {
            let object = &sourced.object;
            let spec = object.spec.clone().unwrap_or_default();
            let taints = spec.taints.iter().flatten().map(|taint| self.vocabulary.taint(taint));
            let taints = taints
                .collect::<Result<_, _>>()
                .map_err(|error: InputError| error.at(&sourced.source).object(format!("Node {name}")))?;
            let opponents = spec.pod_preemption_policy.and_then(|policy| policy.disable_resize_preemption);
            nodes.push(Node {
                name: self.vocabulary.value(name),
                allocatable: resources.iter().map(|resource| allocatable.get(resource).copied().unwrap_or(0)).collect(),
                labels: self.vocabulary.labels(object.metadata.labels.as_ref()),
                taints,
                cordon: (spec.unschedulable == Some(true)).then(|| self.vocabulary.cordon()),
                resize_preempts: opponents.is_none_or(|opponents| opponents.is_empty()),
            });
        }
        Ok(nodes)
    }

    /// For every label that divides the cluster: which part each node is in, and what the parts are called.
    fn topologies(&self, nodes: &[Sourced<ApiNode>]) -> (Vec<Topology>, Vec<Vec<String>>) {
        let divide = |key: &String| {
            let labelled = |node: &Sourced<ApiNode>| node.object.metadata.labels.as_ref()?.get(key).cloned();
            let mut names: Vec<String> = nodes.iter().filter_map(labelled).collect();
            names.sort_unstable();
            names.dedup();
            let mut domain = vec![None; self.nodes.len()];
            for node in nodes {
                let at = labelled(node).and_then(|name| names.binary_search(&name).ok());
                domain[self.nodes[&plain_name(&node.object)].index()] = at.map(|at| at as u32);
            }
            (Topology { domain, n_domains: names.len() }, names)
        };
        self.vocabulary.topologies.names().iter().map(divide).unzip()
    }

    /// The shapes by number, each with an amount for every resource.
    fn take_shapes(&mut self) -> Vec<Shape> {
        let mut shapes: Vec<(ShapeId, Shape)> =
            std::mem::take(&mut self.shapes).into_iter().map(|(shape, id)| (id, shape)).collect();
        shapes.sort_unstable_by_key(|(id, _)| *id);
        let n_resources = self.vocabulary.resources.names().len();
        let fill = |mut shape: Shape| {
            shape.requests.resize(n_resources, 0);
            shape
        };
        shapes.into_iter().map(|(_, shape)| fill(shape)).collect()
    }

    /// Which budgets each bound pod charges. A budget without a selector, or with an empty one, and a pod without labels have nothing
    /// to do with each other.
    fn budgets(
        &mut self,
        objects: &Objects,
        cluster: &mut Cluster,
        pods: &[(FullName, Pod)],
    ) -> Result<(), InputError> {
        let named = by_name("PodDisruptionBudget", &objects.budgets, |budget| FullName::of(&budget.metadata))?;
        for (at, (name, Sourced { object: budget, source })) in named.into_iter().enumerate() {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let selector = self.vocabulary.selector(selector).map_err(|error| {
                error.at(source).object(format!("PodDisruptionBudget {name}")).field("spec.selector")
            })?;
            let status = budget.status.clone().unwrap_or_default();
            cluster.budgets.push(status.disruptions_allowed.unwrap_or_default());
            if selector == Selector::Nothing || selector.is_empty() {
                continue;
            }
            let mut matched: Vec<Option<bool>> = vec![None; cluster.shapes.len()];
            let disrupted = status.disrupted_pods.unwrap_or_default();
            let first = pods.partition_point(|(pod, _)| pod.namespace < name.namespace);
            for (at_pod, (pod_name, pod)) in pods.iter().enumerate().skip(first) {
                if pod_name.namespace != name.namespace {
                    break;
                }
                let labels = &cluster.shapes[pod.shape.index()].labels;
                let matches =
                    *matched[pod.shape.index()].get_or_insert_with(|| !labels.is_empty() && selector.matches(labels));
                if matches && pod.node.is_some() && !disrupted.contains_key(&pod_name.name) {
                    cluster.pods[at_pod].budgets.push(BudgetId::new(at));
                }
            }
        }
        Ok(())
    }
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
pub(crate) fn allocatables(nodes: &BTreeMap<String, &Sourced<ApiNode>>) -> Result<Vec<Amounts>, InputError> {
    let of = |(name, sourced): (&String, &&Sourced<ApiNode>)| {
        let Some(status) = &sourced.object.status else {
            return Ok(Amounts::new());
        };
        let (list, path) = match &status.allocatable {
            Some(list) => (Some(list), "status.allocatable"),
            None => (status.capacity.as_ref(), "status.capacity"),
        };
        let amounts = list.map_or(Ok(Amounts::new()), |list| request::amounts(list, path));
        amounts.map_err(|error| error.at(&sourced.source).object(format!("Node {name}")))
    };
    nodes.iter().map(of).collect()
}

fn condition<'s>(status: &'s PodStatus, type_: &str) -> Option<&'s k8s_openapi::api::core::v1::PodCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// A moment as the engine counts it.
pub fn timestamp(time: Time) -> Timestamp {
    Timestamp(time.as_microsecond())
}

/// A moment as people write it.
pub fn time(timestamp: Timestamp) -> Option<Time> {
    Time::from_microsecond(timestamp.0).ok()
}

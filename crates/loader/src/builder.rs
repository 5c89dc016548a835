//! Converts single objects into the types of the engine: pods, nodes, groups and disruption budgets. [`crate::build`] calls it for a
//! complete list of objects, [`crate::cache`] for single changes; both decide what to do with an object that cannot be converted.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node as ApiNode;
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::{Cluster, Group, Node, Obstacle, Pod, Terminating, Topology};
use reprieve_engine::{
    ApplicationId, BudgetId, GroupId, JobId, Labels, NodeId, Policy, Selector, ShapeId, TextId, Timestamp,
};

use crate::groups::{GroupDraft, groups};
use crate::koordinator::{CAN_PREEMPT, DISABLE_PREEMPTIBLE, jobs, preemptible, quota_tree};
use crate::obstacles::Obstacles;
use crate::priority_classes::ALLOW_PREEMPTION;
use crate::protected_namespaces::protected;
use crate::queue_source::QueueSource;
use crate::shape::{Interners, keys_of, selected_keys};
use crate::yunikorn::{application_of, is_daemon, queue_tree};
use crate::{Amounts, Classes, Interner, OnInvalid, QueueSpec, by_name, nth_rank, plain_name, requests, timestamp};
use reprieve_api::koordinator::label;
use reprieve_api::kueue::POD_SET;
use reprieve_api::pod::{PREEMPTED_FOR, SOFT_EVICTION};
use reprieve_api::{
    InputError, NamespacedName, ObjectSet, Pod as ApiPod, PodSpec, PodStatus, Sourced, group_of, job_of,
};

/// The objects to which pods refer, and the ids given so far.
pub struct SnapshotBuilder {
    pub classes: Classes,
    pub interners: Interners,
    pub nodes: BTreeMap<String, NodeId>,
    pub groups: BTreeMap<NamespacedName, GroupId>,
    pub shapes: Shapes,
    pub queues: QueueSource,
    pub jobs: BTreeMap<NamespacedName, (JobId, usize)>,
    /// In the order of the budget ids.
    pub budgets: Vec<BudgetRule>,
    /// The namespaces whose pods are never victims.
    pub protected: BTreeSet<String>,
    pub obstacles: Obstacles,
    pub warnings: Vec<String>,
}

/// The ids of shapes; equal shapes have the same id.
#[derive(Default)]
pub struct Shapes {
    ids: BTreeMap<Shape, ShapeId>,
    /// Shapes that are not in the snapshot yet, in the order of their ids.
    pub new: Vec<Shape>,
}

impl Shapes {
    fn id(&mut self, shape: Shape) -> ShapeId {
        if let Some(&known) = self.ids.get(&shape) {
            return known;
        }
        let next = ShapeId::new(self.ids.len());
        self.new.push(shape.clone());
        self.ids.insert(shape, next);
        next
    }
}

/// The pods that a disruption budget covers.
#[derive(Clone, Debug)]
pub struct BudgetRule {
    pub name: NamespacedName,
    pub selector: Selector,
    /// Pods in `status.disruptedPods`, which the budget no longer counts.
    pub disrupted: BTreeSet<String>,
}

impl BudgetRule {
    /// A budget without a selector or with an empty selector covers no pod, and no budget covers a pod without labels.
    fn covers(&self, labels: &Labels) -> bool {
        self.selector != Selector::Nothing
            && !self.selector.is_empty()
            && !labels.is_empty()
            && self.selector.matches(labels)
    }
}

impl SnapshotBuilder {
    /// Reads the objects to which pods refer, except nodes and workloads. Returns the groups in the order of their ids.
    pub(crate) fn new(
        objects: &ObjectSet,
        policy: &Policy,
        scheduler_name: Option<&str>,
    ) -> Result<(Self, Vec<GroupDraft>), InputError> {
        let max_preemption_excess = match policy {
            Policy::Kubernetes(kubernetes) => kubernetes.max_preemption_priority_excess,
            Policy::Kueue(_) | Policy::YuniKorn | Policy::Koordinator(_) => u32::MAX, // the priority of a group has no effect
        };
        let mut warnings = Vec::new();
        let mut texts = Interner::default();
        let classes = Classes::new(&objects.priority_classes, max_preemption_excess, &mut warnings)?;
        let groups = groups(objects, &classes, &mut texts, &mut warnings)?;
        let (tree, quotas) = (queue_tree(objects, &mut warnings)?, quota_tree(objects)?);
        let jobs = jobs(objects)?;
        let mut interners = Interners { texts, ..new_interners(objects)? };
        let yunikorn_queues = tree.iter().flat_map(|tree| &tree.queues).map(|queue| &queue.spec);
        let queues = quotas.iter().flat_map(|quotas| &quotas.specs).chain(yunikorn_queues);
        queues.flat_map(QueueSpec::resources).for_each(|resource| _ = interners.resources.id(resource));
        let builder = Self {
            classes,
            interners,
            nodes: BTreeMap::new(),
            groups: groups.keys().cloned().enumerate().map(|(index, name)| (name, GroupId::new(index))).collect(),
            shapes: Shapes::default(),
            queues: QueueSource::new(tree, quotas),
            jobs,
            budgets: Vec::new(),
            protected: protected(objects),
            obstacles: Obstacles::new(objects, policy, scheduler_name),
            warnings,
        };
        Ok((builder, groups.into_values().collect()))
    }

    /// Returns the groups with the ids of their topologies.
    pub(crate) fn groups_with_topologies(&mut self, groups: Vec<GroupDraft>) -> Vec<Group> {
        let with_topology = |GroupDraft { group, topology_key }| {
            let topology = topology_key.map(|key| self.interners.topology(&key));
            Group { topology, ..group }
        };
        groups.into_iter().map(with_topology).collect()
    }

    /// Converts the pods that are bound or pending, in the order of their names.
    pub fn pods(
        &mut self,
        objects: &ObjectSet,
        on_invalid: OnInvalid,
    ) -> Result<Vec<(NamespacedName, Pod)>, InputError> {
        let mut pods = Vec::new();
        for (name, sourced) in by_name::<NamespacedName, _>(&objects.pods)? {
            if sourced.object.is_finished() {
                continue;
            }
            match self.pod(&name, &sourced.object, None).map_err(|error| sourced.locate(error)) {
                Ok(Some(pod)) => {
                    if pod.node.is_none() {
                        self.warnings.extend(ignored_tolerations(&name, &sourced.object));
                    }
                    let rank = nth_rank(pods.len());
                    pods.push((name, Pod { rank, ..pod }));
                }
                Err(error) if on_invalid != OnInvalid::Quarantine => return Err(error),
                Err(error) => self.warnings.push(format!("{error}; the pod is ignored")),
                Ok(None) => {
                    let node = sourced.object.node_name.clone().unwrap_or_default();
                    let problem = format!("node {node:?} is not in the input; add the node, or remove the pod");
                    if on_invalid == OnInvalid::Reject {
                        return Err(sourced.locate(InputError::new(problem).field("spec.nodeName")));
                    }
                    self.warnings.push(format!(
                        "Pod {name}: spec.nodeName: node {node:?} is not in the input; the pod is ignored"
                    ));
                }
            }
        }
        Ok(pods)
    }

    /// Converts a pod, without its rank, budgets and originator mark. `None` if its node is missing. A caller that knows the shape of the
    /// pod passes it, because computing the shape is expensive.
    // Long: one line for each field.
    pub fn pod(
        &mut self,
        name: &NamespacedName,
        object: &ApiPod,
        shape: Option<ShapeId>,
    ) -> Result<Option<Pod>, InputError> {
        let empty = (PodSpec::default(), PodStatus::default());
        let spec = object.spec.as_deref().unwrap_or(&empty.0);
        let status = object.status.as_ref().unwrap_or(&empty.1);
        let named = object.node_name.as_ref().filter(|node| !node.is_empty());
        let node = named.and_then(|node| self.nodes.get(node)).copied();
        if named.is_some() && node.is_none() {
            return Ok(None);
        }
        let class = spec.priority_class_name.as_deref();
        let group = group_of(object);
        let shape = shape.map_or_else(|| self.shape(name, object), Ok)?;
        let annotations = object.metadata.annotations.as_ref();
        let allow_preemption = annotations.and_then(|annotations| annotations.get(ALLOW_PREEMPTION));
        let marked_for = annotations.and_then(|annotations| annotations.get(PREEMPTED_FOR));
        let marked_for = marked_for.map(|preemptor| TextId(self.interners.texts.id(preemptor)));
        let scheduled = condition(status, "PodScheduled").and_then(|index| index.last_transition_time.as_ref());
        let preempted = condition(status, "DisruptionTarget")
            .is_some_and(|condition| condition.reason.as_deref() == Some("PreemptionByScheduler"));
        let leaving = object.metadata.deletion_timestamp.as_ref();
        let queue = self.queues.queue_of(object)?;
        let obstacle = if node.is_none() { self.obstacles.find(object, &mut self.interners.texts) } else { None };
        let counts = !matches!(obstacle, Some(Obstacle::Gates(_) | Obstacle::OtherScheduler));
        let nominated = status.nominated_node_name.as_deref().filter(|_| counts);
        let nominated = nominated.and_then(|node| self.nodes.get(node)).copied();
        Ok(Some(Pod {
            shape,
            rank: 0,
            group: group.as_ref().and_then(|group| self.groups.get(group)).copied(),
            names_group: group.is_some(),
            priority: self.classes.priority(spec.priority, class)?,
            preempts: self.classes.preempts(spec.preemption_policy.as_deref(), class),
            node,
            nominated,
            start: status.start_time.as_ref().map_or(Timestamp::NOT_STARTED, |start| timestamp(start.0)),
            scheduled: scheduled.map(|time| timestamp(time.0)),
            terminating: leaving.map(|time| Terminating { deadline: timestamp(time.0), by_preemption: preempted }),
            toleration: self.classes.toleration(class),
            protected: self.protected.contains(&name.namespace),
            opted_out: self.classes.opted_out(class),
            own_opt_out: allow_preemption.map(|value| value == "false"),
            class_unknown: self.classes.is_undefined(class),
            resizing: node.is_some() && requests::is_resize_deferred(object),
            budgets: Vec::new(),
            created: object.metadata.creation_timestamp.as_ref().map_or(Timestamp(0), |created| timestamp(created.0)),
            queue,
            application: Some(ApplicationId(self.interners.applications.id(&application_of(object)))),
            originator: false,
            daemon: is_daemon(object),
            job: job_of(object).and_then(|job| self.jobs.get(&job)).map(|(job, _)| *job),
            preemptible: preemptible(object),
            preemption_disabled: label(object, DISABLE_PREEMPTIBLE) == Some("true"),
            can_preempt: label(object, CAN_PREEMPT) == Some("true"),
            obstacle,
            marked_for,
            soft_evicted: label(object, SOFT_EVICTION).is_some(),
        }))
    }

    fn shape(&mut self, name: &NamespacedName, object: &ApiPod) -> Result<ShapeId, InputError> {
        let requests = requests::requests(object)?;
        let shape = self.interners.shape(name, object, &requests)?;
        Ok(self.shapes.id(shape))
    }

    pub fn nodes(
        &mut self,
        objects: &BTreeMap<String, &Sourced<ApiNode>>,
        allocatable: &[Amounts],
    ) -> Result<Vec<Node>, InputError> {
        let resources = self.interners.resources.names().to_vec();
        let mut nodes = Vec::new();
        for ((name, sourced), allocatable) in objects.iter().zip(allocatable) {
            let object = &sourced.object;
            let spec = object.spec.clone().unwrap_or_default();
            let taints = spec.taints.iter().flatten().map(|taint| self.interners.taint(taint));
            let taints = taints.collect::<Result<_, _>>().map_err(|error| sourced.locate(error))?;
            let opponents = spec.pod_preemption_policy.and_then(|policy| policy.disable_resize_preemption);
            nodes.push(Node {
                name: self.interners.value(name),
                allocatable: resources.iter().map(|resource| allocatable.get(resource).copied().unwrap_or(0)).collect(),
                labels: self.interners.labels(object.metadata.labels.as_ref()),
                taints,
                cordon: (spec.unschedulable == Some(true)).then(|| self.interners.cordon()),
                resize_preempts: opponents.is_none_or(|opponents| opponents.is_empty()),
            });
        }
        Ok(nodes)
    }

    /// Returns for every topology key the domain of each node, and the names of the domains.
    pub fn topologies(&self, nodes: &[Sourced<ApiNode>]) -> (Vec<Topology>, Vec<Vec<String>>) {
        let topology = |key: &String| {
            let labelled = |node: &Sourced<ApiNode>| node.object.metadata.labels.as_ref()?.get(key).cloned();
            let mut names: Vec<String> = nodes.iter().filter_map(labelled).collect();
            names.sort_unstable();
            names.dedup();
            let mut domain = vec![None; self.nodes.len()];
            for node in nodes {
                let index = labelled(node).and_then(|name| names.binary_search(&name).ok());
                domain[self.nodes[&plain_name(&*node.object)].index()] = index.map(|index| index as u32);
            }
            (Topology { domain, n_domains: names.len() }, names)
        };
        self.interners.topologies.names().iter().map(topology).unzip()
    }

    /// Returns the shapes in the order of their ids, each with an amount for every resource.
    pub fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<(ShapeId, &Shape)> = self.shapes.ids.iter().map(|(shape, id)| (*id, shape)).collect();
        shapes.sort_unstable_by_key(|(id, _)| *id);
        shapes.into_iter().map(|(_, shape)| self.with_all_resources(shape)).collect()
    }

    /// Extends the requests of a shape to all resources.
    pub fn with_all_resources(&self, shape: &Shape) -> Shape {
        let mut shape = shape.clone();
        shape.requests.resize(self.interners.resources.names().len(), 0);
        shape
    }

    /// Returns the budgets that the eviction of a bound pod would use.
    pub fn budgets_of(&self, name: &NamespacedName, labels: &Labels) -> Vec<BudgetId> {
        let covers = |rule: &BudgetRule| {
            rule.name.namespace == name.namespace && rule.covers(labels) && !rule.disrupted.contains(&name.name)
        };
        self.budgets
            .iter()
            .enumerate()
            .filter(|(_, rule)| covers(rule))
            .map(|(index, _)| BudgetId::new(index))
            .collect()
    }

    /// Reads the budgets, and assigns to each bound pod those that cover it.
    pub fn add_budgets(
        &mut self,
        objects: &ObjectSet,
        cluster: &mut Cluster,
        pods: &[(NamespacedName, Pod)],
    ) -> Result<(), InputError> {
        let named = by_name::<NamespacedName, _>(&objects.budgets)?;
        for (index, (name, budget)) in named.into_iter().enumerate() {
            let selector = budget.object.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let selector = self.interners.selector(selector);
            let selector = selector.map_err(|error| budget.locate(error).field("spec.selector"))?;
            let status = budget.object.status.clone().unwrap_or_default();
            cluster.budgets.push(status.disruptions_allowed.unwrap_or_default());
            let disrupted = status.disrupted_pods.unwrap_or_default().into_keys().collect();
            let rule = BudgetRule { name, selector, disrupted };
            let mut matched: Vec<Option<bool>> = vec![None; cluster.shapes.len()];
            let first = pods.partition_point(|(pod, _)| pod.namespace < rule.name.namespace);
            for (at_pod, (pod_name, pod)) in pods.iter().enumerate().skip(first) {
                if pod_name.namespace != rule.name.namespace {
                    break;
                }
                let labels = &cluster.shapes[pod.shape.index()].labels;
                let matches = *matched[pod.shape.index()].get_or_insert_with(|| rule.covers(labels));
                if matches && pod.node.is_some() && !rule.disrupted.contains(&pod_name.name) {
                    cluster.pods[at_pod].budgets.push(BudgetId::new(index));
                }
            }
            self.budgets.push(rule);
        }
        Ok(())
    }
}

/// Gives ids to names that every cluster has, in a fixed order, so that ids do not depend on the order of the objects.
fn new_interners(objects: &ObjectSet) -> Result<Interners, InputError> {
    let mut interners = Interners::default();
    for resource in ["pods", "cpu", "memory", "ephemeral-storage"] {
        interners.resources.id(resource);
    }
    let mut labels: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (name, namespace) in by_name::<String, _>(&objects.namespaces)? {
        labels.insert(name, namespace.object.metadata.labels.clone().unwrap_or_default());
    }
    for pod in &objects.pods {
        let namespace = pod.name().namespace;
        labels.entry(namespace).or_default();
    }
    // Pods of different pod sets have different shapes, because pod sets may get different flavors and so different nodes.
    interners.selected_keys.insert(POD_SET.to_owned());
    for budget in &objects.budgets {
        let selector = budget.object.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        interners.selected_keys.extend(selector.into_iter().flat_map(keys_of).cloned());
    }
    let pods = objects.pods.iter().filter_map(|pod| pod.object.spec.as_ref());
    let pods = pods.map(|spec| (spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref()));
    let sets = objects.kueue_workloads.iter().flat_map(|workload| &workload.object.spec.pod_sets);
    let sets = sets.filter_map(|set| set.template.spec.as_ref());
    let sets = sets.map(|spec| (spec.affinity.as_ref(), spec.topology_spread_constraints.as_deref()));
    for (affinity, spread) in pods.chain(sets) {
        interners.selected_keys.extend(selected_keys(affinity, spread).into_iter().cloned());
    }
    for (name, mut labels) in labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        let id = interners.namespaces.id(&name);
        interners.namespace_labels.insert(id, labels);
    }
    Ok(interners)
}

/// Returns a warning for each toleration of a pending pod with operator `Gt` or `Lt`, which tolerates no taint, as in a cluster without
/// that feature gate.
fn ignored_tolerations(name: &NamespacedName, pod: &ApiPod) -> Vec<String> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    let tolerations = tolerations.into_iter().flatten().enumerate();
    let ignored = tolerations.filter_map(|(index, toleration)| {
        let operator = toleration.operator.as_deref().filter(|operator| matches!(*operator, "Gt" | "Lt"))?;
        Some(format!(
            "Pod {name}: spec.tolerations[{index}].operator: {operator} is not supported; the toleration is ignored"
        ))
    });
    ignored.collect()
}

/// Returns the condition of this type if its status is `True`.
fn condition<'s>(status: &'s PodStatus, type_: &str) -> Option<&'s k8s_openapi::api::core::v1::PodCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_ && condition.status == "True")
}

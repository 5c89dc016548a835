//! Converts single objects into the types of the engine: pods, nodes, groups and disruption budgets. [`crate::build`] calls it for a
//! complete list of objects, [`crate::cache`] for single changes; both decide what to do with an object that cannot be converted.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node as ApiNode;
use reprieve_engine::shape::Shape;
use reprieve_engine::snapshot::{Cluster, Group, Node, Obstacle, Pod, QueueRefusal, Terminating, Topology};
use reprieve_engine::{
    ApplicationId, BudgetId, GroupId, JobId, Labels, NodeId, Policy, Priority, Selector, ShapeId, TextId, Timestamp,
};

use crate::groups::{GroupDraft, groups};
use crate::koordinator::{BrokenJob, DISABLE_PREEMPTIBLE, can_preempt, jobs, preemptible, quota_tree};
use crate::member_values::MemberValues;
use crate::obstacles::Obstacles;
use crate::owners::Owners;
use crate::protected_namespaces::protected;
use crate::quarantine::{Problem, Quarantine, key_of};
use crate::queue_settings::{LoadScope, QueueScope};
use crate::queue_source::QueueSource;
use crate::schedulers::gang_of;
use crate::shape::{Interners, new_interners};
use crate::sums::{LARGE_AMOUNT, beyond_sum, pods_beyond_sum};
use crate::unsupported::ignored_tolerations;
use crate::yunikorn::queue_tree;
use crate::yunikorn_pods::{application_of, daemon_node, is_daemon, own_opt_out, reads_groups, recorded_as};
use crate::{Amounts, Classes, Interner, QueueSpec, Warning, by_name, nth_rank, requests, timestamp};
use reprieve_api::koordinator::label;
use reprieve_api::object_set::Unreadable;
use reprieve_api::pod::VICTIM;
use reprieve_api::{
    InputError, Kind, NamespacedName, ObjectKey, ObjectSet, Pod as ApiPod, PodSpec, PodStatus, ProblemCode, group_of,
    job_of,
};

/// The objects to which pods refer, and the ids given so far.
// Fields: one for each kind of object to which a pod refers, and the ids.
pub struct SnapshotBuilder {
    pub classes: Classes,
    pub interners: Interners,
    pub nodes: BTreeMap<String, NodeId>,
    pub groups: BTreeMap<NamespacedName, GroupId>,
    /// The values of groups that count for their pods.
    pub member_values: MemberValues,
    pub shapes: Shapes,
    pub queues: QueueSource,
    /// Which namespaces may use which queues.
    pub queue_scope: QueueScope,
    pub jobs: BTreeMap<NamespacedName, (JobId, usize)>,
    /// In the order of the budget ids.
    pub budgets: Vec<BudgetRule>,
    /// The namespaces whose pods are never victims.
    pub protected: BTreeSet<String>,
    pub obstacles: Obstacles,
    pub owners: Owners,
    pub broken: BrokenRefs,
    /// The bound pods whose requests cannot be read, by node. Such a node has no room.
    pub blocked: BTreeMap<NodeId, BTreeSet<NamespacedName>>,
    /// Whether pods are set aside only because of the sum of all requests.
    pub is_over_sum: bool,
    /// By node and resource: what the node offers when no pod on it counts as the whole node.
    pub allocatable: Vec<Vec<i64>>,
    pub warnings: Vec<Warning>,
}

/// The objects that are set aside and to which pods may refer.
pub struct BrokenRefs {
    policy: Policy,
    groups: BTreeMap<NamespacedName, ObjectKey>,
    pub jobs: BTreeMap<NamespacedName, BrokenJob>,
    pub nodes: BTreeMap<String, ObjectKey>,
}

impl BrokenRefs {
    /// Returns the problem of a pod whose group or job is set aside, if the policy reads it.
    fn of_pod(&self, name: &NamespacedName, pod: &ApiPod) -> Option<Problem> {
        match self.policy {
            Policy::Kubernetes(_) => {
                let group = self.groups.get(&group_of(pod)?)?;
                Some(Problem::refers_to(group.clone(), "spec.schedulingGroup.podGroupName"))
            }
            Policy::Koordinator(_) => {
                let job = job_of(pod)?;
                Some(self.jobs.get(&job)?.of_pod(name, &job))
            }
            Policy::YuniKorn(_) | Policy::Kueue(_) => None,
        }
    }

    /// Whether the policy reads the queues of this source, so that a pod without its queue cannot be decided.
    fn reads(&self, queues: &QueueSource) -> bool {
        matches!(
            (self.policy, queues),
            (Policy::YuniKorn(_), QueueSource::YuniKorn(_)) | (Policy::Koordinator(_), QueueSource::Koordinator(_))
        )
    }
}

/// A pod as it was read.
#[derive(Default)]
pub struct ReadPod {
    /// The pod without its rank, budgets and originator mark. `None` if it is pending and cannot be read, or if its node is missing.
    pub pod: Option<Pod>,
    /// What is wrong with it.
    pub problem: Option<Problem>,
    /// Whether its requests cannot be read, so that it counts as its whole node.
    pub blocks_node: bool,
}

/// A node that can be read.
pub struct NodeDraft<'o> {
    pub name: String,
    pub object: &'o ApiNode,
    pub allocatable: Amounts,
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
        scope: &LoadScope,
        quarantine: &mut Quarantine,
    ) -> (Self, Vec<GroupDraft>) {
        let max_preemption_excess = match policy {
            Policy::Kubernetes(kubernetes) => kubernetes.max_preemption_priority_excess,
            Policy::Kueue(_) | Policy::YuniKorn(_) | Policy::Koordinator(_) => u32::MAX, // the priority of a group has no effect
        };
        let mut warnings = Vec::new();
        let mut texts = Interner::default();
        let obstacles = Obstacles::new(objects, policy, scope.scheduler_name.as_deref());
        let is_own = |pod: &ApiPod| !obstacles.schedulers.is_foreign(pod);
        let classes = Classes::new(&objects.priority_classes, max_preemption_excess, &mut warnings);
        let groups = groups(objects, &classes, &mut texts, &mut warnings, quarantine);
        let queue_scope = QueueScope::new(&scope.queues, objects);
        let follows_code = matches!(policy, Policy::YuniKorn(settings) if settings.follows_code);
        let tree = queue_tree(objects, &queue_scope, follows_code, is_own, &mut warnings, quarantine);
        let quotas = quota_tree(objects, &queue_scope, quarantine);
        let jobs = jobs(objects, is_own, quarantine);
        let owners = Owners::new(objects);
        if let Policy::YuniKorn(_) = policy {
            warnings.extend(owners.warning(objects).map(Warning::from));
        }
        let mut interners = Interners { texts, ..new_interners(objects) };
        let yunikorn_queues = tree.iter().flat_map(|tree| &tree.queues).map(|queue| &queue.spec);
        let queues = quotas.iter().flat_map(|quotas| &quotas.specs).chain(yunikorn_queues);
        queues.flat_map(QueueSpec::resources).for_each(|resource| _ = interners.resources.id(resource));
        let builder = Self {
            classes,
            interners,
            nodes: BTreeMap::new(),
            groups: groups.good.keys().cloned().enumerate().map(|(index, name)| (name, GroupId::new(index))).collect(),
            member_values: MemberValues::new(policy, groups.good.values().map(|draft| draft.values.clone())),
            shapes: Shapes::default(),
            queues: QueueSource::new(tree, quotas),
            queue_scope,
            jobs: jobs.all,
            budgets: Vec::new(),
            protected: protected(objects),
            obstacles,
            owners,
            broken: BrokenRefs { policy: *policy, groups: groups.broken, jobs: jobs.broken, nodes: BTreeMap::new() },
            blocked: BTreeMap::new(),
            is_over_sum: false,
            allocatable: Vec::new(),
            warnings,
        };
        (builder, groups.good.into_values().collect())
    }

    /// Notes the objects of which only the identity is known.
    pub(crate) fn add_unreadable(&mut self, objects: &ObjectSet, quarantine: &mut Quarantine) {
        for Unreadable { object, error, .. } in &objects.unreadable {
            quarantine.add(object.clone(), None, error.clone());
            let name = object.name.clone();
            match object.kind {
                Kind::Node => _ = self.broken.nodes.insert(name.name, object.clone()),
                Kind::PodGroup => _ = self.broken.groups.insert(name, object.clone()),
                Kind::KoordinatorPodGroup => _ = self.broken.jobs.insert(name, BrokenJob::Group),
                _ => {}
            }
        }
    }

    /// Marks the nodes of bound pods of which only the identity is known.
    pub(crate) fn block_nodes_of_unreadable(&mut self, objects: &ObjectSet) {
        for Unreadable { object, node, .. } in &objects.unreadable {
            let node = node.as_ref().filter(|_| object.kind == Kind::Pod).and_then(|node| self.nodes.get(node));
            if let Some(&node) = node {
                self.blocked.entry(node).or_default().insert(object.name.clone());
            }
        }
    }

    /// Returns the groups with the ids of their topologies.
    pub(crate) fn groups_with_topologies(&mut self, groups: Vec<GroupDraft>) -> Vec<Group> {
        let with_topology = |GroupDraft { group, topology_key, .. }| {
            let topology = topology_key.map(|key| self.interners.topology(&key));
            Group { topology, ..group }
        };
        groups.into_iter().map(with_topology).collect()
    }

    /// Converts the pods that are bound or pending, in the order of their names.
    pub fn pods(&mut self, objects: &ObjectSet, quarantine: &mut Quarantine) -> Vec<(NamespacedName, Pod)> {
        let mut pods = Vec::new();
        for (name, sourced) in by_name::<NamespacedName, _>(&objects.pods) {
            if sourced.object.is_finished() {
                continue;
            }
            quarantine.reads(sourced);
            let ReadPod { pod, problem, blocks_node } = self.pod(&name, &sourced.object, None);
            if let Some(problem) = problem {
                quarantine.add(key_of(sourced), Some(&sourced.source), problem);
            }
            let Some(pod) = pod else { continue };
            if pod.node.is_none() {
                self.warnings.extend(ignored_tolerations(&key_of(sourced), &sourced.object));
            }
            if let Some(node) = pod.node.filter(|_| blocks_node) {
                self.blocked.entry(node).or_default().insert(name.clone());
            }
            let rank = nth_rank(pods.len());
            pods.push((name, Pod { rank, ..pod }));
        }
        pods
    }

    /// Sets pods aside whose requests make the sum over the cluster too large: pending ones are left out, bound ones count as their nodes.
    pub(crate) fn set_aside_beyond_sum(&mut self, pods: &mut Vec<(NamespacedName, Pod)>, quarantine: &mut Quarantine) {
        let mut shapes: Vec<(ShapeId, &Shape)> = self.shapes.ids.iter().map(|(shape, id)| (*id, shape)).collect();
        shapes.sort_unstable_by_key(|(id, _)| *id);
        let shapes: Vec<&Shape> = shapes.into_iter().map(|(_, shape)| shape).collect();
        let beyond = pods_beyond_sum(pods, &shapes, self.interners.resources.names().len());
        let beyond: BTreeSet<NamespacedName> = beyond.into_iter().cloned().collect();
        self.is_over_sum = !beyond.is_empty();
        if !self.is_over_sum {
            return;
        }
        let bare: Vec<Shape> = shapes.iter().map(|shape| Shape { requests: vec![1], ..Shape::clone(shape) }).collect();
        pods.retain_mut(|(name, pod)| {
            if !beyond.contains(name) {
                return true;
            }
            quarantine.add(ObjectKey::new(Kind::Pod, name.clone()), None, beyond_sum("spec.containers"));
            let Some(node) = pod.node else { return false };
            pod.set_aside = true;
            if let Some(shape) = bare.get(pod.shape.index()) {
                pod.shape = self.shapes.id(shape.clone());
            }
            self.blocked.entry(node).or_default().insert(name.clone());
            true
        });
    }

    /// Reads a pod. A caller that knows the shape of the pod passes it, because computing the shape is expensive.
    ///
    /// A pod of another scheduler never has a problem of its own: what cannot be read of it is left out.
    pub fn pod(&mut self, name: &NamespacedName, object: &ApiPod, shape: Option<ShapeId>) -> ReadPod {
        let mut read = self.read_pod(name, object, shape);
        read.problem.take_if(|_| self.obstacles.schedulers.is_foreign(object));
        if let Some(problem) = &mut read.problem {
            problem.gang = gang_of(object, &self.broken.policy);
        }
        read
    }

    /// Reads a pod of any scheduler.
    pub fn read_pod(&mut self, name: &NamespacedName, object: &ApiPod, shape: Option<ShapeId>) -> ReadPod {
        let node = match self.node_of(object) {
            Ok(node) => node,
            Err(problem) => return ReadPod { problem: Some(problem), ..ReadPod::default() },
        };
        let mut problem = self.broken.of_pod(name, object);
        // docs/rules/kubernetes-pods.md#p24: Koordinator judges a bound pod without its job and quota.
        let needs_references = !matches!(self.broken.policy, Policy::Koordinator(_));
        let mut set_aside = needs_references && problem.is_some();
        let (shape, blocks_node) = match shape.map_or_else(|| self.shape(name, object), Ok) {
            Ok(shape) => (shape, false),
            Err(error) => {
                problem = Some(error.into());
                if node.is_none() {
                    return ReadPod { problem, ..ReadPod::default() };
                }
                set_aside = true;
                let requests = requests::requests(object);
                let shape = self.interners.occupied_shape(name, object, requests.as_ref().unwrap_or(&Amounts::new()));
                (self.shapes.id(shape), requests.is_err())
            }
        };
        let foreign = self.obstacles.schedulers.is_foreign(object);
        let refused = if foreign { None } else { self.queues.refused_queue(object, &self.queue_scope) };
        let queue = if foreign || refused.is_some() { Ok(None) } else { self.queues.queue_of(object) };
        let queue = queue.unwrap_or_else(|error| {
            if self.broken.reads(&self.queues) {
                set_aside |= needs_references;
                problem.get_or_insert(error);
            }
            None
        });
        let spec = object.spec.as_deref();
        let class = spec.and_then(|spec| spec.priority_class_name.as_deref());
        let priority = self.classes.priority(spec.and_then(|spec| spec.priority), class).unwrap_or_else(|error| {
            set_aside = true;
            problem.get_or_insert(error.into());
            Priority(0)
        });
        if node.is_none() && problem.is_some() {
            return ReadPod { problem, ..ReadPod::default() };
        }
        let pod = Pod {
            shape,
            priority,
            queue,
            set_aside,
            class_unknown: !set_aside && self.classes.is_undefined(class),
            ..self.judged_fields(name, object, node, refused)
        };
        ReadPod { pod: Some(self.member_values.apply(pod, &self.classes)), problem, blocks_node }
    }

    /// Returns the node of a bound pod; the problem says that the node is missing or set aside.
    fn node_of(&self, object: &ApiPod) -> Result<Option<NodeId>, Problem> {
        let Some(name) = object.node_name.as_ref().filter(|node| !node.is_empty()) else { return Ok(None) };
        if let Some(&node) = self.nodes.get(name) {
            return Ok(Some(node));
        }
        let field = "spec.nodeName";
        if let Some(node) = self.broken.nodes.get(name) {
            return Err(Problem::refers_to(node.clone(), field));
        }
        let problem = format!("node {name:?} is not in the input; add the node, or remove the pod");
        Err(InputError::new(problem).field(field).code(ProblemCode::MissingNode).into())
    }

    /// Returns the fields of a pod that can always be read, without its shape, priority and queue.
    fn judged_fields(
        &mut self,
        name: &NamespacedName,
        object: &ApiPod,
        node: Option<NodeId>,
        refused_queue: Option<(String, QueueRefusal)>,
    ) -> Pod {
        let empty = (PodSpec::default(), PodStatus::default());
        let spec = object.spec.as_deref().unwrap_or(&empty.0);
        let status = object.status.as_ref().unwrap_or(&empty.1);
        let class = spec.priority_class_name.as_deref();
        let policy = &self.broken.policy;
        let group = group_of(object).filter(|_| reads_groups(policy));
        let mark = condition(status, VICTIM);
        let marked_for = mark.and_then(|mark| mark.message.as_deref());
        let marked_for = marked_for.map(|preemptor| TextId(self.interners.texts.id(preemptor)));
        let scheduled = condition(status, "PodScheduled").and_then(|index| index.last_transition_time.as_ref());
        let preempted = condition(status, "DisruptionTarget")
            .is_some_and(|condition| condition.reason.as_deref() == Some("PreemptionByScheduler"));
        let deleted = object.metadata.deletion_timestamp.as_ref();
        let (obstacles, texts) = (&self.obstacles, &mut self.interners.texts);
        let obstacle = if node.is_none() { obstacles.find(object, refused_queue, texts) } else { None };
        let counts = !matches!(obstacle, Some(Obstacle::Gates(_) | Obstacle::OtherScheduler));
        let nominated = status.nominated_node_name.as_deref().filter(|_| counts);
        let nominated = nominated.and_then(|node| self.nodes.get(node)).copied();
        let foreign = self.obstacles.schedulers.is_foreign(object);
        let application = application_of(object, policy).filter(|_| !foreign);
        let application = application.map(|name| ApplicationId(self.interners.applications.id(&name.to_string())));
        let is_ready = node.is_none() && !foreign && obstacle.is_none() && deleted.is_none();
        let recorded_as = recorded_as(name, policy).filter(|_| is_ready);
        Pod {
            rank: 0,
            group: group.as_ref().and_then(|group| self.groups.get(group)).copied(),
            names_group: group.is_some(),
            preempts: self.classes.preempts(spec.preemption_policy.as_deref(), class),
            node,
            nominated,
            start: status.start_time.as_ref().map_or(Timestamp::NOT_STARTED, |start| timestamp(start.0)),
            scheduled: scheduled.map(|time| timestamp(time.0)),
            terminating: deleted.map(|time| Terminating { deadline: timestamp(time.0), by_preemption: preempted }),
            toleration: self.classes.toleration(class),
            protected: self.protected.contains(&name.namespace),
            opted_out: self.classes.opted_out(class),
            own_opt_out: own_opt_out(object, policy),
            resizing: node.is_some() && requests::is_resize_deferred(object),
            budgets: Vec::new(),
            created: object.metadata.creation_timestamp.as_ref().map_or(Timestamp(0), |created| timestamp(created.0)),
            application,
            originator: false,
            daemon: is_daemon(object, &self.owners),
            daemon_node: daemon_node(object, &self.owners, policy)
                .filter(|_| is_ready)
                .and_then(|node| self.nodes.get(node))
                .copied(),
            job: job_of(object).and_then(|job| self.jobs.get(&job)).map(|(job, _)| *job),
            preemptible: preemptible(object),
            preemption_disabled: label(object, DISABLE_PREEMPTIBLE) == Some("true"),
            can_preempt: can_preempt(object),
            obstacle,
            marked_for,
            recorded_as: recorded_as.map(|name| TextId(self.interners.texts.id(&name))),
            soft_evicted: object.is_soft_evicted(),
            recreation: self.obstacles.recreation(object),
            ..Pod::default()
        }
    }

    fn shape(&mut self, name: &NamespacedName, object: &ApiPod) -> Result<ShapeId, InputError> {
        let requests = requests::requests(object)?;
        let shape = self.interners.shape(name, object, &requests)?;
        Ok(self.shapes.id(shape))
    }

    /// Whether the requests of a new shape are so large that their sum with those of other pods must be checked.
    pub fn has_large_new_shape(&self) -> bool {
        self.shapes.new.iter().flat_map(|shape| &shape.requests).any(|amount| *amount > LARGE_AMOUNT)
    }

    /// Returns the amounts that a node offers: none while a pod on it counts as the whole node.
    pub fn offered(&self, node: NodeId) -> Vec<i64> {
        let own = self.allocatable.get(node.index()).cloned().unwrap_or_default();
        if self.blocked.contains_key(&node) { vec![0; own.len()] } else { own }
    }

    /// Converts the nodes, in the order of their names.
    pub fn nodes(&mut self, nodes: Vec<NodeDraft<'_>>) -> Vec<Node> {
        let resources = self.interners.resources.names().to_vec();
        let convert = |NodeDraft { name, object, allocatable }: NodeDraft<'_>| {
            let spec = object.spec.clone().unwrap_or_default();
            // A node with a taint that cannot be read is not among the drafts.
            let taints = spec.taints.iter().flatten().filter_map(|taint| self.interners.taint(taint).ok());
            let taints = taints.collect();
            let disabled = spec.pod_preemption_policy.and_then(|policy| policy.disable_resize_preemption);
            Node {
                name: self.interners.value(&name),
                allocatable: resources.iter().map(|resource| allocatable.get(resource).copied().unwrap_or(0)).collect(),
                labels: self.interners.labels(object.metadata.labels.as_ref()),
                taints,
                cordon: (spec.unschedulable == Some(true)).then(|| self.interners.cordon()),
                resize_preempts: disabled.is_none_or(|disabled| disabled.is_empty()),
            }
        };
        nodes.into_iter().map(convert).collect()
    }

    /// Returns for every topology key the domain of each node, and the names of the domains.
    pub fn topologies(&self, nodes: &[NodeDraft<'_>]) -> (Vec<Topology>, Vec<Vec<String>>) {
        let topology = |key: &String| {
            let labelled = |node: &ApiNode| node.metadata.labels.as_ref()?.get(key).cloned();
            let mut names: Vec<String> = nodes.iter().filter_map(|node| labelled(node.object)).collect();
            names.sort_unstable();
            names.dedup();
            let domain = nodes.iter().map(|node| {
                let index = labelled(node.object).and_then(|name| names.binary_search(&name).ok());
                index.map(|index| index as u32)
            });
            let domain = domain.collect();
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
        quarantine: &mut Quarantine,
    ) {
        for (name, budget) in by_name::<NamespacedName, _>(&objects.budgets) {
            quarantine.reads(budget);
            let selector = budget.object.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let selector = match self.interners.selector(selector) {
                Ok(selector) => selector,
                Err(error) => {
                    quarantine.add(key_of(budget), Some(&budget.source), error.field("spec.selector"));
                    continue;
                }
            };
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
                    cluster.pods[at_pod].budgets.push(BudgetId::new(self.budgets.len()));
                }
            }
            self.budgets.push(rule);
        }
    }
}

/// Returns the condition of this type if its status is `True`.
fn condition<'s>(status: &'s PodStatus, type_: &str) -> Option<&'s k8s_openapi::api::core::v1::PodCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_ && condition.status == "True")
}

//! The cluster as the engine sees it at one instant: tables indexed by id, and what is derived from them.
//!
//! Whoever builds it fills in a [`Cluster`]; the engine changes nothing in it except through a [`crate::what_if::WhatIf`], which
//! takes back whatever it did. A cluster that lives on takes changes one at a time (`delta`).

mod delta;

use std::cmp::Reverse;

use crate::ids::{
    ApplicationId, BudgetId, GroupId, JobId, NodeId, PodId, Priority, QueueId, ResourceId, ShapeId, TextId, Timestamp,
    TopologyId, UnitId, ValueId, WorkloadId,
};
use crate::labels::Labels;
use crate::queues::QueueTree;
use crate::shape::{Shape, Taint};
use crate::workloads::{QuotaRules, Workload};

/// The tables that a snapshot is made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// How many resources there are; the first is the number of pods.
    pub n_resources: usize,
    /// All nodes, by name.
    pub nodes: Vec<Node>,
    /// All shapes that pods have.
    pub shapes: Vec<Shape>,
    /// All pods that are bound or pending, by namespace and name.
    pub pods: Vec<Pod>,
    /// All groups.
    pub groups: Vec<Group>,
    /// All jobs, by namespace and name.
    pub jobs: Vec<Job>,
    /// How many more disruptions each budget allows.
    pub budgets: Vec<i32>,
    /// The node labels by which terms, constraints and groups divide the cluster.
    pub topologies: Vec<Topology>,
    /// The quota tree.
    pub queues: QueueTree,
    /// All workloads, by namespace and name.
    pub workloads: Vec<Workload>,
    /// What Kueue's objects say of the tree.
    pub quota_rules: QuotaRules,
    /// By value: the whole number that it spells, if it spells one.
    pub numbers: Vec<Option<i64>>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name, where a selector asks for it.
    pub name: ValueId,
    /// What it offers of each resource.
    pub allocatable: Vec<i64>,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Set while it is cordoned: the taint that a pod must bear to land there all the same.
    pub cordon: Option<Taint>,
    /// Whether a pod that grows in place may preempt here.
    pub resize_preempts: bool,
}

/// A pod that is bound or pending: a row of the table of pods, flat because each law, filter and order reads a few fields of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// What filters read of it.
    pub shape: ShapeId,
    /// Its place in the order of namespaces and names, which decides the last ties.
    pub rank: u64,
    /// The group it belongs to, where that group exists.
    pub group: Option<GroupId>,
    /// Whether it names a group, even one that does not exist.
    pub names_group: bool,
    /// Its own priority.
    pub priority: Priority,
    /// Whether it may preempt.
    pub preempts: bool,
    /// Where it runs, or is bound to run.
    pub node: Option<NodeId>,
    /// Where an earlier decision means to put it.
    pub nominated: Option<NodeId>,
    /// When it started; [`Timestamp::NOT_YET`] where it has not.
    pub start: Timestamp,
    /// When it was scheduled.
    pub scheduled: Option<Timestamp>,
    /// Set while it is leaving.
    pub terminating: Option<Terminating>,
    /// How it tolerates preemption, by its priority class.
    pub toleration: Option<Toleration>,
    /// Whether nobody is taken in its namespace.
    pub protected: bool,
    /// Whether its priority class opted out of being preempted.
    pub opted_out: bool,
    /// What the pod itself says to that; only YuniKorn listens.
    pub own_opt_out: Option<bool>,
    /// Whether it names a priority class that nothing defines, so that its rights are unknown.
    pub class_unknown: bool,
    /// Whether it runs and waits to be given more on its node.
    pub resizing: bool,
    /// The budgets that taking it would charge.
    pub budgets: Vec<BudgetId>,
    /// When it was created.
    pub created: Timestamp,
    /// The queue whose quota it uses.
    pub queue: Option<QueueId>,
    /// The application that it belongs to.
    pub application: Option<ApplicationId>,
    /// Whether it is its application's first pod.
    pub originator: bool,
    /// Whether it belongs to a DaemonSet, and so is meant for one node.
    pub daemon: bool,
    /// The job that it is placed with.
    pub job: Option<JobId>,
    /// Whether it says that it can be preempted, or that it cannot.
    pub preemptible: Option<bool>,
    /// Whether it may not be preempted, whatever side of its quota it counts on.
    pub preemption_disabled: bool,
    /// Whether it says that it may preempt.
    pub can_preempt: bool,
    /// What keeps it from being placed while it is pending.
    pub obstacle: Option<Obstacle>,
    /// The preemptor for which it is marked as a victim. No decision reads it.
    pub marked_for: Option<TextId>,
}

/// What a priority class says about being preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// A preemptor of at least this priority is not tolerated.
    pub minimum: Priority,
    /// How long after it was scheduled a pod tolerates; negative is for ever, zero not at all.
    pub seconds: i64,
}

/// What keeps a pending pod from being placed, whatever room there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Its scheduling gates, by name.
    Gates(Vec<TextId>),
    /// It is a member of a group or job, and names another scheduler than this one.
    OtherScheduler,
    /// It has a requirement that no decision evaluates: the field.
    Unsupported(TextId),
}

impl Pod {
    /// Whether the pod counts as a member of its group or job: a bound one does; a pending one only if this scheduler is to place it.
    pub fn takes_part(&self) -> bool {
        let pending = match self.obstacle {
            None | Some(Obstacle::Unsupported(_)) => true,
            Some(Obstacle::Gates(_) | Obstacle::OtherScheduler) => false,
        };
        self.node.is_some() || pending
    }
}

/// A job: pods that are placed all or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its place in the order of namespaces and names.
    pub rank: u64,
    /// How many pods it needs.
    pub min_member: usize,
    /// Its pods, bound and pending.
    pub members: Vec<PodId>,
}

/// How a pod leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminating {
    /// When its grace ends.
    pub deadline: Timestamp,
    /// Whether a scheduler preempted it.
    pub by_preemption: bool,
}

/// A group of pods that are scheduled together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// How many members must run for it to run at all.
    pub min_count: usize,
    /// Its priority when it asks.
    pub priority: Priority,
    /// Its priority when it is asked to yield; at least the other.
    pub victim_priority: Priority,
    /// Whether it may preempt.
    pub preempts: bool,
    /// Whether it yields whole or pod by pod.
    pub mode: DisruptionMode,
    /// The label whose one value all members must share.
    pub topology: Option<TopologyId>,
    /// A field of the group that no decision evaluates.
    pub unsupported: Option<TextId>,
    /// All its pods, bound and pending.
    pub members: Vec<PodId>,
}

/// How a group yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisruptionMode {
    /// Its pods are taken one by one.
    Single,
    /// All its pods are taken, or none.
    All,
}

/// A node label that divides the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// By node: its domain, unless it lacks the label. Domains are numbered in the order of their names.
    pub domain: Vec<Option<u32>>,
    /// How many domains there are.
    pub n_domains: usize,
}

/// What is preempted whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unit {
    /// Its pods that are bound.
    pub pods: Vec<PodId>,
    /// Its priority when it is asked to yield.
    pub priority: Priority,
    /// Whether its pods belong to a group, or say that they do.
    pub grouped: bool,
    /// When its oldest pod started.
    pub start: Timestamp,
    /// Whether a law other than that of priority may spare it.
    pub shielded: bool,
    /// The workload that it is, if it is one that was admitted.
    pub workload: Option<WorkloadId>,
    /// Its first pod's place in the order of names.
    pub rank: u64,
}

impl Unit {
    /// Nobody's, until somebody is bound.
    fn vacant() -> Self {
        Self { start: Timestamp::NOT_STARTED, rank: u64::MAX, ..Self::default() }
    }

    /// What these bound pods are together.
    fn of(cluster: &Cluster, pods: Vec<PodId>) -> Self {
        let first = &cluster.pods[pods[0].index()];
        let group = first.group.map(|group| &cluster.groups[group.index()]);
        let mut unit = Self {
            priority: group.map_or(first.priority, |group| group.victim_priority),
            grouped: first.names_group,
            ..Self::vacant()
        };
        for pod in pods.iter().map(|pod| &cluster.pods[pod.index()]) {
            unit.start = unit.start.min(pod.start);
            unit.rank = unit.rank.min(pod.rank);
            unit.shielded |= pod.is_shielded();
        }
        Self { pods, ..unit }
    }

    /// What an admitted workload is, with these pods.
    fn of_workload(id: WorkloadId, workload: &Workload, since: Timestamp, pods: Vec<PodId>) -> Self {
        let Workload { priority, rank, .. } = *workload;
        Self { pods, priority, start: since, workload: Some(id), rank, ..Self::vacant() }
    }

    fn is_vacant(&self) -> bool {
        self.pods.is_empty() && self.workload.is_none()
    }
}

/// A pod on a node, with what a search over the node reads of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoundPod {
    pub pod: PodId,
    pub unit: UnitId,
    pub shape: ShapeId,
    pub priority: Priority,
    pub start: Timestamp,
}

/// The cluster at one instant: a table for each kind of thing, and the sums over them that a what-if keeps current.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    cluster: Cluster,
    units: Vec<Unit>,
    /// By pod: the unit it is taken with, if it is bound.
    unit_of: Vec<Option<UnitId>>,
    /// By workload: the unit that it is, if it was admitted.
    unit_of_workload: Vec<Option<UnitId>>,
    /// By pod: where it is bound, a what-if or not.
    bound_node: Vec<Option<NodeId>>,
    /// By node: the pods that are bound there, most important first. A what-if leaves the lists alone.
    bound_pods: Vec<Vec<BoundPod>>,
    /// By node: whether nothing but priorities and resources matters among its pods.
    only_single_pod_units: Vec<bool>,
    /// By node: the pending pods that are nominated to it.
    nominees: Vec<Vec<PodId>>,
    /// By node and resource: what the node offers.
    allocatable: Vec<i64>,
    /// By node and resource: what the pods on it ask for.
    used: Vec<i64>,
    /// By shape and resource: what it asks for.
    requests: Vec<i64>,
    /// Shapes with anti-affinity of their own.
    anti_affinity_shapes: Vec<ShapeId>,
    /// By group: the unit that it yields as, if it yields whole and has a bound pod.
    unit_of_group: Vec<Option<UnitId>>,
    /// Units that nobody is in.
    free_units: Vec<UnitId>,
}

impl Snapshot {
    /// Derives what a search needs from the tables.
    pub fn new(cluster: Cluster) -> Self {
        let (units, unit_of, whole) = units_of(&cluster);
        let mut unit_of_workload = vec![None; cluster.workloads.len()];
        for (at, unit) in units.iter().enumerate() {
            if let Some(workload) = unit.workload {
                unit_of_workload[workload.index()] = Some(UnitId::new(at));
            }
        }
        let mut snapshot = Self {
            bound_pods: vec![Vec::new(); cluster.nodes.len()],
            only_single_pod_units: vec![true; cluster.nodes.len()],
            nominees: vec![Vec::new(); cluster.nodes.len()],
            allocatable: cluster.nodes.iter().flat_map(|node| node.allocatable.iter().copied()).collect(),
            used: vec![0; cluster.nodes.len() * cluster.n_resources],
            requests: cluster.shapes.iter().flat_map(|shape| shape.requests.iter().copied()).collect(),
            anti_affinity_shapes: (0..cluster.shapes.len())
                .filter(|&shape| !cluster.shapes[shape].anti_affinity.is_empty())
                .map(ShapeId::new)
                .collect(),
            bound_node: cluster.pods.iter().map(|pod| pod.node).collect(),
            cluster,
            units,
            unit_of,
            unit_of_workload,
            unit_of_group: whole,
            free_units: Vec::new(),
        };
        for index in 0..snapshot.cluster.pods.len() {
            snapshot.index_pod(PodId::new(index));
        }
        let Cluster { workloads, queues, quota_rules, .. } = &mut snapshot.cluster;
        quota_rules.index(queues, workloads);
        for workload in workloads.iter() {
            if let (Some(queue), Some(admission)) = (workload.queue, &workload.admission) {
                queues.charge_quota(queue, &admission.usage, 1);
            }
        }
        let Self { bound_pods: slots, units, cluster, .. } = &mut snapshot;
        for slots in slots {
            slots.sort_unstable_by_key(|slot| (importance(units, slot.unit), cluster.pods[slot.pod.index()].rank));
            *slots = slots.to_vec(); // a search walks the lists one after the other: so they lie in memory
        }
        for node in snapshot.node_ids() {
            snapshot.refresh_only_single_pod_units(node);
        }
        snapshot
    }

    fn index_pod(&mut self, id: PodId) {
        let pod = &self.cluster.pods[id.index()];
        if let Some(node) = pod.node {
            let unit = self.unit_of[id.index()].expect("a bound pod has a unit");
            let priority = self.units[unit.index()].priority;
            let slot = BoundPod { pod: id, unit, shape: pod.shape, priority, start: pod.start };
            self.bound_pods[node.index()].push(slot);
            self.charge(id, node, 1);
        } else if let Some(node) = pod.nominated {
            self.nominees[node.index()].push(id);
        }
    }

    /// Moves a pod; the caller remembers where it was.
    pub(crate) fn move_to(&mut self, pod: PodId, to: Option<NodeId>) -> Option<NodeId> {
        let from = std::mem::replace(&mut self.cluster.pods[pod.index()].node, to);
        if let Some(node) = from {
            self.charge(pod, node, -1);
        }
        if let Some(node) = to {
            self.charge(pod, node, 1);
        }
        from
    }

    fn charge(&mut self, pod: PodId, node: NodeId, sign: i64) {
        let n = self.cluster.n_resources;
        let Pod { shape, queue, terminating: leaving, .. } = &self.cluster.pods[pod.index()];
        let requests = &self.requests[shape.index() * n..][..n];
        for (used, request) in self.used[node.index() * n..][..n].iter_mut().zip(requests) {
            *used += sign * request;
        }
        if let Some(queue) = *queue {
            self.cluster.queues.charge(queue, requests, sign, leaving.is_some());
        }
    }

    /// Charges a queue as if a pod of the shape ran in it.
    pub(crate) fn charge_queue(&mut self, queue: QueueId, shape: ShapeId, sign: i64) {
        let n = self.cluster.n_resources;
        self.cluster.queues.charge(queue, &self.requests[shape.index() * n..][..n], sign, false);
    }

    /// A workload.
    pub fn workload(&self, id: WorkloadId) -> &Workload {
        &self.cluster.workloads[id.index()]
    }

    /// All workloads.
    pub fn workload_ids(&self) -> impl ExactSizeIterator<Item = WorkloadId> + use<> {
        (0..self.cluster.workloads.len()).map(WorkloadId::new)
    }

    /// What Kueue's objects say of the tree.
    pub fn quota_rules(&self) -> &QuotaRules {
        &self.cluster.quota_rules
    }

    /// The quota tree.
    pub fn queues(&self) -> &QueueTree {
        &self.cluster.queues
    }

    /// All nodes, in the order of their names.
    pub fn node_ids(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.cluster.nodes.len()).map(NodeId::new)
    }

    /// All units.
    pub fn unit_ids(&self) -> impl Iterator<Item = UnitId> + '_ {
        (0..self.units.len()).map(UnitId::new).filter(|id| !self.units[id.index()].is_vacant())
    }

    /// All resources.
    pub fn resource_ids(&self) -> impl ExactSizeIterator<Item = ResourceId> + use<> {
        (0..self.cluster.n_resources).map(ResourceId::new)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.cluster.nodes[id.index()]
    }

    /// A pod.
    pub fn pod(&self, id: PodId) -> &Pod {
        &self.cluster.pods[id.index()]
    }

    /// A group.
    pub fn group(&self, id: GroupId) -> &Group {
        &self.cluster.groups[id.index()]
    }

    /// A job.
    pub fn job(&self, id: JobId) -> &Job {
        &self.cluster.jobs[id.index()]
    }

    /// A shape.
    pub fn shape(&self, id: ShapeId) -> &Shape {
        &self.cluster.shapes[id.index()]
    }

    /// A unit.
    pub fn unit(&self, id: UnitId) -> &Unit {
        &self.units[id.index()]
    }

    /// The unit that a bound pod is taken with.
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.unit_of[pod.index()]
    }

    /// The unit that an admitted workload is.
    pub fn unit_of_workload(&self, workload: WorkloadId) -> Option<UnitId> {
        self.unit_of_workload[workload.index()]
    }

    /// Where a pod is bound, a what-if or not.
    pub fn bound_node(&self, pod: PodId) -> Option<NodeId> {
        self.bound_node[pod.index()]
    }

    /// A topology.
    pub fn topology(&self, id: TopologyId) -> &Topology {
        &self.cluster.topologies[id.index()]
    }

    /// The pods bound to a node, most important first, a what-if or not.
    pub fn pods_on(&self, node: NodeId) -> impl Iterator<Item = PodId> + '_ {
        self.bound_pods[node.index()].iter().map(|slot| slot.pod)
    }

    /// What a node offers of each resource.
    pub fn allocatable(&self, node: NodeId) -> &[i64] {
        let n = self.cluster.n_resources;
        &self.allocatable[node.index() * n..][..n]
    }

    /// What the pods on a node ask for of each resource.
    pub fn used(&self, node: NodeId) -> &[i64] {
        let n = self.cluster.n_resources;
        &self.used[node.index() * n..][..n]
    }

    /// What a shape asks for of each resource.
    pub fn requests(&self, shape: ShapeId) -> &[i64] {
        let n = self.cluster.n_resources;
        &self.requests[shape.index() * n..][..n]
    }

    pub(crate) fn bound_pods(&self, node: NodeId) -> &[BoundPod] {
        &self.bound_pods[node.index()]
    }

    pub(crate) fn has_only_single_pod_units(&self, node: NodeId) -> bool {
        self.only_single_pod_units[node.index()]
    }

    pub(crate) fn nominees(&self, node: NodeId) -> &[PodId] {
        &self.nominees[node.index()]
    }

    pub(crate) fn n_pods(&self) -> usize {
        self.cluster.pods.len()
    }

    pub(crate) fn n_units(&self) -> usize {
        self.units.len()
    }

    pub(crate) fn shapes_with_anti_affinity(&self) -> &[ShapeId] {
        &self.anti_affinity_shapes
    }

    pub(crate) fn numbers(&self) -> &[Option<i64>] {
        &self.cluster.numbers
    }

    /// How many more disruptions each budget allows.
    pub fn budgets(&self) -> &[i32] {
        &self.cluster.budgets
    }

    /// Sorts ascending from the most important unit to the least. Total: it ends with the name.
    pub(crate) fn importance(&self, unit: UnitId) -> impl Ord + use<> {
        importance(&self.units, unit)
    }
}

/// Higher priority; of a group; more pods; the older; then by name. (Groups' rule 4; for lone pods it is rule 13 of the pods.)
fn importance(units: &[Unit], id: UnitId) -> impl Ord + use<> {
    let unit = &units[id.index()];
    (Reverse(unit.priority), Reverse(unit.grouped), Reverse(unit.pods.len()), unit.start, unit.rank)
}

/// A unit for each group that yields whole, one for each other bound pod, and then one for each admitted workload, with its pods.
fn units_of(cluster: &Cluster) -> (Vec<Unit>, Vec<Option<UnitId>>, Vec<Option<UnitId>>) {
    let mut lone: Vec<Vec<PodId>> = Vec::new();
    let mut unit_of = vec![None; cluster.pods.len()];
    let mut whole: Vec<Option<UnitId>> = vec![None; cluster.groups.len()];
    let mut of_workload = vec![false; cluster.pods.len()];
    for workload in cluster.workloads.iter().filter(|workload| workload.admission.is_some()) {
        for &pod in workload.pod_sets.iter().flat_map(|set| &set.pods) {
            of_workload[pod.index()] = true;
        }
    }
    let is_lone = |(index, pod): &(usize, &Pod)| pod.node.is_some() && !of_workload[*index];
    for (index, pod) in cluster.pods.iter().enumerate().filter(is_lone) {
        let group = pod.group.filter(|group| cluster.groups[group.index()].mode == DisruptionMode::All);
        let id = group.and_then(|group| whole[group.index()]).unwrap_or_else(|| {
            lone.push(Vec::new());
            UnitId::new(lone.len() - 1)
        });
        if let Some(group) = group {
            whole[group.index()] = Some(id);
        }
        lone[id.index()].push(PodId::new(index));
        unit_of[index] = Some(id);
    }
    let mut units: Vec<Unit> = lone.into_iter().map(|pods| Unit::of(cluster, pods)).collect();
    for (at, workload) in cluster.workloads.iter().enumerate() {
        if let Some(admission) = &workload.admission {
            let pods = workload.pod_sets.iter().flat_map(|set| &set.pods).copied();
            let pods: Vec<PodId> = pods.filter(|pod| cluster.pods[pod.index()].node.is_some()).collect();
            for pod in &pods {
                unit_of[pod.index()] = Some(UnitId::new(units.len()));
            }
            units.push(Unit::of_workload(WorkloadId::new(at), workload, admission.since, pods));
        }
    }
    (units, unit_of, whole)
}

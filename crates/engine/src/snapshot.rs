//! The cluster at one instant: tables indexed by id, and the indexes and sums that a search reads.
//!
//! `loader` fills in a [`Cluster`]. During a decision the engine changes the snapshot only through a [`crate::what_if::WhatIf`], which
//! undoes every change. Between decisions the loader applies changes one at a time (`delta`).

mod delta;
mod group;
mod mismatch;
mod obstacle;
mod recreation;
mod terminating;
mod usage;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{
    ApplicationId, BudgetId, GroupId, JobId, NodeId, PodId, Priority, QueueId, ResourceId, ShapeId, TextId, Timestamp,
    TopologyId, UnitId, ValueId, WorkloadId,
};
use crate::labels::Labels;
use crate::queues::QueueTree;
use crate::shape::{Shape, Taint};
use crate::workloads::{QuotaRules, Workload};

pub use group::{DisruptionMode, Group};
pub use mismatch::Mismatch;
pub use obstacle::{Obstacle, QueueRefusal};
pub use recreation::Recreation;
pub use terminating::Terminating;

/// The tables from which a snapshot is built.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// The number of resources; the first is the number of pods.
    pub n_resources: usize,
    /// All nodes, sorted by name.
    pub nodes: Vec<Node>,
    /// All shapes of pods.
    pub shapes: Vec<Shape>,
    /// All bound and pending pods, sorted by namespace and name.
    pub pods: Vec<Pod>,
    /// All groups.
    pub groups: Vec<Group>,
    /// All jobs, sorted by namespace and name.
    pub jobs: Vec<Job>,
    /// By budget: the number of disruptions it still allows.
    pub budgets: Vec<i32>,
    /// The node labels that divide the cluster into domains for terms, constraints and groups.
    pub topologies: Vec<Topology>,
    /// The quota tree.
    pub queues: QueueTree,
    /// All workloads, sorted by namespace and name.
    pub workloads: Vec<Workload>,
    /// The settings of Kueue's objects for the quota tree.
    pub quota_rules: QuotaRules,
    /// By label value: the integer that it spells; `None` for other text.
    pub numbers: Vec<Option<i64>>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name as a label value, for `matchFields`.
    pub name: ValueId,
    /// By resource: the allocatable amount.
    pub allocatable: Vec<i64>,
    /// The labels.
    pub labels: Labels,
    /// The taints.
    pub taints: Vec<Taint>,
    /// Set while the node is cordoned: the taint that a pod must tolerate.
    pub cordon: Option<Taint>,
    /// Whether a pod that is resized in place may preempt on this node.
    pub resize_preempts: bool,
}

/// A bound or pending pod.
// Fields: flat, because each law, filter and order reads its own few fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// The part of the pod that filters read.
    pub shape: ShapeId,
    /// The position in the order of namespaces and names, which breaks ties.
    pub rank: u64,
    /// The group, if it exists.
    pub group: Option<GroupId>,
    /// Whether the pod names a group, even if that group does not exist.
    pub names_group: bool,
    /// How the pod itself differs from its group.
    pub mismatch: Option<Mismatch>,
    /// The priority: its group's where that counts for its pods, else its own.
    pub priority: Priority,
    /// Whether it may preempt.
    pub preempts: bool,
    /// The node that the pod is bound to.
    pub node: Option<NodeId>,
    /// The nominated node.
    pub nominated: Option<NodeId>,
    /// The start time; [`Timestamp::NOT_STARTED`] before it.
    pub start: Timestamp,
    /// The time at which the pod was scheduled.
    pub scheduled: Option<Timestamp>,
    /// Set while the pod is terminating.
    pub terminating: Option<Terminating>,
    /// The toleration of preemption that its priority class sets.
    pub toleration: Option<Toleration>,
    /// Whether its namespace is protected.
    pub protected: bool,
    /// Whether a part of the bound pod cannot be read without which no law can judge it.
    pub set_aside: bool,
    /// Whether its priority class opted out of preemption.
    pub opted_out: bool,
    /// The pod's own opt-out, which only policy YuniKorn reads.
    pub own_opt_out: Option<bool>,
    /// Whether its priority class is not defined, so that its tolerations are unknown.
    pub class_unknown: bool,
    /// Whether the running pod waits for a resize in place.
    pub resizing: bool,
    /// The disruption budgets that select the pod.
    pub budgets: Vec<BudgetId>,
    /// The creation time.
    pub created: Timestamp,
    /// The queue whose quota the pod uses.
    pub queue: Option<QueueId>,
    /// The application of the pod.
    pub application: Option<ApplicationId>,
    /// Whether the pod is the first of its application.
    pub originator: bool,
    /// Whether the pod belongs to a DaemonSet, and so to one node.
    pub daemon: bool,
    /// The node of a pending DaemonSet pod, which policy YuniKorn reserves for the pod.
    pub daemon_node: Option<NodeId>,
    /// The job with which the pod is placed.
    pub job: Option<JobId>,
    /// The value of its preemptible label, if it has one.
    pub preemptible: Option<bool>,
    /// Whether its label forbids preemption, independent of which part of the quota it counts in.
    pub preemption_disabled: bool,
    /// Whether its label allows it to preempt; `None` without the label.
    pub can_preempt: Option<bool>,
    /// The reason why the pending pod cannot be placed at all.
    pub obstacle: Option<Obstacle>,
    /// The preemptor for which the pod is marked as a victim.
    pub marked_for: Option<TextId>,
    /// The name by which marked victims record the pending pod as their preemptor, which only policy YuniKorn reads.
    pub recorded_as: Option<TextId>,
    /// Whether another operator was asked to delete the pod, which only policy Koordinator reads.
    pub soft_evicted: bool,
    /// What follows if the bound pod is evicted, which only policy Kubernetes reads.
    pub recreation: Recreation,
}

/// The preemption toleration of a priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// Preemptors of at least this priority are not tolerated.
    pub minimum: Priority,
    /// The seconds after scheduling for which a pod tolerates preemptors; negative means without end, zero not at all.
    pub seconds: i64,
}

impl Pod {
    /// Whether the pod counts as a member of its group or job: a bound pod does; a pending pod only if this scheduler places it.
    pub fn takes_part(&self) -> bool {
        let pending = match self.obstacle {
            None | Some(Obstacle::Unsupported(_) | Obstacle::QueueRefused { .. }) => true,
            Some(Obstacle::Gates(_) | Obstacle::OtherScheduler) => false,
        };
        self.node.is_some() || pending
    }

    /// Whether the pod counts as a running member of its group.
    pub fn runs(&self) -> bool {
        self.node.is_some() && self.terminating.is_none()
    }

    /// The node that the pending pod reserves.
    fn reserves(&self) -> Option<NodeId> {
        self.nominated.or(self.daemon_node)
    }
}

/// A job: its pods are placed together or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The position in the order of namespaces and names.
    pub rank: u64,
    /// The number of pods that the job needs.
    pub min_member: usize,
    /// The bound and pending pods of the job.
    pub members: Vec<PodId>,
}

/// A node label that divides the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// By node: its domain; `None` without the label. Domains are numbered in the order of their names.
    pub domain: Vec<Option<u32>>,
    /// The number of domains.
    pub n_domains: usize,
}

/// The unit of preemption: a pod, all bound pods of a group, or an admitted workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unit {
    /// The bound pods of the unit.
    pub pods: Vec<PodId>,
    /// The priority as a victim.
    pub priority: Priority,
    /// Whether its pods name a group, even one that does not exist.
    pub grouped: bool,
    /// The start time of its oldest pod.
    pub start: Timestamp,
    /// Whether a law other than that of priority may spare the unit.
    pub shielded: bool,
    /// The admitted workload that the unit represents.
    pub workload: Option<WorkloadId>,
    /// The rank of its first pod.
    pub rank: u64,
}

impl Unit {
    /// An unused entry of the table of units.
    fn vacant() -> Self {
        Self { start: Timestamp::NOT_STARTED, rank: u64::MAX, ..Self::default() }
    }

    /// The unit of these bound pods.
    fn of(cluster: &Cluster, pods: Vec<PodId>) -> Self {
        let first = &cluster.pods[pods[0].index()];
        let group = first.group.map(|group| &cluster.groups[group.index()]).filter(|group| !group.from_owner);
        let lowest = pods.iter().map(|pod| cluster.pods[pod.index()].priority).min();
        let mut unit = Self {
            priority: group.map_or(lowest.unwrap_or_default(), |group| group.victim_priority),
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

    /// The unit of an admitted workload.
    fn of_workload(id: WorkloadId, workload: &Workload, since: Timestamp, pods: Vec<PodId>) -> Self {
        let Workload { priority, rank, .. } = *workload;
        Self { pods, priority, start: since, workload: Some(id), rank, ..Self::vacant() }
    }
}

/// A bound pod with the fields that a search over a node reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoundPod {
    pub pod: PodId,
    pub unit: UnitId,
    pub shape: ShapeId,
    pub priority: Priority,
    pub start: Timestamp,
}

/// The tables of a [`Cluster`], and the indexes and sums over them. A what-if keeps `used` and the queues current.
// Fields: the tables and one field for each index or sum over them, which every change keeps in step.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    cluster: Cluster,
    units: Vec<Unit>,
    /// By pod: its unit; `None` if the pod is not bound.
    unit_of: Vec<Option<UnitId>>,
    /// By workload: its unit; `None` if it is not admitted.
    unit_of_workload: Vec<Option<UnitId>>,
    /// By pod: the node that it is bound to. A what-if does not change it.
    bound_node: Vec<Option<NodeId>>,
    /// By node: its bound pods, most important first. A what-if does not change the lists.
    bound_pods: Vec<Vec<BoundPod>>,
    /// By node: whether each unit is a single pod without budgets or shields, so that only priorities and resources matter.
    only_single_pod_units: Vec<bool>,
    /// By node: the pending pods that reserve it, by a nomination or as the pods of a DaemonSet.
    nominees: Vec<Vec<PodId>>,
    /// The pods that are marked as victims.
    marked: BTreeSet<PodId>,
    /// The number of pods by application and queue.
    pods_of_applications: BTreeMap<(ApplicationId, QueueId), usize>,
    /// By node and resource: the allocatable amount.
    allocatable: Vec<i64>,
    /// By node and resource: the sum of the requests of its pods.
    used: Vec<i64>,
    /// By shape and resource: the request.
    requests: Vec<i64>,
    /// The shapes that have anti-affinity terms.
    anti_affinity_shapes: Vec<ShapeId>,
    /// By group that is preempted as a whole: the unit of its bound pods.
    unit_of_group: Vec<Option<UnitId>>,
    /// Unused entries of `units`.
    free_units: Vec<UnitId>,
}

impl Snapshot {
    /// Builds the indexes and sums.
    pub fn new(cluster: Cluster) -> Self {
        let (units, unit_of, unit_of_group) = units_of(&cluster);
        let mut unit_of_workload = vec![None; cluster.workloads.len()];
        for (index, unit) in units.iter().enumerate() {
            if let Some(workload) = unit.workload {
                unit_of_workload[workload.index()] = Some(UnitId::new(index));
            }
        }
        let mut snapshot = Self {
            bound_pods: vec![Vec::new(); cluster.nodes.len()],
            only_single_pod_units: vec![true; cluster.nodes.len()],
            nominees: vec![Vec::new(); cluster.nodes.len()],
            marked: BTreeSet::new(),
            pods_of_applications: BTreeMap::new(),
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
            unit_of_group,
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
        let Self { bound_pods, units, cluster, .. } = &mut snapshot;
        for on_node in bound_pods {
            sort_bound_pods(on_node, units, cluster);
            *on_node = on_node.to_vec(); // reallocated in the order in which a search reads the lists
        }
        for node in snapshot.node_ids() {
            snapshot.refresh_only_single_pod_units(node);
        }
        snapshot
    }

    fn index_pod(&mut self, id: PodId) {
        self.index_marks_and_applications(id);
        let pod = &self.cluster.pods[id.index()];
        if let Some(node) = pod.node {
            let unit = self.unit_of[id.index()].expect("a bound pod has a unit");
            let priority = self.units[unit.index()].priority;
            let bound = BoundPod { pod: id, unit, shape: pod.shape, priority, start: pod.start };
            self.bound_pods[node.index()].push(bound);
            self.charge(id, node, 1);
        } else if let Some(node) = pod.reserves() {
            self.nominees[node.index()].push(id);
        }
    }

    /// A workload.
    pub fn workload(&self, id: WorkloadId) -> &Workload {
        &self.cluster.workloads[id.index()]
    }

    /// All workloads.
    pub fn workload_ids(&self) -> impl ExactSizeIterator<Item = WorkloadId> + use<> {
        (0..self.cluster.workloads.len()).map(WorkloadId::new)
    }

    /// The settings of Kueue's objects for the quota tree.
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
        let is_used = |unit: &Unit| !unit.pods.is_empty() || unit.workload.is_some();
        (0..self.units.len()).map(UnitId::new).filter(move |id| is_used(&self.units[id.index()]))
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

    /// Whether a group may preempt: a gang that an owner forms if all pods that it wants to place may.
    pub fn group_preempts(&self, id: GroupId) -> bool {
        let group = self.group(id);
        let allowed = |pod: &Pod| pod.node.is_some() || pod.preempts;
        if group.from_owner { group.members.iter().all(|&pod| allowed(self.pod(pod))) } else { group.preempts }
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

    /// The unit of a bound pod.
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.unit_of[pod.index()]
    }

    /// The unit of an admitted workload.
    pub fn unit_of_workload(&self, workload: WorkloadId) -> Option<UnitId> {
        self.unit_of_workload[workload.index()]
    }

    /// The node that a pod is bound to, independent of a what-if.
    pub fn bound_node(&self, pod: PodId) -> Option<NodeId> {
        self.bound_node[pod.index()]
    }

    /// A topology.
    pub fn topology(&self, id: TopologyId) -> &Topology {
        &self.cluster.topologies[id.index()]
    }

    /// The pods bound to a node, most important first, independent of a what-if.
    pub fn pods_on(&self, node: NodeId) -> impl Iterator<Item = PodId> + '_ {
        self.bound_pods[node.index()].iter().map(|bound| bound.pod)
    }

    /// By resource: the allocatable amount of a node.
    pub fn allocatable(&self, node: NodeId) -> &[i64] {
        let n = self.cluster.n_resources;
        &self.allocatable[node.index() * n..][..n]
    }

    /// By resource: the sum of the requests of the pods on a node.
    pub fn used(&self, node: NodeId) -> &[i64] {
        let n = self.cluster.n_resources;
        &self.used[node.index() * n..][..n]
    }

    /// By resource: the requests of a shape.
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

    /// By budget: the number of disruptions it still allows.
    pub fn budgets(&self) -> &[i32] {
        &self.cluster.budgets
    }

    /// The sort key by which the most important unit comes first. It ends with the name, so the order is total.
    pub(crate) fn importance(&self, unit: UnitId) -> impl Ord + use<> {
        importance(&self.units, unit)
    }
}

/// Sorts the pods of a node by the importance of their units, then by name.
fn sort_bound_pods(on_node: &mut [BoundPod], units: &[Unit], cluster: &Cluster) {
    on_node.sort_unstable_by_key(|bound| (importance(units, bound.unit), cluster.pods[bound.pod.index()].rank));
}

/// docs/rules/kubernetes-groups.md#g4, docs/rules/kubernetes-pods.md#p13: higher priority, then member of a group, then more pods, then
/// older, then by name.
fn importance(units: &[Unit], id: UnitId) -> impl Ord + use<> {
    let unit = &units[id.index()];
    (Reverse(unit.priority), Reverse(unit.grouped), Reverse(unit.pods.len()), unit.start, unit.rank)
}

/// Returns the units: whole groups, other bound pods and admitted workloads; the unit of each pod; and the unit of each group.
fn units_of(cluster: &Cluster) -> (Vec<Unit>, Vec<Option<UnitId>>, Vec<Option<UnitId>>) {
    let mut single: Vec<Vec<PodId>> = Vec::new();
    let mut unit_of = vec![None; cluster.pods.len()];
    let mut unit_of_group: Vec<Option<UnitId>> = vec![None; cluster.groups.len()];
    let mut of_workload = vec![false; cluster.pods.len()];
    for workload in cluster.workloads.iter().filter(|workload| workload.admission.is_some()) {
        for &pod in workload.pod_sets.iter().flat_map(|set| &set.pods) {
            of_workload[pod.index()] = true;
        }
    }
    let is_single = |(index, pod): &(usize, &Pod)| pod.node.is_some() && !of_workload[*index];
    for (index, pod) in cluster.pods.iter().enumerate().filter(is_single) {
        let group = pod.group.filter(|group| cluster.groups[group.index()].mode == DisruptionMode::All);
        let id = group.and_then(|group| unit_of_group[group.index()]).unwrap_or_else(|| {
            single.push(Vec::new());
            UnitId::new(single.len() - 1)
        });
        if let Some(group) = group {
            unit_of_group[group.index()] = Some(id);
        }
        single[id.index()].push(PodId::new(index));
        unit_of[index] = Some(id);
    }
    let mut units: Vec<Unit> = single.into_iter().map(|pods| Unit::of(cluster, pods)).collect();
    for (index, workload) in cluster.workloads.iter().enumerate() {
        if let Some(admission) = &workload.admission {
            let pods = workload.pod_sets.iter().flat_map(|set| &set.pods).copied();
            let pods: Vec<PodId> = pods.filter(|pod| cluster.pods[pod.index()].node.is_some()).collect();
            for pod in &pods {
                unit_of[pod.index()] = Some(UnitId::new(units.len()));
            }
            units.push(Unit::of_workload(WorkloadId::new(index), workload, admission.since, pods));
        }
    }
    (units, unit_of, unit_of_group)
}

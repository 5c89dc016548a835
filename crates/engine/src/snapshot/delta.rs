//! Changes to a snapshot between decisions. The loader's cache calls them; the cost of each is proportional to the pods on the nodes it
//! touches.

use std::collections::BTreeSet;

use super::{BoundPod, Cluster, DisruptionMode, Group, Job, Pod, Snapshot, Unit, sort_bound_pods};
use crate::ids::{BudgetId, GroupId, JobId, NodeId, PodId, Priority, ShapeId, UnitId, WorkloadId};
use crate::shape::Shape;
use crate::workloads::Workload;

/// The units and nodes whose pods changed, to be computed again.
#[derive(Default)]
struct Touched {
    units: BTreeSet<UnitId>,
    nodes: BTreeSet<NodeId>,
}

impl Snapshot {
    /// Adds a shape, whose `requests` has an amount for every resource.
    pub fn add_shape(&mut self, shape: Shape) -> ShapeId {
        let id = ShapeId::new(self.cluster.shapes.len());
        self.requests.extend(&shape.requests);
        if !shape.anti_affinity.is_empty() {
            self.anti_affinity_shapes.push(id);
        }
        self.cluster.shapes.push(shape);
        id
    }

    /// The number of shapes.
    pub fn n_shapes(&self) -> usize {
        self.cluster.shapes.len()
    }

    /// Whether any shape has anti-affinity terms.
    pub fn has_anti_affinity(&self) -> bool {
        !self.anti_affinity_shapes.is_empty()
    }

    /// The number of label values.
    pub fn n_numbers(&self) -> usize {
        self.cluster.numbers.len()
    }

    /// Adds the next label value with the integer that it spells, if it spells one.
    pub fn add_number(&mut self, number: Option<i64>) {
        self.cluster.numbers.push(number);
    }

    /// Adds a group that has no members yet.
    pub fn add_group(&mut self, group: Group) -> GroupId {
        self.cluster.groups.push(group);
        self.unit_of_group.push(None);
        GroupId::new(self.cluster.groups.len() - 1)
    }

    /// Adds a job that has no members yet.
    pub fn add_job(&mut self, job: Job) -> JobId {
        self.cluster.jobs.push(job);
        JobId::new(self.cluster.jobs.len() - 1)
    }

    /// Sets the allocatable amounts of a node.
    pub fn set_allocatable(&mut self, node: NodeId, amounts: &[i64]) {
        let n = self.cluster.n_resources;
        self.allocatable[node.index() * n..][..n].copy_from_slice(amounts);
        self.cluster.nodes[node.index()].allocatable = amounts.to_vec();
    }

    /// Sets the number of disruptions that a budget still allows.
    pub fn set_budget(&mut self, budget: BudgetId, allowed: i32) {
        self.cluster.budgets[budget.index()] = allowed;
    }

    /// Sets new ranks, which must not change the order of the pods.
    pub fn set_ranks(&mut self, ranks: impl Iterator<Item = (PodId, u64)>) {
        for (pod, rank) in ranks {
            self.cluster.pods[pod.index()].rank = rank;
        }
        for unit in self.units.iter_mut().filter(|unit| unit.workload.is_none() && !unit.pods.is_empty()) {
            unit.rank = self.cluster.pods[unit.pods[0].index()].rank;
        }
    }

    /// Sets whether a pod is the first of its application.
    pub fn set_originator(&mut self, pod: PodId, originator: bool) {
        self.cluster.pods[pod.index()].originator = originator;
    }

    /// Puts a pod into the table, replacing the pod with this id. The id is one in use or the next free one.
    pub fn put_pod(&mut self, id: PodId, pod: Pod) {
        if id.index() == self.cluster.pods.len() {
            self.cluster.pods.push(Pod::default());
            self.unit_of.push(None);
            self.bound_node.push(None);
        }
        let mut touched = Touched::default();
        self.detach(id, &mut touched);
        self.attach(id, pod, &mut touched);
        self.refresh(touched);
    }

    /// Replaces pods of the table as repeated [`Snapshot::put_pod`] does, but computes each unit and node again only once. Returns the
    /// replaced pods in the order that restores the snapshot if they are passed to this function, apart from new units at the end of the
    /// table, which [`Snapshot::forget_units_from`] removes.
    pub(crate) fn replace_pods(&mut self, new: Vec<(PodId, Pod)>) -> Vec<(PodId, Pod)> {
        let mut touched = Touched::default();
        let mut old: Vec<(PodId, Pod)> = new.iter().map(|&(id, _)| (id, self.detach(id, &mut touched))).collect();
        for (id, pod) in new {
            self.attach(id, pod, &mut touched);
        }
        self.refresh(touched);
        old.reverse();
        old
    }

    /// Removes the entries from this one on from the table of units; they must be unused.
    pub(crate) fn forget_units_from(&mut self, n_units: usize) {
        debug_assert!(self.units[n_units..].iter().all(|unit| unit.pods.is_empty()));
        self.units.truncate(n_units);
        self.free_units.retain(|unit| unit.index() < n_units);
    }

    /// The lowest priority of a bound pod's unit.
    pub(crate) fn lowest_priority(&self) -> Option<Priority> {
        self.bound_pods.iter().filter_map(|on_node| on_node.last()).map(|bound| bound.priority).min()
    }

    /// Puts a pod into an empty entry of the table. The caller computes what it touched again.
    fn attach(&mut self, id: PodId, pod: Pod, touched: &mut Touched) {
        let (node, reserved, group, job) = (pod.node, pod.reserves(), pod.group, pod.job);
        self.cluster.pods[id.index()] = pod;
        self.index_marks_and_applications(id);
        if let Some(group) = group {
            insert_by_rank(&self.cluster.pods, &mut self.cluster.groups[group.index()].members, id);
        }
        if let Some(job) = job {
            insert_by_rank(&self.cluster.pods, &mut self.cluster.jobs[job.index()].members, id);
        }
        if let Some(node) = node {
            touched.units.insert(self.join_unit(id, node));
            self.charge(id, node, 1);
        } else if let Some(node) = reserved {
            insert_by_rank(&self.cluster.pods, &mut self.nominees[node.index()], id);
        }
    }

    /// Puts a workload without pods into the table, replacing the workload with this id. The id is one in use or the next free one.
    pub fn put_workload(&mut self, id: WorkloadId, workload: Workload) {
        if id.index() == self.cluster.workloads.len() {
            self.cluster.workloads.push(Workload::default());
            self.unit_of_workload.push(None);
        } else {
            self.remove_workload(id);
        }
        self.cluster.workloads[id.index()] = workload;
        let Cluster { workloads, queues, quota_rules, .. } = &mut self.cluster;
        let workload = &workloads[id.index()];
        let Some(admission) = &workload.admission else { return };
        let unit = Unit::of_workload(id, workload, admission.since, Vec::new());
        if let Some(queue) = workload.queue {
            quota_rules.admit(id, queue, workloads);
            queues.charge_quota(queue, &admission.usage, 1);
        }
        let free = self.free_unit();
        self.units[free.index()] = unit;
        self.unit_of_workload[id.index()] = Some(free);
    }

    /// Removes a workload and its use of quota.
    pub fn remove_workload(&mut self, id: WorkloadId) {
        if let Some(unit) = self.unit_of_workload[id.index()].take() {
            self.units[unit.index()] = Unit::vacant();
            self.free_units.push(unit);
        }
        let Cluster { workloads, queues, quota_rules, .. } = &mut self.cluster;
        let removed = std::mem::take(&mut workloads[id.index()]);
        if let (Some(queue), Some(admission)) = (removed.queue, &removed.admission) {
            quota_rules.remove_admitted(id, queue, workloads);
            queues.charge_quota(queue, &admission.usage, -1);
        }
    }

    /// Removes a pod from the table, from its node, its unit, its group and its job.
    pub fn remove_pod(&mut self, id: PodId) {
        let mut touched = Touched::default();
        self.detach(id, &mut touched);
        self.refresh(touched);
    }

    /// Takes a pod out of the table and leaves an empty entry. The caller computes what it touched again.
    fn detach(&mut self, id: PodId, touched: &mut Touched) -> Pod {
        if let Some(node) = self.cluster.pods[id.index()].node {
            self.charge(id, node, -1);
            self.leave_unit(id, node, touched);
        }
        self.unindex_marks_and_applications(id);
        let pod = std::mem::take(&mut self.cluster.pods[id.index()]);
        if let (None, Some(node)) = (pod.node, pod.reserves()) {
            self.nominees[node.index()].retain(|&nominee| nominee != id);
        }
        if let Some(group) = pod.group {
            self.cluster.groups[group.index()].members.retain(|&member| member != id);
        }
        if let Some(job) = pod.job {
            self.cluster.jobs[job.index()].members.retain(|&member| member != id);
        }
        pod
    }

    /// Computes units and nodes again after changes of their pods.
    fn refresh(&mut self, touched: Touched) {
        for unit in touched.units {
            if !self.units[unit.index()].pods.is_empty() {
                self.refresh_unit(unit);
            }
        }
        for node in touched.nodes {
            self.refresh_only_single_pod_units(node);
        }
    }

    /// Returns an unused entry of `units`.
    fn free_unit(&mut self) -> UnitId {
        self.free_units.pop().unwrap_or_else(|| {
            self.units.push(Unit::vacant());
            UnitId::new(self.units.len() - 1)
        })
    }

    fn join_unit(&mut self, id: PodId, node: NodeId) -> UnitId {
        let group = self.whole_group_of(id);
        let unit = group.and_then(|group| self.unit_of_group[group.index()]).unwrap_or_else(|| self.free_unit());
        if let Some(group) = group {
            self.unit_of_group[group.index()] = Some(unit);
        }
        self.bound_node[id.index()] = Some(node);
        self.unit_of[id.index()] = Some(unit);
        insert_by_rank(&self.cluster.pods, &mut self.units[unit.index()].pods, id);
        let Pod { shape, priority, start, .. } = self.cluster.pods[id.index()];
        self.bound_pods[node.index()].push(BoundPod { pod: id, unit, shape, priority, start });
        unit
    }

    fn leave_unit(&mut self, id: PodId, node: NodeId, touched: &mut Touched) {
        self.bound_node[id.index()] = None;
        let unit = self.unit_of[id.index()].take().expect("a bound pod has a unit");
        self.bound_pods[node.index()].retain(|bound| bound.pod != id);
        self.units[unit.index()].pods.retain(|&pod| pod != id);
        touched.nodes.insert(node);
        if self.units[unit.index()].pods.is_empty() {
            self.units[unit.index()] = Unit::vacant();
            self.free_units.push(unit);
            if let Some(group) = self.whole_group_of(id) {
                self.unit_of_group[group.index()] = None;
            }
        } else {
            touched.units.insert(unit);
        }
    }

    /// The group of a pod, if that group is preempted as a whole.
    fn whole_group_of(&self, pod: PodId) -> Option<GroupId> {
        let group = self.cluster.pods[pod.index()].group?;
        (self.cluster.groups[group.index()].mode == DisruptionMode::All).then_some(group)
    }

    /// Computes a unit again after a change of its pods, and sorts the lists of its nodes.
    fn refresh_unit(&mut self, id: UnitId) {
        let pods = std::mem::take(&mut self.units[id.index()].pods);
        self.units[id.index()] = Unit::of(&self.cluster, pods);
        for index in 0..self.units[id.index()].pods.len() {
            let pod = self.units[id.index()].pods[index];
            let node = self.bound_node[pod.index()].expect("a unit's pods are bound");
            let Self { bound_pods, units, cluster, .. } = self;
            let on_node = &mut bound_pods[node.index()];
            for bound in on_node.iter_mut().filter(|bound| bound.unit == id) {
                bound.priority = units[id.index()].priority;
            }
            sort_bound_pods(on_node, units, cluster);
            self.refresh_only_single_pod_units(node);
        }
    }

    pub(super) fn refresh_only_single_pod_units(&mut self, node: NodeId) {
        let is_single = |bound: &BoundPod| {
            let unit = &self.units[bound.unit.index()];
            unit.pods.len() == 1 && !unit.shielded && self.cluster.pods[bound.pod.index()].budgets.is_empty()
        };
        self.only_single_pod_units[node.index()] = self.bound_pods[node.index()].iter().all(is_single);
    }
}

/// Inserts a pod into a list that is sorted by rank.
fn insert_by_rank(pods: &[Pod], list: &mut Vec<PodId>, id: PodId) {
    let rank = |pod: PodId| pods[pod.index()].rank;
    let position = list.partition_point(|&other| rank(other) < rank(id));
    list.insert(position, id);
}

impl Pod {
    /// Whether a law other than that of priority may spare the pod.
    pub(crate) fn is_shielded(&self) -> bool {
        self.toleration.is_some() || self.protected || self.set_aside || self.opted_out || self.class_unknown
    }
}

//! Changes to a snapshot that lives on. Each costs in proportion to what it touches: a pod's node, and the nodes of its unit.

use super::{BoundPod, Cluster, DisruptionMode, Group, Job, Pod, Snapshot, Unit, importance};
use crate::ids::{BudgetId, GroupId, JobId, NodeId, PodId, ShapeId, UnitId, WorkloadId};
use crate::shape::Shape;
use crate::workloads::Workload;

impl Snapshot {
    /// Adds a shape, with an amount for every resource.
    pub fn add_shape(&mut self, shape: Shape) -> ShapeId {
        let id = ShapeId::new(self.cluster.shapes.len());
        self.requests.extend(&shape.requests);
        if !shape.anti_affinity.is_empty() {
            self.anti_affinity_shapes.push(id);
        }
        self.cluster.shapes.push(shape);
        id
    }

    /// How many shapes there are.
    pub fn n_shapes(&self) -> usize {
        self.cluster.shapes.len()
    }

    /// Whether any pod keeps others away by their labels.
    pub fn has_anti_affinity(&self) -> bool {
        !self.anti_affinity_shapes.is_empty()
    }

    /// How many label values there are.
    pub fn n_numbers(&self) -> usize {
        self.cluster.numbers.len()
    }

    /// Adds what the next label value spells as a whole number.
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

    /// Sets how many more disruptions a budget allows.
    pub fn set_budget(&mut self, budget: BudgetId, allowed: i32) {
        self.cluster.budgets[budget.index()] = allowed;
    }

    /// Gives pods new places in the order of names, in which they come here, without changing that order.
    pub fn set_ranks(&mut self, ranks: impl Iterator<Item = (PodId, u64)>) {
        for (pod, rank) in ranks {
            self.cluster.pods[pod.index()].rank = rank;
        }
        for unit in self.units.iter_mut().filter(|unit| unit.workload.is_none() && !unit.pods.is_empty()) {
            unit.rank = self.cluster.pods[unit.pods[0].index()].rank;
        }
    }

    /// Marks a pod as its application's first, or not.
    pub fn set_originator(&mut self, pod: PodId, originator: bool) {
        self.cluster.pods[pod.index()].originator = originator;
    }

    /// Puts a pod in, in the place of what had this id. The ids that were given out, and the next, are free to use.
    pub fn put_pod(&mut self, id: PodId, pod: Pod) {
        if id.index() == self.cluster.pods.len() {
            self.cluster.pods.push(Pod::default());
            self.unit_of.push(None);
            self.bound_node.push(None);
        } else {
            self.remove_pod(id);
        }
        let (node, nominated, group, job) = (pod.node, pod.nominated, pod.group, pod.job);
        self.cluster.pods[id.index()] = pod;
        if let Some(group) = group {
            let at = self.sorted_position(&self.cluster.groups[group.index()].members, id);
            self.cluster.groups[group.index()].members.insert(at, id);
        }
        if let Some(job) = job {
            let at = self.sorted_position(&self.cluster.jobs[job.index()].members, id);
            self.cluster.jobs[job.index()].members.insert(at, id);
        }
        if let Some(node) = node {
            self.join_unit(id, node);
            self.charge(id, node, 1);
        } else if let Some(node) = nominated {
            let at = self.sorted_position(&self.nominees[node.index()], id);
            self.nominees[node.index()].insert(at, id);
        }
    }

    /// Puts a workload in, in the place of what had this id, with no pods of its own. The ids that were given out, and the next, are free
    /// to use.
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

    /// Takes a workload out.
    pub fn remove_workload(&mut self, id: WorkloadId) {
        if let Some(unit) = self.unit_of_workload[id.index()].take() {
            self.units[unit.index()] = Unit::vacant();
            self.free_units.push(unit);
        }
        let Cluster { workloads, queues, quota_rules, .. } = &mut self.cluster;
        let gone = std::mem::take(&mut workloads[id.index()]);
        if let (Some(queue), Some(admission)) = (gone.queue, &gone.admission) {
            quota_rules.dismiss(id, queue, workloads);
            queues.charge_quota(queue, &admission.usage, -1);
        }
    }

    /// Takes a pod out.
    pub fn remove_pod(&mut self, id: PodId) {
        if let Some(node) = self.cluster.pods[id.index()].node {
            self.charge(id, node, -1);
            self.leave_unit(id, node);
        }
        let pod = std::mem::take(&mut self.cluster.pods[id.index()]);
        if let (None, Some(node)) = (pod.node, pod.nominated) {
            self.nominees[node.index()].retain(|&nominee| nominee != id);
        }
        if let Some(group) = pod.group {
            self.cluster.groups[group.index()].members.retain(|&member| member != id);
        }
        if let Some(job) = pod.job {
            self.cluster.jobs[job.index()].members.retain(|&member| member != id);
        }
    }

    /// Where a pod stands among others in the order of names.
    fn sorted_position(&self, pods: &[PodId], id: PodId) -> usize {
        let rank = |pod: PodId| self.cluster.pods[pod.index()].rank;
        pods.partition_point(|&other| rank(other) < rank(id))
    }

    /// A unit that nobody is in.
    fn free_unit(&mut self) -> UnitId {
        self.free_units.pop().unwrap_or_else(|| {
            self.units.push(Unit::vacant());
            UnitId::new(self.units.len() - 1)
        })
    }

    fn join_unit(&mut self, id: PodId, node: NodeId) {
        let whole = self.cluster.pods[id.index()].group.filter(|group| self.yields_whole(*group));
        let unit = whole.and_then(|group| self.unit_of_group[group.index()]).unwrap_or_else(|| self.free_unit());
        if let Some(group) = whole {
            self.unit_of_group[group.index()] = Some(unit);
        }
        self.bound_node[id.index()] = Some(node);
        self.unit_of[id.index()] = Some(unit);
        let at = self.sorted_position(&self.units[unit.index()].pods, id);
        self.units[unit.index()].pods.insert(at, id);
        let Pod { shape, priority, start, .. } = self.cluster.pods[id.index()];
        self.bound_pods[node.index()].push(BoundPod { pod: id, unit, shape, priority, start });
        self.refresh_unit(unit);
    }

    fn leave_unit(&mut self, id: PodId, node: NodeId) {
        self.bound_node[id.index()] = None;
        let unit = self.unit_of[id.index()].take().expect("a bound pod has a unit");
        self.bound_pods[node.index()].retain(|slot| slot.pod != id);
        self.units[unit.index()].pods.retain(|&pod| pod != id);
        if self.units[unit.index()].pods.is_empty() {
            self.units[unit.index()] = Unit::vacant();
            self.free_units.push(unit);
            if let Some(group) = self.cluster.pods[id.index()].group.filter(|group| self.yields_whole(*group)) {
                self.unit_of_group[group.index()] = None;
            }
        } else {
            self.refresh_unit(unit);
        }
        self.refresh_only_single_pod_units(node);
    }

    fn yields_whole(&self, group: GroupId) -> bool {
        self.cluster.groups[group.index()].mode == DisruptionMode::All
    }

    /// Works out again what a unit is, and where its pods stand on their nodes.
    fn refresh_unit(&mut self, id: UnitId) {
        let pods = std::mem::take(&mut self.units[id.index()].pods);
        self.units[id.index()] = Unit::of(&self.cluster, pods);
        for at in 0..self.units[id.index()].pods.len() {
            let pod = self.units[id.index()].pods[at];
            let node = self.bound_node[pod.index()].expect("a unit's pods are bound");
            let Self { bound_pods: slots, units, cluster, .. } = self;
            let slots = &mut slots[node.index()];
            for slot in slots.iter_mut().filter(|slot| slot.unit == id) {
                slot.priority = units[id.index()].priority;
            }
            slots.sort_unstable_by_key(|slot| (importance(units, slot.unit), cluster.pods[slot.pod.index()].rank));
            self.refresh_only_single_pod_units(node);
        }
    }

    pub(super) fn refresh_only_single_pod_units(&mut self, node: NodeId) {
        let plain = |slot: &BoundPod| {
            let unit = &self.units[slot.unit.index()];
            unit.pods.len() == 1 && !unit.shielded && self.cluster.pods[slot.pod.index()].budgets.is_empty()
        };
        self.only_single_pod_units[node.index()] = self.bound_pods[node.index()].iter().all(plain);
    }
}

impl Pod {
    /// Whether a law may spare it whatever its priority.
    pub(crate) fn is_shielded(&self) -> bool {
        self.toleration.is_some() || self.protected || self.opted_out || self.class_unknown
    }
}

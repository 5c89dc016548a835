//! The step *fit* of a decision: the preemptor as a search reads it, and the check of one pod on one node. `filters` has the checks
//! themselves.

use std::collections::BTreeMap;

use crate::filters::{FilterFailure, node};
use crate::ids::{GroupId, JobId, NodeId, PodId, Priority, QueueId, ResourceId, ShapeId, WorkloadId};
use crate::queues::QueueTree;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The id of a preemptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptorId {
    /// One pod.
    Pod(PodId),
    /// A group with its pending pods.
    Group(GroupId),
    /// A workload that needs quota.
    Workload(WorkloadId),
}

/// A resource of which too little is free: on a node for a pod, or below the limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The resource.
    pub resource: ResourceId,
    /// The missing amount.
    pub amount: i64,
    /// Whether the pod requests more than the node's total.
    pub beyond: bool,
}

/// The node of each pod of the preemptor that is placed.
pub type Placement = Vec<(PodId, NodeId)>;

/// How the members of a gang are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// If the greedy placement fails, every assignment of members to nodes is considered.
    #[default]
    Complete,
    /// Each member gets a node in turn; no other assignment is tried.
    Greedy,
}

/// A preemptor: the pods to place, and the properties that laws and filters read.
#[derive(Clone, Debug)]
pub struct Preemptor {
    /// The id of a preemptor.
    pub id: PreemptorId,
    /// The pods to place, in the order in which they are placed.
    pub members: Vec<PodId>,
    /// The job of the pod, under a policy that places jobs as a whole.
    pub job: Option<JobId>,
    /// The number of members that must be placed.
    pub needed: usize,
    /// The priority as a preemptor.
    pub priority: Priority,
    /// The node of a pod that is resized in place.
    pub resizes_on: Option<NodeId>,
    /// By shape and by node: whether the node accepts pods of the shape. Set if more than the shape decides it (Kueue flavors).
    pub open: BTreeMap<ShapeId, Vec<bool>>,
    /// How its pods are placed.
    pub search: Search,
}

impl Preemptor {
    /// Reads the preemptor from the snapshot.
    pub fn new(snapshot: &Snapshot, preemptor: PreemptorId) -> Self {
        let mut resizes_on = None;
        let (needed, priority, members) = match preemptor {
            PreemptorId::Workload(id) => {
                let workload = snapshot.workload(id);
                let members: Vec<PodId> = workload.pod_sets.iter().flat_map(|set| &set.pods).copied().collect();
                let needed = members.len();
                (needed, workload.priority, members)
            }
            PreemptorId::Pod(id) => {
                let pod = snapshot.pod(id);
                resizes_on = pod.node.filter(|_| pod.resizing);
                (1, pod.priority, vec![id])
            }
            PreemptorId::Group(id) => {
                let group = snapshot.group(id);
                let members: Vec<PodId> =
                    group.members.iter().copied().filter(|&pod| is_to_be_placed(snapshot, pod)).collect();
                let running = group.members.iter().filter(|&&pod| snapshot.pod(pod).runs()).count();
                if group.from_owner {
                    let lowest = members.iter().map(|&pod: &PodId| snapshot.pod(pod).priority).min();
                    (members.len().max(1), lowest.unwrap_or_default(), members)
                } else {
                    (group.min_count.saturating_sub(running).max(1), group.priority, members)
                }
            }
        };
        let (open, search) = (BTreeMap::new(), Search::Greedy);
        Self { id: preemptor, members, job: None, needed, priority, resizes_on, open, search }
    }

    /// Adds all pending pods of the pod's job.
    pub fn with_job(mut self, snapshot: &Snapshot, pod: PodId) -> Self {
        if let Some(job) = snapshot.pod(pod).job {
            let members = snapshot.job(job).members.iter().copied();
            self.members = members.filter(|&pod| is_to_be_placed(snapshot, pod)).collect();
            (self.job, self.needed) = (Some(job), self.members.len());
        }
        self
    }

    /// The distinct shapes of its pods.
    pub fn shapes(&self, snapshot: &Snapshot) -> Vec<ShapeId> {
        if self.resizes_on.is_some() {
            return Vec::new(); // only the resource check applies to a pod that stays where it is
        }
        by_shape(snapshot, &self.members).into_keys().collect()
    }

    /// The what-if of the search. A pod that is resized in place is removed from its node, so that it is counted once.
    pub(crate) fn what_if<'s>(&self, snapshot: &'s mut Snapshot) -> WhatIf<'s> {
        let shapes = self.shapes(snapshot);
        let mut what_if = WhatIf::new(snapshot, &shapes);
        if self.resizes_on.is_some() {
            what_if.remove(self.members[0]);
        }
        what_if
    }

    /// docs/rules/kubernetes-pods.md#p6, docs/rules/kubernetes-groups.md#g15: the pending pods nominated to the node whose resources this
    /// preemptor may not use.
    pub(crate) fn competing_nominees(&self, snapshot: &Snapshot, node: NodeId) -> impl Iterator<Item = PodId> {
        let competes = move |id: PodId| {
            let pod = snapshot.pod(id);
            pod.node.is_none() && pod.priority >= self.priority && !self.members.contains(&id)
        };
        snapshot.nominees(node).iter().copied().filter(move |&pod| competes(pod))
    }

    /// The reason why the node does not accept the pod, independent of the other pods on it.
    pub(crate) fn node_failure(&self, snapshot: &Snapshot, pod: PodId, node: NodeId) -> Option<FilterFailure> {
        if let Some(own) = self.resizes_on {
            let disabled = (!snapshot.node(node).resize_preempts).then_some(FilterFailure::ResizeDisabled);
            return (own != node).then_some(FilterFailure::NodeSelection).or(disabled);
        }
        let shape = snapshot.pod(pod).shape;
        match self.open.get(&shape) {
            Some(open) => (!open[node.index()]).then_some(FilterFailure::NodeSelection),
            None => node::filter_failure(snapshot, snapshot.shape(shape), node),
        }
    }

    /// The reason why the pod does not fit on the node in the what-if, checked both with and without the competing nominees.
    pub(crate) fn filter_failure(&self, what_if: &mut WhatIf<'_>, pod: PodId, node: NodeId) -> Option<FilterFailure> {
        if let Some(failure) = self.node_failure(what_if.snapshot(), pod, node) {
            return Some(failure);
        }
        let check = |what_if: &WhatIf<'_>| filter_failure_without_nominees(what_if, pod, node);
        if what_if.snapshot().nominees(node).is_empty() {
            return check(what_if);
        }
        self.with_nominees(what_if, node, check).or_else(|| check(what_if))
    }

    /// Calls `look` with the competing nominees placed on the node.
    fn with_nominees<T>(&self, what_if: &mut WhatIf<'_>, node: NodeId, look: impl FnOnce(&WhatIf<'_>) -> T) -> T {
        let nominees: Vec<PodId> = self.competing_nominees(what_if.snapshot(), node).collect();
        let mark = what_if.mark();
        for nominee in nominees {
            what_if.place(nominee, node);
        }
        let result = look(what_if);
        what_if.back_to(mark);
        result
    }

    /// Every resource that is short for the pod on the node, with the competing nominees in place. Explanations list all of them; a
    /// decision needs only the first.
    pub(crate) fn every_shortage(&self, what_if: &mut WhatIf<'_>, pod: PodId, node: NodeId) -> Vec<Shortage> {
        self.with_nominees(what_if, node, |what_if| every_shortage_without_nominees(what_if.snapshot(), pod, node))
    }
}

/// The distinct shapes of these pods, each with the first pod of that shape.
pub(crate) fn by_shape(snapshot: &Snapshot, pods: &[PodId]) -> BTreeMap<ShapeId, PodId> {
    let mut by_shape = BTreeMap::new();
    for &pod in pods {
        by_shape.entry(snapshot.pod(pod).shape).or_insert(pod);
    }
    by_shape
}

/// Whether a member of a group or job is pending and placed together with the others.
fn is_to_be_placed(snapshot: &Snapshot, pod: PodId) -> bool {
    let pod = snapshot.pod(pod);
    pod.node.is_none() && pod.terminating.is_none() && pod.takes_part()
}

/// Like [`Preemptor::filter_failure`], without the node's own filters and without nominees.
pub(crate) fn filter_failure_without_nominees(what_if: &WhatIf<'_>, pod: PodId, node: NodeId) -> Option<FilterFailure> {
    let (snapshot, inter_pod) = (what_if.snapshot(), what_if.inter_pod());
    let shape = snapshot.pod(pod).shape;
    inter_pod
        .port_conflict(snapshot, shape, node)
        .or_else(|| first_shortage(snapshot, shape, node))
        .or_else(|| inter_pod.filter_failure(snapshot, shape, node))
}

/// The first resource of which the node has too little free for one more pod of the shape.
pub(crate) fn first_shortage(snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> Option<FilterFailure> {
    let mut shortages = shortages(snapshot, shape, node);
    let (resource, short) = shortages.next()?;
    let beyond = is_beyond(snapshot, shape, node, resource)
        || shortages.any(|(resource, _)| is_beyond(snapshot, shape, node, resource));
    Some(FilterFailure::Resource { resource, short, beyond })
}

/// Whether a pod of the shape requests more of the resource than the node's total. The number of pods is not a request.
fn is_beyond(snapshot: &Snapshot, shape: ShapeId, node: NodeId, resource: ResourceId) -> bool {
    let index = resource.index();
    resource != ResourceId::PODS && snapshot.requests(shape)[index] > snapshot.allocatable(node)[index]
}

/// Like [`Preemptor::every_shortage`], without nominees.
pub(crate) fn every_shortage_without_nominees(snapshot: &Snapshot, pod: PodId, node: NodeId) -> Vec<Shortage> {
    let shape = snapshot.pod(pod).shape;
    let beyond = |resource| is_beyond(snapshot, shape, node, resource);
    let shortage = |(resource, amount)| Shortage { resource, amount, beyond: beyond(resource) };
    shortages(snapshot, shape, node).map(shortage).collect()
}

/// The resources of which the node has too little free for one more pod of the shape, and the missing amounts. A resource that is not
/// requested is never short.
pub(crate) fn shortages(snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> impl Iterator<Item = (ResourceId, i64)> {
    let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
    snapshot.requests(shape).iter().enumerate().filter(|(_, request)| **request > 0).filter_map(
        move |(index, request)| {
            let short = request + used[index] - allocatable[index];
            (short > 0).then_some((ResourceId::new(index), short))
        },
    )
}

/// Every resource of which these amounts would take the queue over its limit.
pub(crate) fn shortages_below_limit(queues: &QueueTree, queue: QueueId, amounts: &[i64]) -> Vec<Shortage> {
    let shortage = |(resource, amount)| Shortage { resource, amount, beyond: false };
    queues.all_over_limit(queue, amounts).map(shortage).collect()
}

//! Does it fit, and where? The preemptor as the search sees it, and the check of one pod on one node.

use std::collections::BTreeMap;

use crate::filters::{FilterFailure, node};
use crate::ids::{GroupId, JobId, NodeId, PodId, Priority, QueueId, ResourceId, ShapeId, WorkloadId};
use crate::queues::QueueTree;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptorId {
    /// One pod.
    Pod(PodId),
    /// A group with its pending pods.
    Group(GroupId),
    /// A workload that asks for quota.
    Workload(WorkloadId),
}

/// A resource of which there is too little: on a node for a pod, or below a queue's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The resource.
    pub resource: ResourceId,
    /// How much is missing.
    pub amount: i64,
    /// Whether the pod asks for more than the whole node has.
    pub beyond: bool,
}

/// Pod to node, for every pod of the preemptor that is placed.
pub type Placement = Vec<(PodId, NodeId)>;

/// What the preemptor asks for.
#[derive(Clone, Debug)]
pub struct Preemptor {
    /// Who asks.
    pub id: PreemptorId,
    /// Its pods that need a place, in the order in which they are placed.
    pub members: Vec<PodId>,
    /// The job that a pod asks with, under a policy that places jobs whole.
    pub job: Option<JobId>,
    /// How many of them must find one.
    pub needed: usize,
    /// Its priority when it asks.
    pub priority: Priority,
    /// The node that it runs on already, for a pod that grows in place.
    pub resizes_on: Option<NodeId>,
    /// By shape of its pods and by node: whether the node is open to them, where more than the shape decides that.
    pub open: BTreeMap<ShapeId, Vec<bool>>,
}

impl Preemptor {
    /// Reads the preemptor off the snapshot.
    pub fn new(snapshot: &Snapshot, preemptor: PreemptorId) -> Self {
        let mut resizes_on = None;
        let (members, needed, priority) = match preemptor {
            PreemptorId::Workload(id) => {
                let workload = snapshot.workload(id);
                let members: Vec<PodId> = workload.pod_sets.iter().flat_map(|set| &set.pods).copied().collect();
                let needed = members.len();
                (members, needed, workload.priority)
            }
            PreemptorId::Pod(id) => {
                let pod = snapshot.pod(id);
                resizes_on = pod.node.filter(|_| pod.resizing);
                (vec![id], 1, pod.priority)
            }
            PreemptorId::Group(id) => {
                let group = snapshot.group(id);
                let members = group.members.iter().copied().filter(|&pod| is_to_be_placed(snapshot, pod)).collect();
                let running = group.members.iter().filter(|&&pod| snapshot.pod(pod).node.is_some()).count();
                (members, group.min_count.saturating_sub(running).max(1), group.priority)
            }
        };
        Self { id: preemptor, members, job: None, needed, priority, resizes_on, open: BTreeMap::new() }
    }

    /// A pod with its job: all pods of it that need a place.
    pub fn with_job(mut self, snapshot: &Snapshot, pod: PodId) -> Self {
        if let Some(job) = snapshot.pod(pod).job {
            let members = snapshot.job(job).members.iter().copied();
            self.members = members.filter(|&pod| is_to_be_placed(snapshot, pod)).collect();
            (self.job, self.needed) = (Some(job), self.members.len());
        }
        self
    }

    /// The shapes of its pods, each once.
    pub fn shapes(&self, snapshot: &Snapshot) -> Vec<ShapeId> {
        if self.resizes_on.is_some() {
            return Vec::new(); // only the resource check applies to a pod that stays where it is
        }
        by_shape(snapshot, &self.members).into_keys().collect()
    }

    /// The what-if in which the question is asked: a pod that grows in place is off its node, so that it is counted once.
    pub(crate) fn what_if<'s>(&self, snapshot: &'s mut Snapshot) -> WhatIf<'s> {
        let shapes = self.shapes(snapshot);
        let mut what_if = WhatIf::new(snapshot, &shapes);
        if self.resizes_on.is_some() {
            what_if.remove(self.members[0]);
        }
        what_if
    }

    /// The pending pods whose nomination holds room on the node against it. (Rule 6 of the pods, rule 15 of the groups.)
    pub(crate) fn competing_nominees<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        node: NodeId,
    ) -> impl Iterator<Item = PodId> + 'a {
        let holds = move |id: PodId| {
            let pod = snapshot.pod(id);
            pod.node.is_none() && pod.priority >= self.priority && !self.members.contains(&id)
        };
        snapshot.nominees(node).iter().copied().filter(move |&pod| holds(pod))
    }

    /// Why the node is closed to the pod whoever runs there.
    pub(crate) fn node_failure(&self, snapshot: &Snapshot, pod: PodId, node: NodeId) -> Option<FilterFailure> {
        if let Some(own) = self.resizes_on {
            return (own != node)
                .then_some(FilterFailure::NodeSelection)
                .or((!snapshot.node(node).resize_preempts).then_some(FilterFailure::ResizeDisabled));
        }
        let shape = snapshot.pod(pod).shape;
        match self.open.get(&shape) {
            Some(open) => (!open[node.index()]).then_some(FilterFailure::NodeSelection),
            None => node::filter_failure(snapshot, snapshot.shape(shape), node),
        }
    }
}

/// The shapes of these pods, each with the first pod that has it.
pub(crate) fn by_shape(snapshot: &Snapshot, pods: &[PodId]) -> BTreeMap<ShapeId, PodId> {
    let mut by_shape = BTreeMap::new();
    for &pod in pods {
        by_shape.entry(snapshot.pod(pod).shape).or_insert(pod);
    }
    by_shape
}

/// Whether a member of a group or job is pending and is placed with it.
fn is_to_be_placed(snapshot: &Snapshot, pod: PodId) -> bool {
    let pod = snapshot.pod(pod);
    pod.node.is_none() && pod.terminating.is_none() && pod.takes_part()
}

/// Why the pod does not fit on the node as things are in the what-if, if it does not: with the nominees that hold room there, or
/// without them.
pub(crate) fn filter_failure(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    pod: PodId,
    node: NodeId,
) -> Option<FilterFailure> {
    if let Some(closed) = ask.node_failure(what_if.snapshot(), pod, node) {
        return Some(closed);
    }
    if what_if.snapshot().nominees(node).is_empty() {
        return filter_failure_ignoring_nominations(what_if, pod, node);
    }
    let misfit = with_nominees(what_if, ask, node, |what_if| filter_failure_ignoring_nominations(what_if, pod, node));
    misfit.or_else(|| filter_failure_ignoring_nominations(what_if, pod, node))
}

/// What `look` returns with the nominees that hold room on the node in place.
fn with_nominees<T>(what_if: &mut WhatIf<'_>, ask: &Preemptor, node: NodeId, look: impl FnOnce(&WhatIf<'_>) -> T) -> T {
    let nominees: Vec<PodId> = ask.competing_nominees(what_if.snapshot(), node).collect();
    let mark = what_if.mark();
    for nominee in nominees {
        what_if.place(nominee, node);
    }
    let seen = look(what_if);
    what_if.back_to(mark);
    seen
}

/// The same with nobody but those who run there.
pub(crate) fn filter_failure_ignoring_nominations(
    what_if: &WhatIf<'_>,
    pod: PodId,
    node: NodeId,
) -> Option<FilterFailure> {
    let (snapshot, relations) = (what_if.snapshot(), what_if.inter_pod());
    let shape = snapshot.pod(pod).shape;
    relations
        .port_conflict(snapshot, shape, node)
        .or_else(|| first_shortage(snapshot, shape, node))
        .or_else(|| relations.filter_failure(snapshot, shape, node))
}

/// The first resource that is short on the node for one more pod of the shape.
pub(crate) fn first_shortage(snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> Option<FilterFailure> {
    let mut shortages = shortages(snapshot, shape, node);
    let (resource, short) = shortages.next()?;
    let beyond = is_beyond(snapshot, shape, node, resource)
        || shortages.any(|(resource, _)| is_beyond(snapshot, shape, node, resource));
    Some(FilterFailure::Resource { resource, short, beyond })
}

/// Whether a pod of the shape asks for more of the resource than the whole node has. The number of pods is no request.
fn is_beyond(snapshot: &Snapshot, shape: ShapeId, node: NodeId, resource: ResourceId) -> bool {
    let at = resource.index();
    resource != ResourceId::PODS && snapshot.requests(shape)[at] > snapshot.allocatable(node)[at]
}

/// Every resource that is short where [`misfit`] returned this, counted in the same state and with the same nominees; none
/// where resources are not the reason. Only explanations need it: a decision needs the first.
pub(crate) fn every_shortage(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    pod: PodId,
    node: NodeId,
    misfit: FilterFailure,
) -> Vec<Shortage> {
    with_nominees(what_if, ask, node, |what_if| shortages_ignoring_nominations(what_if.snapshot(), pod, node, misfit))
}

/// The same for a node that is refused by `misfit`: where a port is why, the resources that are short beside it, too.
pub(crate) fn shortages_where_refused(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    pod: PodId,
    node: NodeId,
    misfit: FilterFailure,
) -> Vec<Shortage> {
    let misfit = match misfit {
        FilterFailure::Ports => FilterFailure::Resource { resource: ResourceId::PODS, short: 0, beyond: false },
        misfit => misfit,
    };
    every_shortage(what_if, ask, pod, node, misfit)
}

/// The same for [`misfit_beside`], which counts no nominees.
pub(crate) fn shortages_ignoring_nominations(
    snapshot: &Snapshot,
    pod: PodId,
    node: NodeId,
    misfit: FilterFailure,
) -> Vec<Shortage> {
    let FilterFailure::Resource { .. } = misfit else {
        return Vec::new();
    };
    let shape = snapshot.pod(pod).shape;
    let shortage = |(resource, amount)| {
        let beyond = is_beyond(snapshot, shape, node, resource);
        Shortage { resource, amount, beyond }
    };
    shortages(snapshot, shape, node).map(shortage).collect()
}

/// The resources that are short on the node for one more pod of the shape, and by how much. What is not asked for is never short.
pub(crate) fn shortages(
    snapshot: &Snapshot,
    shape: ShapeId,
    node: NodeId,
) -> impl Iterator<Item = (ResourceId, i64)> + '_ {
    let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
    snapshot.requests(shape).iter().enumerate().filter(|(_, request)| **request > 0).filter_map(move |(at, request)| {
        let short = request + used[at] - allocatable[at];
        (short > 0).then_some((ResourceId::new(at), short))
    })
}

/// Every resource of which one more such use would take the queue over its ceiling.
pub(crate) fn shortages_below_limit(queues: &QueueTree, queue: QueueId, amounts: &[i64]) -> Vec<Shortage> {
    let shortage = |(resource, amount)| Shortage { resource, amount, beyond: false };
    queues.all_over_limit(queue, amounts).map(shortage).collect()
}

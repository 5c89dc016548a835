//! What landing on a node would cost, where nothing but priorities and resources matters: arithmetic over the node's pods in their
//! order. Everywhere else the exact search gives it.

use crate::decision::Cost;
use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, ShapeId};
use crate::snapshot::Snapshot;

/// How many resources the arithmetic handles at once: the number of pods, cpu, memory, and one more, such as a GPU.
const MAX_RESOURCES: usize = 4;

/// The arithmetic for one pod, prepared once for all nodes.
pub(super) struct NodeCost {
    /// Which resource each lane is; lanes that are not needed repeat the number of pods, and ask for none.
    resources: [usize; MAX_RESOURCES],
    wants: [i64; MAX_RESOURCES],
    /// By shape: what a pod of it takes; empty where there are so many shapes that it does not pay.
    requests_by_shape: Vec<[i64; MAX_RESOURCES]>,
}

/// For how many shapes what they take is worked out beforehand, at most.
const MAX_PRECOMPUTED_SHAPES: usize = 1024;

impl NodeCost {
    /// `None` where the pod asks for more resources than there are lanes.
    pub fn new(snapshot: &Snapshot, pod: PodId) -> Option<Self> {
        let requests = snapshot.requests(snapshot.pod(pod).shape);
        let (mut resources, mut wants) = ([0; MAX_RESOURCES], [0; MAX_RESOURCES]);
        let wanted = requests.iter().enumerate().filter(|(_, request)| **request > 0);
        for (lane, (resource, &request)) in wanted.enumerate() {
            *resources.get_mut(lane)? = resource;
            wants[lane] = request;
        }
        let n_shapes = snapshot.n_shapes();
        let worth = if n_shapes <= MAX_PRECOMPUTED_SHAPES { n_shapes } else { 0 };
        let mut arithmetic = Self { resources, wants, requests_by_shape: Vec::new() };
        arithmetic.requests_by_shape =
            (0..worth).map(|shape| arithmetic.read_requests(snapshot, ShapeId::new(shape))).collect();
        Some(arithmetic)
    }

    #[inline]
    fn requests(&self, snapshot: &Snapshot, shape: ShapeId) -> [i64; MAX_RESOURCES] {
        self.requests_by_shape.get(shape.index()).copied().unwrap_or_else(|| self.read_requests(snapshot, shape))
    }

    fn read_requests(&self, snapshot: &Snapshot, shape: ShapeId) -> [i64; MAX_RESOURCES] {
        let requests = snapshot.requests(shape);
        std::array::from_fn(|lane| if self.wants[lane] > 0 { requests[self.resources[lane]] } else { 0 })
    }

    /// What is left of each resource with everybody in place and the pod on top.
    #[inline]
    fn slack(&self, snapshot: &Snapshot, ask: &Preemptor, node: NodeId) -> [i64; MAX_RESOURCES] {
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let mut slack = [0; MAX_RESOURCES];
        for lane in 0..MAX_RESOURCES {
            if self.wants[lane] > 0 {
                slack[lane] = allocatable[self.resources[lane]] - used[self.resources[lane]] - self.wants[lane];
            }
        }
        if !snapshot.nominees(node).is_empty() {
            for nominee in ask.competing_nominees(snapshot, node) {
                let takes = self.requests(snapshot, snapshot.pod(nominee).shape);
                slack = std::array::from_fn(|lane| slack[lane] - takes[lane]);
            }
        }
        slack
    }

    /// Whether nothing is short with everybody in place.
    #[inline]
    pub fn fits(&self, snapshot: &Snapshot, ask: &Preemptor, node: NodeId) -> bool {
        self.slack(snapshot, ask, node).iter().all(|&slack| slack >= 0)
    }

    /// What landing on the node costs; `None` where it is impossible, or dearer than `bound`, which violates no budget. INVARIANT:
    /// the node is plain, open to the pod, and the pod minds no other pod.
    pub fn cost(&self, snapshot: &Snapshot, ask: &Preemptor, node: NodeId, bound: &Cost) -> Option<Cost> {
        let slots = snapshot.bound_pods(node);
        let first = if slots.first()?.priority < ask.priority {
            0
        } else {
            slots.partition_point(|slot| slot.priority >= ask.priority)
        };
        let lower = &slots[first..];
        if lower.last()?.priority > bound.top {
            return None;
        }
        let mut slack = self.slack(snapshot, ask, node);
        if first == 0 {
            let used = snapshot.used(node); // by those who all may go
            slack =
                std::array::from_fn(
                    |lane| if self.wants[lane] > 0 { slack[lane] + used[self.resources[lane]] } else { 0 },
                );
        } else {
            for slot in lower {
                let takes = self.requests(snapshot, slot.shape);
                slack = std::array::from_fn(|lane| slack[lane] + takes[lane]);
            }
        }
        if slack.iter().any(|&slack| slack < 0) {
            return None;
        }
        let mut cost = Cost::NOTHING;
        for slot in lower {
            let takes = self.requests(snapshot, slot.shape);
            let left: [i64; MAX_RESOURCES] = std::array::from_fn(|lane| slack[lane] - takes[lane]);
            if left.iter().fold(0, |sign, left| sign | left) >= 0 {
                slack = left;
            } else {
                cost.add_pods(slot.priority, 1, slot.start, 0);
                if cost.top > bound.top || cost.weight > bound.weight && cost.top == bound.top {
                    return None;
                }
            }
        }
        Some(cost)
    }
}

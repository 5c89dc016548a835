//! The cost of placing a pod on a node whose units are single pods without budgets and shields, so that only priorities and resources
//! matter: arithmetic over the node's pods in order. For other nodes `pod` runs the full search.

use crate::decision::Cost;
use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, ShapeId};
use crate::snapshot::Snapshot;

/// The number of resources that the arithmetic handles: pods, cpu, memory, and one more, such as a GPU.
const MAX_RESOURCES: usize = 4;

/// The arithmetic for one pod, prepared once for all nodes.
pub(super) struct NodeCost {
    /// The resource at each position. Unused positions repeat the number of pods and request 0.
    resources: [usize; MAX_RESOURCES],
    requested: [i64; MAX_RESOURCES],
    /// By shape: the requests of a pod at each position; empty if there are too many shapes to precompute.
    requests_by_shape: Vec<[i64; MAX_RESOURCES]>,
}

/// The maximum number of shapes for which requests are precomputed.
const MAX_PRECOMPUTED_SHAPES: usize = 1024;

impl NodeCost {
    /// `None` if the pod requests more than `MAX_RESOURCES` resources.
    pub fn new(snapshot: &Snapshot, pod: PodId) -> Option<Self> {
        let requests = snapshot.requests(snapshot.pod(pod).shape);
        let (mut resources, mut requested) = ([0; MAX_RESOURCES], [0; MAX_RESOURCES]);
        let requests_by_resource = requests.iter().enumerate().filter(|(_, request)| **request > 0);
        for (position, (resource, &request)) in requests_by_resource.enumerate() {
            *resources.get_mut(position)? = resource;
            requested[position] = request;
        }
        let n_shapes = snapshot.n_shapes();
        let n_precomputed = if n_shapes <= MAX_PRECOMPUTED_SHAPES { n_shapes } else { 0 };
        let mut node_cost = Self { resources, requested, requests_by_shape: Vec::new() };
        node_cost.requests_by_shape =
            (0..n_precomputed).map(|shape| node_cost.read_requests(snapshot, ShapeId::new(shape))).collect();
        Some(node_cost)
    }

    #[inline]
    fn requests(&self, snapshot: &Snapshot, shape: ShapeId) -> [i64; MAX_RESOURCES] {
        self.requests_by_shape.get(shape.index()).copied().unwrap_or_else(|| self.read_requests(snapshot, shape))
    }

    fn read_requests(&self, snapshot: &Snapshot, shape: ShapeId) -> [i64; MAX_RESOURCES] {
        let requests = snapshot.requests(shape);
        std::array::from_fn(|i| if self.requested[i] > 0 { requests[self.resources[i]] } else { 0 })
    }

    /// What is left of each resource with all pods in place and this pod added.
    #[inline]
    fn slack(&self, snapshot: &Snapshot, preemptor: &Preemptor, node: NodeId) -> [i64; MAX_RESOURCES] {
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let mut slack = [0; MAX_RESOURCES];
        for position in 0..MAX_RESOURCES {
            if self.requested[position] > 0 {
                slack[position] =
                    allocatable[self.resources[position]] - used[self.resources[position]] - self.requested[position];
            }
        }
        if !snapshot.nominees(node).is_empty() {
            for nominee in preemptor.competing_nominees(snapshot, node) {
                let amounts = self.requests(snapshot, snapshot.pod(nominee).shape);
                slack = std::array::from_fn(|position| slack[position] - amounts[position]);
            }
        }
        slack
    }

    /// Whether the pod fits with all pods in place.
    #[inline]
    pub fn fits(&self, snapshot: &Snapshot, preemptor: &Preemptor, node: NodeId) -> bool {
        self.slack(snapshot, preemptor, node).iter().all(|&slack| slack >= 0)
    }

    /// The cost on the node; `None` if the pod cannot be placed there, or the cost exceeds `bound`, which violates no budget. INVARIANT:
    /// the node has only single-pod units and accepts the pod, and the pod has no inter-pod constraints.
    pub fn cost(&self, snapshot: &Snapshot, preemptor: &Preemptor, node: NodeId, bound: &Cost) -> Option<Cost> {
        let bound_pods = snapshot.bound_pods(node);
        let first = if bound_pods.first()?.priority < preemptor.priority {
            0
        } else {
            bound_pods.partition_point(|bound| bound.priority >= preemptor.priority)
        };
        let lower = &bound_pods[first..];
        if lower.last()?.priority > bound.top {
            return None;
        }
        let mut slack = self.slack(snapshot, preemptor, node);
        if first == 0 {
            let used = snapshot.used(node); // all pods are candidates
            slack = std::array::from_fn(|position| {
                if self.requested[position] > 0 { slack[position] + used[self.resources[position]] } else { 0 }
            });
        } else {
            for candidate in lower {
                let amounts = self.requests(snapshot, candidate.shape);
                slack = std::array::from_fn(|position| slack[position] + amounts[position]);
            }
        }
        if slack.iter().any(|&slack| slack < 0) {
            return None;
        }
        let mut cost = Cost::NOTHING;
        for candidate in lower {
            let amounts = self.requests(snapshot, candidate.shape);
            let left: [i64; MAX_RESOURCES] = std::array::from_fn(|position| slack[position] - amounts[position]);
            if left.iter().fold(0, |sign, left| sign | left) >= 0 {
                slack = left;
            } else {
                cost.add_pods(candidate.priority, 1, candidate.start, 0);
                if cost.top > bound.top || cost.weight > bound.weight && cost.top == bound.top {
                    return None;
                }
            }
        }
        Some(cost)
    }
}

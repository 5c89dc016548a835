//! Places the members of a group or workload one after the other, each on the node where it costs least: first where no unit must be taken,
//! then where the least important units must be. A unit that an earlier member takes, or that is a victim in any case, costs
//! later members nothing. Where too few members find a node in this way, `complete` considers every assignment of members to nodes.

mod backtrack;
mod complete;
mod flow;
mod patterns;

use std::collections::BTreeSet;

use crate::candidates::Candidate;
use crate::decision::Cost;
use crate::fit::{self, Placement, Preemptor, Search};
use crate::ids::{NodeId, PodId, ShapeId, UnitId};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// Places as many members as fit on these nodes in the what-if, from which the `removed` candidates are removed. If too few fit in their own
/// order, the members differ and no inter-pod constraint applies, it tries again with the largest requests first. Units in
/// `paid` are victims in any case.
pub(crate) fn place(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    nodes: &[NodeId],
    removed: &[Candidate],
    paid: &[UnitId],
) -> Placement {
    let mark = what_if.mark();
    let placer = Placer::new(what_if.snapshot(), preemptor, nodes, removed, paid);
    let placement = place_in_order(what_if, placer, &preemptor.members);
    let order_matters = preemptor.shapes(what_if.snapshot()).len() > 1 && what_if.inter_pod().is_empty();
    if placement.len() >= preemptor.needed || !order_matters {
        return placement;
    }
    what_if.back_to(mark);
    let snapshot = what_if.snapshot();
    let mut by_size = preemptor.members.clone();
    let size = |&pod: &PodId| {
        let requests = snapshot.requests(snapshot.pod(pod).shape).iter().rev().copied().collect();
        (std::cmp::Reverse::<Vec<i64>>(requests), snapshot.pod(pod).rank)
    };
    by_size.sort_by_cached_key(size);
    let placer = Placer::new(snapshot, preemptor, nodes, removed, paid);
    let mut placement = place_in_order(what_if, placer, &by_size);
    placement.sort_unstable_by_key(|&(pod, _)| what_if.snapshot().pod(pod).rank);
    placement
}

/// Why not enough members are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPlaced {
    /// Too few members fit.
    TooFew,
    /// The step budget of the complete search is spent, so whether enough members fit is not known.
    StepLimit,
}

/// docs/rules/kubernetes-groups.md#g24: places as many members as [`place`] does, if these are enough; else enough of them as the complete
/// search places them. The placements are left in the what-if.
pub(crate) fn place_enough(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    nodes: &[NodeId],
    removed: &[Candidate],
    paid: &[UnitId],
) -> Result<Placement, NotPlaced> {
    let mark = what_if.mark();
    let placement = place(what_if, preemptor, nodes, removed, paid);
    if placement.len() >= preemptor.needed {
        return Ok(placement);
    }
    what_if.back_to(mark);
    let is_possible = preemptor.search == Search::Complete && preemptor.members.len() >= preemptor.needed;
    let Some(gang) = complete::Gang::of(what_if, preemptor).filter(|_| is_possible) else {
        return Err(NotPlaced::TooFew);
    };
    let placer = Placer::new(what_if.snapshot(), preemptor, nodes, removed, paid);
    complete::search(what_if, preemptor, &gang, &placer)
}

fn place_in_order(what_if: &mut WhatIf<'_>, mut placer: Placer<'_>, members: &[PodId]) -> Placement {
    let mut placement = Placement::new();
    for &pod in members {
        if let Some(node) = placer.node_for(what_if, pod) {
            what_if.place(pod, node);
            placer.record_placed(what_if.snapshot(), pod, node);
            placement.push((pod, node));
        }
    }
    placement
}

/// The cost of the next member on each node, for each shape among the members.
struct Placer<'a> {
    preemptor: &'a Preemptor,
    /// By unit: its state.
    states: Vec<UnitState>,
    /// Whether any candidate violates a budget.
    violations: bool,
    rankings: Vec<NodeRanking>,
}

/// The state of a unit while members are placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitState {
    /// The unit stays.
    Stays,
    /// The unit is removed and may be reprieved; `violations` is the number of its pods that violate a budget.
    Removed { violations: usize },
    /// The unit is a victim in any case.
    Taken,
}

/// The nodes that accept one shape, the cheapest first.
struct NodeRanking {
    shape: ShapeId,
    /// By node: its cost; `None` if a pod of the shape does not fit.
    costs: Vec<Option<Cost>>,
    /// By node: whether it is one of the nodes to use and accepts the shape.
    open: Vec<bool>,
    order: BTreeSet<(Cost, NodeId)>,
}

impl<'a> Placer<'a> {
    fn new(
        snapshot: &Snapshot,
        preemptor: &'a Preemptor,
        nodes: &[NodeId],
        removed: &[Candidate],
        paid: &[UnitId],
    ) -> Self {
        let mut states = vec![UnitState::Stays; snapshot.n_units()];
        for &Candidate { unit, violations } in removed {
            states[unit.index()] = UnitState::Removed { violations };
        }
        for unit in paid {
            states[unit.index()] = UnitState::Taken;
        }
        let mut placer = Self {
            preemptor,
            states,
            violations: removed.iter().any(|candidate| candidate.violations > 0),
            rankings: Vec::new(),
        };
        for (shape, pod) in fit::by_shape(snapshot, &preemptor.members) {
            let mut open = vec![false; snapshot.node_ids().len()];
            for &node in nodes {
                open[node.index()] = preemptor.node_failure(snapshot, pod, node).is_none();
            }
            placer.rankings.push(NodeRanking { shape, costs: vec![None; open.len()], open, order: BTreeSet::new() });
        }
        for &node in nodes {
            placer.refresh(snapshot, node);
        }
        placer
    }

    /// The nominated node if the pod fits there, else the cheapest node where it fits.
    fn node_for(&self, what_if: &mut WhatIf<'_>, pod: PodId) -> Option<NodeId> {
        let member = what_if.snapshot().pod(pod);
        let (ranking, nominated) = (self.ranking(member.shape), member.nominated);
        if let Some(node) = nominated
            && ranking.costs[node.index()].is_some()
            && self.preemptor.filter_failure(what_if, pod, node).is_none()
        {
            return Some(node);
        }
        let resources_alone = what_if.inter_pod().is_empty();
        let fits = |&&(_, node): &&(Cost, NodeId)| {
            resources_alone || self.preemptor.filter_failure(what_if, pod, node).is_none()
        };
        ranking.order.iter().find(fits).map(|&(_, node)| node)
    }

    /// The nodes on which a pod of the shape fits by itself, as far as the node and its resources decide, the cheapest first.
    fn nodes_for(&self, shape: ShapeId) -> Vec<NodeId> {
        self.ranking(shape).order.iter().map(|&(_, node)| node).collect()
    }

    fn ranking(&self, shape: ShapeId) -> &NodeRanking {
        self.rankings.iter().find(|ranking| ranking.shape == shape).expect("every member's shape has a ranking")
    }

    /// Records a placed pod: the units that it takes are victims for all members, and the costs of the nodes concerned are computed again.
    fn record_placed(&mut self, snapshot: &Snapshot, pod: PodId, node: NodeId) {
        let shape = snapshot.pod(pod).shape;
        let victims = self.victims(snapshot, shape, node, true);
        let mut touched = vec![node];
        for Candidate { unit, .. } in victims.unwrap_or_default() {
            self.states[unit.index()] = UnitState::Taken;
            touched.extend(snapshot.unit(unit).pods.iter().filter_map(|&pod| snapshot.bound_node(pod)));
        }
        touched.sort_unstable();
        touched.dedup();
        for node in touched {
            self.refresh(snapshot, node);
        }
    }

    fn refresh(&mut self, snapshot: &Snapshot, node: NodeId) {
        for index in 0..self.rankings.len() {
            let NodeRanking { shape, open, .. } = &self.rankings[index];
            let cost = if open[node.index()] { self.cost_on(snapshot, *shape, node) } else { None };
            let NodeRanking { costs, order, .. } = &mut self.rankings[index];
            let before = std::mem::replace(&mut costs[node.index()], cost);
            if let Some(before) = before {
                order.remove(&(before, node));
            }
            order.extend(cost.map(|cost| (cost, node)));
        }
    }

    fn cost_on(&self, snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> Option<Cost> {
        let mut cost = Cost::NOTHING;
        for Candidate { unit, violations } in self.victims(snapshot, shape, node, false)? {
            cost.add(snapshot, unit, violations);
        }
        Some(cost)
    }

    /// The units that a pod of the shape takes on the node, by resources alone; `None` if it does not fit even without all candidates.
    /// `placed` means that the pod is already on the node.
    fn victims(&self, snapshot: &Snapshot, shape: ShapeId, node: NodeId, placed: bool) -> Option<Vec<Candidate>> {
        let requested: Vec<(usize, i64)> =
            snapshot.requests(shape).iter().copied().enumerate().filter(|(_, request)| *request > 0).collect();
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let mut slack: Vec<i64> = requested
            .iter()
            .map(|&(resource, request)| {
                let request = if placed { 0 } else { request };
                allocatable[resource] - used[resource] - request
            })
            .collect();
        for nominee in self.preemptor.competing_nominees(snapshot, node) {
            let requests = snapshot.requests(snapshot.pod(nominee).shape);
            for (slack, &(resource, _)) in slack.iter_mut().zip(&requested) {
                *slack -= requests[resource];
            }
        }
        if slack.iter().any(|&slack| slack < 0) {
            return None;
        }
        let mut victims = Vec::new();
        let mut pass = |violating: bool| {
            for pods in snapshot.bound_pods(node).chunk_by(|a, b| a.unit == b.unit) {
                let unit = pods[0].unit;
                let UnitState::Removed { violations } = self.states[unit.index()] else { continue };
                if (violations > 0) != violating {
                    continue;
                }
                let request =
                    |resource: usize| pods.iter().map(|bound| snapshot.requests(bound.shape)[resource]).sum::<i64>();
                if slack.iter().zip(&requested).all(|(&slack, &(resource, _))| request(resource) <= slack) {
                    for (slack, &(resource, _)) in slack.iter_mut().zip(&requested) {
                        *slack -= request(resource);
                    }
                } else {
                    victims.push(Candidate { unit, violations });
                }
            }
        };
        if self.violations {
            pass(true);
        }
        pass(false);
        Some(victims)
    }
}

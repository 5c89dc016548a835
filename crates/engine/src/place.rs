//! Where do the members of a group go? One after the other, each on the node of its domain where it costs least: where it takes
//! nobody, then where it takes the least important. A unit that an earlier member takes, or that is paid for otherwise, costs the
//! later ones nothing.

use std::collections::BTreeSet;

use crate::candidates::Candidate;
use crate::decision::Cost;
use crate::fit::{self, Placement, Preemptor};
use crate::ids::{NodeId, PodId, ShapeId, UnitId};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// Places as many members as fit on these nodes, in the what-if, from which the candidates are gone. Where members differ, mind no
/// other pod, and too few fit in their own order, the most demanding go first.
pub(crate) fn place(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    nodes: &[NodeId],
    gone: &[Candidate],
    paid: &[UnitId],
) -> Placement {
    let mark = what_if.mark();
    let placer = Placer::new(what_if.snapshot(), ask, nodes, gone, paid);
    let placement = place_in_order(what_if, placer, &ask.members);
    let order_matters = ask.shapes(what_if.snapshot()).len() > 1 && what_if.inter_pod().is_empty();
    if placement.len() >= ask.needed || !order_matters {
        return placement;
    }
    what_if.back_to(mark);
    let snapshot = what_if.snapshot();
    let mut demanding = ask.members.clone();
    let demand = |&pod: &PodId| {
        let requests = snapshot.requests(snapshot.pod(pod).shape).iter().rev().copied().collect();
        (std::cmp::Reverse::<Vec<i64>>(requests), snapshot.pod(pod).rank)
    };
    demanding.sort_by_cached_key(demand);
    let placer = Placer::new(snapshot, ask, nodes, gone, paid);
    let mut placement = place_in_order(what_if, placer, &demanding);
    placement.sort_unstable_by_key(|&(pod, _)| what_if.snapshot().pod(pod).rank);
    placement
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

/// What each node would cost next, for each shape among the members.
struct Placer<'a> {
    ask: &'a Preemptor,
    /// By unit: what taking it means.
    states: Vec<UnitState>,
    /// Whether any candidate would be taken against a budget.
    violations: bool,
    rankings: Vec<NodeRanking>,
}

/// How a unit stands while members are being placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitState {
    /// It stays where it is.
    Stays,
    /// It is gone, and may come back; so many of its pods would be taken against a budget.
    Removed { violations: usize },
    /// It is taken in any case.
    Taken,
}

/// The nodes that are open to one shape, the cheapest first.
struct NodeRanking {
    shape: ShapeId,
    /// By node: its cost, if a pod of the shape fits there.
    costs: Vec<Option<Cost>>,
    open: Vec<bool>,
    order: BTreeSet<(Cost, NodeId)>,
}

impl<'a> Placer<'a> {
    fn new(snapshot: &Snapshot, ask: &'a Preemptor, nodes: &[NodeId], gone: &[Candidate], paid: &[UnitId]) -> Self {
        let mut standing = vec![UnitState::Stays; snapshot.n_units()];
        for &Candidate { unit, violations } in gone {
            standing[unit.index()] = UnitState::Removed { violations };
        }
        for unit in paid {
            standing[unit.index()] = UnitState::Taken;
        }
        let mut placer = Self {
            ask,
            states: standing,
            violations: gone.iter().any(|candidate| candidate.violations > 0),
            rankings: Vec::new(),
        };
        for (shape, pod) in fit::by_shape(snapshot, &ask.members) {
            let mut open = vec![false; snapshot.node_ids().len()];
            for &node in nodes {
                open[node.index()] = ask.node_failure(snapshot, pod, node).is_none();
            }
            placer.rankings.push(NodeRanking { shape, costs: vec![None; open.len()], open, order: BTreeSet::new() });
        }
        for &node in nodes {
            placer.refresh(snapshot, node);
        }
        placer
    }

    /// The node where the pod goes: the one it is nominated to, if it fits there, else the cheapest where it fits.
    fn node_for(&self, what_if: &mut WhatIf<'_>, pod: PodId) -> Option<NodeId> {
        let member = what_if.snapshot().pod(pod);
        let (menu, nominated) = (self.ranking(member.shape), member.nominated);
        if let Some(node) = nominated
            && menu.costs[node.index()].is_some()
            && fit::filter_failure(what_if, self.ask, pod, node).is_none()
        {
            return Some(node);
        }
        let resources_alone = what_if.inter_pod().is_empty();
        let fits = |&&(_, node): &&(Cost, NodeId)| {
            resources_alone || fit::filter_failure(what_if, self.ask, pod, node).is_none()
        };
        menu.order.iter().find(fits).map(|&(_, node)| node)
    }

    fn ranking(&self, shape: ShapeId) -> &NodeRanking {
        self.rankings.iter().find(|menu| menu.shape == shape).expect("every member's shape has a menu")
    }

    /// Whom the pod takes on its node is taken for all; the nodes that this touches are reckoned anew.
    fn record_placed(&mut self, snapshot: &Snapshot, pod: PodId, node: NodeId) {
        let shape = snapshot.pod(pod).shape;
        let taken = self.victims_on(snapshot, shape, node, true);
        let mut touched = vec![node];
        for (unit, _) in taken.unwrap_or_default() {
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
        for at in 0..self.rankings.len() {
            let NodeRanking { shape, open, .. } = &self.rankings[at];
            let cost = if open[node.index()] { self.cost_on(snapshot, *shape, node) } else { None };
            let NodeRanking { costs, order, .. } = &mut self.rankings[at];
            let before = std::mem::replace(&mut costs[node.index()], cost);
            if let Some(before) = before {
                order.remove(&(before, node));
            }
            order.extend(cost.map(|cost| (cost, node)));
        }
    }

    fn cost_on(&self, snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> Option<Cost> {
        let mut cost = Cost::NOTHING;
        for (unit, violations) in self.victims_on(snapshot, shape, node, false)? {
            cost.add(snapshot, unit, violations);
        }
        Some(cost)
    }

    /// The units that a pod of the shape takes on the node, as far as resources tell; `None` where it does not fit even with all of
    /// them gone. `placed` says that the pod stands there already.
    fn victims_on(
        &self,
        snapshot: &Snapshot,
        shape: ShapeId,
        node: NodeId,
        placed: bool,
    ) -> Option<Vec<(UnitId, usize)>> {
        let wants: Vec<(usize, i64)> =
            snapshot.requests(shape).iter().copied().enumerate().filter(|want| want.1 > 0).collect();
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let mut slack: Vec<i64> = wants
            .iter()
            .map(|&(resource, request)| {
                let request = if placed { 0 } else { request };
                allocatable[resource] - used[resource] - request
            })
            .collect();
        for nominee in self.ask.competing_nominees(snapshot, node) {
            let requests = snapshot.requests(snapshot.pod(nominee).shape);
            for (slack, &(resource, _)) in slack.iter_mut().zip(&wants) {
                *slack -= requests[resource];
            }
        }
        if slack.iter().any(|&slack| slack < 0) {
            return None;
        }
        let mut taken = Vec::new();
        let mut pass = |violating: bool| {
            for slots in snapshot.bound_pods(node).chunk_by(|one, other| one.unit == other.unit) {
                let unit = slots[0].unit;
                let UnitState::Removed { violations } = self.states[unit.index()] else {
                    continue;
                };
                if (violations > 0) != violating {
                    continue;
                }
                let request =
                    |resource: usize| slots.iter().map(|slot| snapshot.requests(slot.shape)[resource]).sum::<i64>();
                if slack.iter().zip(&wants).all(|(&slack, &(resource, _))| request(resource) <= slack) {
                    for (slack, &(resource, _)) in slack.iter_mut().zip(&wants) {
                        *slack -= request(resource);
                    }
                } else {
                    taken.push((unit, violations));
                }
            }
        };
        if self.violations {
            pass(true);
        }
        pass(false);
        Some(taken)
    }
}

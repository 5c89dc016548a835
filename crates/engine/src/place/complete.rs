//! docs/rules/kubernetes-groups.md#g24: whether any assignment of the members to nodes fits.
//!
//! Members of one shape are interchangeable, so the search assigns numbers of pods of each class to nodes:
//!
//! 1. `flow` assigns as many as possible if constraints between members on different nodes, and the exact sum of requests on a node, are
//!    ignored. If that is not enough, no assignment is; if the result passes all filters, it is the answer.
//! 2. Otherwise `patterns` goes through the nodes, if the members constrain each other only on the same node, and `backtrack` through all
//!    assignments, if not. Both stop when the step budget is spent.

use std::collections::BTreeMap;

use super::flow::{self, Site};
use super::{NotPlaced, Placer, backtrack, patterns};
use crate::filters::inter_pod::Interplay;
use crate::fit::{Placement, Preemptor};
use crate::ids::{NodeId, PodId, ShapeId, TopologyId};
use crate::what_if::WhatIf;

/// The step budget of one search. A step checks one pod on one node, or compares two partial assignments.
const MAX_STEPS: usize = 100_000;

/// The members of one shape.
pub(super) struct Class {
    shape: ShapeId,
    /// In the order of their names.
    pub pods: Vec<PodId>,
}

/// The members by shape.
pub(super) struct Gang {
    pub classes: Vec<Class>,
    pub interplay: Interplay,
}

/// A class, by position, and the node of one of its pods.
pub(super) type Seat = (usize, NodeId);

impl Gang {
    /// Reads the members; `None` if the greedy placement places as many of them as any other: members of one shape have no room to
    /// exchange, unless they need each other's company or exclude each other in several ways.
    pub fn of(what_if: &WhatIf<'_>, preemptor: &Preemptor) -> Option<Self> {
        let snapshot = what_if.snapshot();
        let mut classes: Vec<Class> = Vec::new();
        for &pod in &preemptor.members {
            let shape = snapshot.pod(pod).shape;
            match classes.iter_mut().find(|class| class.shape == shape) {
                Some(class) => class.pods.push(pod),
                None => classes.push(Class { shape, pods: vec![pod] }),
            }
        }
        let shapes: Vec<(ShapeId, bool)> = classes.iter().map(|class| (class.shape, class.pods.len() > 1)).collect();
        let interplay = what_if.inter_pod().interplay(snapshot, &shapes);
        let is_simple = interplay.region.is_empty() && !interplay.company;
        let is_greedy_best = classes.len() <= 1 && is_simple && interplay.spread + interplay.exclusions.len() <= 1;
        (!is_greedy_best).then_some(Self { classes, interplay })
    }

    /// The topology of which no domain takes two members, if there is one; of several, that with the fewest domains.
    fn exclusive(&self, what_if: &WhatIf<'_>) -> Option<TopologyId> {
        let n_classes = self.classes.len();
        let n_pairs =
            n_classes * (n_classes - 1) / 2 + self.classes.iter().filter(|class| class.pods.len() > 1).count();
        let all = self.interplay.exclusions.iter().filter(|(_, pairs)| pairs.len() == n_pairs);
        all.map(|(&topology, _)| topology).min_by_key(|&topology| what_if.snapshot().topology(topology).n_domains)
    }
}

/// Places enough members on the nodes of the placer, if any assignment of members to nodes does.
pub(super) fn search(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    gang: &Gang,
    placer: &Placer<'_>,
) -> Result<Placement, NotPlaced> {
    let nodes: Vec<Vec<NodeId>> = gang.classes.iter().map(|class| placer.nodes_for(class.shape)).collect();
    let regions = regions(what_if, &gang.interplay.region, &nodes);
    let mut solver = Solver { what_if, preemptor, gang, steps_left: MAX_STEPS };
    let mut result = Err(NotPlaced::TooFew);
    for nodes in regions {
        match solver.solve(&nodes) {
            Ok(Some(placement)) => return Ok(placement),
            Ok(None) => {}
            Err(limit) => result = Err(limit),
        }
    }
    result
}

/// The nodes of each class in each set of nodes that have the same domains of these topologies.
fn regions(what_if: &WhatIf<'_>, topologies: &[TopologyId], nodes: &[Vec<NodeId>]) -> Vec<Vec<Vec<NodeId>>> {
    if topologies.is_empty() {
        return vec![nodes.to_vec()];
    }
    let domains_of = |node: NodeId| -> Option<Vec<u32>> {
        topologies.iter().map(|&topology| what_if.snapshot().topology(topology).domain[node.index()]).collect()
    };
    let mut positions: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let mut regions: Vec<Vec<Vec<NodeId>>> = Vec::new();
    for (class, nodes_of_class) in nodes.iter().enumerate() {
        for &node in nodes_of_class {
            let Some(domains) = domains_of(node) else { continue };
            let position = *positions.entry(domains).or_insert_with(|| {
                regions.push(vec![Vec::new(); nodes.len()]);
                regions.len() - 1
            });
            regions[position][class].push(node);
        }
    }
    regions
}

/// A search on a what-if without members. Every method restores it, except for [`Self::solve`], which leaves the placement in it.
pub(super) struct Solver<'w, 's, 'a> {
    pub what_if: &'w mut WhatIf<'s>,
    pub preemptor: &'a Preemptor,
    pub gang: &'a Gang,
    steps_left: usize,
}

impl Solver<'_, '_, '_> {
    pub fn spend(&mut self, steps: usize) -> Result<(), NotPlaced> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(NotPlaced::StepLimit)?;
        Ok(())
    }

    /// Whether one more pod of the class fits on the node, if `used` of its pods are placed.
    pub fn fits(&mut self, class: usize, used: usize, node: NodeId) -> bool {
        let Some(&pod) = self.gang.classes[class].pods.get(used) else { return false };
        self.preemptor.filter_failure(self.what_if, pod, node).is_none()
    }

    /// `nodes` are those of each class, the cheapest first.
    fn solve(&mut self, nodes: &[Vec<NodeId>]) -> Result<Option<Placement>, NotPlaced> {
        let (sites, preferred) = self.sites(nodes);
        let pods: Vec<usize> = self.gang.classes.iter().map(|class| class.pods.len()).collect();
        let assigned = flow::assign(&sites.all, &pods, &preferred);
        if assigned.iter().flatten().sum::<usize>() < self.preemptor.needed {
            return Ok(None);
        }
        let mut seats = self.seats(&assigned, &sites.nodes);
        if seats.len() < self.preemptor.needed {
            let found = if self.gang.interplay.is_local() {
                patterns::search(self, nodes)?
            } else {
                backtrack::search(self, nodes)?
            };
            let Some(found) = found else { return Ok(None) };
            seats = found;
        }
        Ok(Some(self.placement(&seats, nodes)))
    }

    /// The sites of the flow, and those of each class in the order of `nodes`.
    fn sites(&mut self, nodes: &[Vec<NodeId>]) -> (Sites, Vec<Vec<usize>>) {
        let exclusive = self.gang.exclusive(self.what_if);
        let n_classes = nodes.len();
        let mut positions: BTreeMap<(Option<u32>, Option<NodeId>), usize> = BTreeMap::new();
        let mut sites = Sites::default();
        let mut preferred = vec![Vec::new(); n_classes];
        let mut of_node: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for (class, nodes) in nodes.iter().enumerate() {
            for &node in nodes {
                of_node.entry(node).or_insert_with(|| vec![0; n_classes])[class] = self.room_for(class, node);
            }
        }
        let mut site_of: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (&node, room_for) in &of_node {
            let domain = exclusive.and_then(|topology| self.what_if.snapshot().topology(topology).domain[node.index()]);
            let key = (domain, domain.is_none().then_some(node));
            let position = *positions.entry(key).or_insert_with(|| {
                sites.all.push(Site { room: 0, room_for: vec![0; n_classes] });
                sites.nodes.push(Vec::new());
                sites.all.len() - 1
            });
            let room = self.room(node, room_for);
            let site = &mut sites.all[position];
            site.room = if domain.is_some() { 1 } else { room };
            for (all, of_node) in site.room_for.iter_mut().zip(room_for) {
                *all += of_node;
            }
            site_of.insert(node, position);
        }
        for (class, nodes) in nodes.iter().enumerate() {
            let mut is_listed = vec![false; sites.all.len()];
            for node in nodes {
                let position = site_of[node];
                if !std::mem::replace(&mut is_listed[position], true) {
                    preferred[class].push(position);
                }
            }
        }
        // In the order of the classes' preferences, so that a pod is placed on the cheapest node of its site.
        for (class, nodes) in nodes.iter().enumerate() {
            for &node in nodes {
                sites.nodes[site_of[&node]].push((class, node));
            }
        }
        (sites, preferred)
    }

    /// The number of pods of the class that fit on the node at most.
    fn room_for(&mut self, class: usize, node: NodeId) -> usize {
        let pods = self.gang.classes[class].pods.clone();
        let free = self.free(node);
        let snapshot = self.what_if.snapshot();
        let requests = snapshot.requests(snapshot.pod(pods[0]).shape);
        let by_resource = requests.iter().zip(&free).filter(|(request, _)| **request > 0);
        let by_resource = by_resource.map(|(request, free)| usize::try_from(free / request).unwrap_or(0)).min();
        let most = by_resource.unwrap_or(usize::MAX).min(pods.len());
        if self.what_if.inter_pod().is_empty() || !self.gang.interplay.is_unordered() {
            return most;
        }
        let mark = self.what_if.mark();
        let mut placed = 0;
        while placed < most && self.fits(class, placed, node) {
            self.what_if.place(pods[placed], node);
            placed += 1;
        }
        self.what_if.back_to(mark);
        placed
    }

    /// The number of members that fit on the node at most, whatever their classes: the smallest requests of each resource.
    fn room(&mut self, node: NodeId, room_for: &[usize]) -> usize {
        let free = self.free(node);
        let snapshot = self.what_if.snapshot();
        let accepted: Vec<usize> = (0..room_for.len()).filter(|&class| room_for[class] > 0).collect();
        let requests = |class: usize| snapshot.requests(self.gang.classes[class].shape);
        let mut room: usize = accepted.iter().map(|&class| room_for[class]).sum();
        for (resource, &free) in free.iter().enumerate() {
            let mut sizes: Vec<(i64, usize)> =
                accepted.iter().map(|&class| (requests(class)[resource], room_for[class])).collect();
            sizes.sort_unstable();
            let (mut left, mut count) = (free, 0);
            for (size, pods) in sizes {
                let most = if size > 0 { usize::try_from(left / size).unwrap_or(0) } else { pods };
                count += most.min(pods);
                left -= size * i64::try_from(most.min(pods)).unwrap_or(0);
            }
            room = room.min(count);
        }
        let may_exclude = !self.what_if.inter_pod().is_empty() && self.gang.interplay.is_unordered();
        if may_exclude && room > 1 && !self.any_pair_fits(node, &accepted) { 1 } else { room }
    }

    fn any_pair_fits(&mut self, node: NodeId, accepted: &[usize]) -> bool {
        accepted.iter().enumerate().any(|(index, &class)| {
            let mark = self.what_if.mark();
            self.what_if.place(self.gang.classes[class].pods[0], node);
            let fits = accepted[index..].iter().any(|&other| self.fits(other, usize::from(other == class), node));
            self.what_if.back_to(mark);
            fits
        })
    }

    /// By resource: what is free on the node for members.
    pub fn free(&self, node: NodeId) -> Vec<i64> {
        let snapshot = self.what_if.snapshot();
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let mut free: Vec<i64> = allocatable.iter().zip(used).map(|(all, used)| all - used).collect();
        for nominee in self.preemptor.competing_nominees(snapshot, node) {
            let requests = snapshot.requests(snapshot.pod(nominee).shape);
            for (free, request) in free.iter_mut().zip(requests) {
                *free -= request;
            }
        }
        free
    }

    /// The seats of a flow that pass all filters, in this order.
    fn seats(&mut self, assigned: &flow::Assignment, nodes: &[Vec<Seat>]) -> Vec<Seat> {
        let mark = self.what_if.mark();
        let mut seats = Vec::new();
        for (class, by_site) in assigned.iter().enumerate() {
            let mut used = 0;
            for (site, &count) in by_site.iter().enumerate() {
                for _ in 0..count {
                    let of_class = nodes[site].iter().filter(|(other, _)| *other == class).map(|&(_, node)| node);
                    let mut of_class = of_class.collect::<Vec<_>>().into_iter();
                    let Some(node) = of_class.find(|&node| self.fits(class, used, node)) else { continue };
                    self.what_if.place(self.gang.classes[class].pods[used], node);
                    seats.push((class, node));
                    used += 1;
                }
            }
        }
        self.what_if.back_to(mark);
        seats
    }

    /// Gives the seats to members, and then each further member the first node where it fits. A member takes a seat on its nominated node if
    /// there is one. The order is that of the names if all filters pass in that order, else that of the seats.
    fn placement(&mut self, seats: &[Seat], nodes: &[Vec<NodeId>]) -> Placement {
        let snapshot = self.what_if.snapshot();
        let mut by_seat: Vec<Option<PodId>> = vec![None; seats.len()];
        let mut waiting: Vec<PodId> = Vec::new();
        for (index, class) in self.gang.classes.iter().enumerate() {
            let mut others = Vec::new();
            for &pod in &class.pods {
                let nominated = snapshot.pod(pod).nominated;
                let is_its =
                    |&at: &usize| by_seat[at].is_none() && seats[at].0 == index && Some(seats[at].1) == nominated;
                match (0..seats.len()).find(is_its) {
                    Some(at) => by_seat[at] = Some(pod),
                    None => others.push(pod),
                }
            }
            let mut others = others.into_iter();
            for at in (0..seats.len()).filter(|&at| seats[at].0 == index) {
                if by_seat[at].is_none() {
                    by_seat[at] = others.next();
                }
            }
            waiting.extend(others);
        }
        let mut placement: Placement =
            by_seat.iter().zip(seats).filter_map(|(pod, &(_, node))| pod.map(|pod| (pod, node))).collect();
        let mark = self.what_if.mark();
        for &(pod, node) in &placement {
            self.what_if.place(pod, node);
        }
        let rank = |solver: &Self, pod: PodId| solver.what_if.snapshot().pod(pod).rank;
        waiting.sort_unstable_by_key(|&pod| rank(self, pod));
        for pod in waiting {
            let Some(class) = self.gang.classes.iter().position(|class| class.pods.contains(&pod)) else { continue };
            let mut nodes = nodes[class].iter().copied();
            let node = nodes.find(|&node| self.preemptor.filter_failure(self.what_if, pod, node).is_none());
            if let Some(node) = node {
                self.what_if.place(pod, node);
                placement.push((pod, node));
            }
        }
        self.what_if.back_to(mark);
        let mut by_name = placement.clone();
        by_name.sort_unstable_by_key(|&(pod, _)| rank(self, pod));
        if self.gang.interplay.is_unordered() || self.fits_in_order(&by_name) {
            placement = by_name;
        }
        for &(pod, node) in &placement {
            self.what_if.place(pod, node);
        }
        placement
    }

    fn fits_in_order(&mut self, placement: &Placement) -> bool {
        let mark = self.what_if.mark();
        let fits = placement.iter().all(|&(pod, node)| {
            let fits = self.preemptor.filter_failure(self.what_if, pod, node).is_none();
            self.what_if.place(pod, node);
            fits
        });
        self.what_if.back_to(mark);
        fits
    }
}

/// The sites of a flow.
#[derive(Default)]
struct Sites {
    all: Vec<Site>,
    /// By site: its nodes for each class, the cheapest first.
    nodes: Vec<Vec<Seat>>,
}

//! The constraints of a pod about other pods: host ports, topology spread, affinity and anti-affinity, its own and those of other pods.
//! Counts by domain are updated as pods move, so that a check reads a few numbers. A shape without such constraints costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::filters::{FilterFailure, node};
use crate::ids::{NodeId, PodId, ShapeId, TopologyId};
use crate::shape::{Shape, Spread, Term};
use crate::snapshot::{Pod, Snapshot};

/// The counts for every shape of the preemptor that has inter-pod constraints.
#[derive(Default)]
pub(crate) struct InterPodCounts {
    shapes: Vec<ShapeCounts>,
}

/// How members of a gang constrain each other beyond the node of each.
#[derive(Debug, Default)]
pub(crate) struct Interplay {
    /// The number of topology spread constraints that count a member.
    pub spread: usize,
    /// Whether a member needs the company of another one, so that it may fit only after that one is placed.
    pub company: bool,
    /// The topologies that confine all members to one domain each, because every member needs the company of the others.
    pub region: Vec<TopologyId>,
    /// By topology with several nodes in a domain: the pairs of shapes, by position, that cannot be in one domain.
    pub exclusions: BTreeMap<TopologyId, BTreeSet<(usize, usize)>>,
}

impl Interplay {
    /// Whether a placed member never makes room for another one, so that the order of placing does not matter.
    pub fn is_unordered(&self) -> bool {
        self.spread == 0 && !self.company
    }

    /// Whether members constrain each other only on the same node, once they are confined to one region.
    pub fn is_local(&self) -> bool {
        self.is_unordered() && self.exclusions.is_empty()
    }
}

/// The counts for the constraints of one shape.
struct ShapeCounts {
    shape: ShapeId,
    ports: Option<Counter>,
    spread: Vec<SpreadCounter>,
    affinity: Option<AffinityCounter>,
    anti_affinity: Vec<Counter>,
    others_anti_affinity: Vec<Counter>,
}

/// A count by domain.
struct Counter {
    counted_by: CountedBy,
    /// By shape: how much a pod of that shape adds.
    weights: Vec<i64>,
    counts: Vec<i64>,
}

#[derive(Clone, Copy)]
enum CountedBy {
    Node,
    Topology(TopologyId),
}

struct AffinityCounter {
    terms: Vec<Counter>,
    /// Whether the shape matches its own terms, so that the first pod of a series may be placed.
    matches_itself: bool,
}

struct SpreadCounter {
    constraint: Spread,
    counter: Counter,
    /// By node: whether its pods count for the constraint.
    counted: Vec<bool>,
    n_domains: usize,
    /// By count: the number of domains with that count.
    histogram: Vec<usize>,
    minimum: usize,
    matches_itself: bool,
}

impl InterPodCounts {
    pub fn new(snapshot: &Snapshot, shapes: &[ShapeId]) -> Self {
        let mut counts: Vec<ShapeCounts> = Vec::new();
        for &shape in shapes {
            if counts.iter().all(|counts| counts.shape != shape) {
                counts.extend(ShapeCounts::new(snapshot, shape));
            }
        }
        let mut counts = Self { shapes: counts };
        if !counts.is_empty() {
            for pod in (0..snapshot.n_pods()).map(PodId::new) {
                counts.moved(snapshot, pod, None, snapshot.pod(pod).node);
            }
        }
        counts
    }

    /// Whether no shape of the preemptor has inter-pod constraints.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Whether the constraints concern only pods on the same node: host ports at most.
    pub fn is_local(&self) -> bool {
        self.shapes.iter().all(ShapeCounts::is_local)
    }

    /// Updates the counts after a pod moved.
    pub fn moved(&mut self, snapshot: &Snapshot, pod: PodId, from: Option<NodeId>, to: Option<NodeId>) {
        for counts in &mut self.shapes {
            let pod = snapshot.pod(pod);
            for (node, sign) in from.map(|node| (node, -1)).into_iter().chain(to.map(|node| (node, 1))) {
                counts.count(snapshot, pod, node, sign);
            }
        }
    }

    pub fn port_conflict(&self, snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> Option<FilterFailure> {
        let ports = self.of(shape)?.ports.as_ref()?;
        (ports.in_domain_of(snapshot, node)? > 0).then_some(FilterFailure::Ports)
    }

    /// Checks spread, then affinity, then anti-affinity, as kube-scheduler does.
    pub fn filter_failure(&self, snapshot: &Snapshot, shape: ShapeId, node: NodeId) -> Option<FilterFailure> {
        let counts = self.of(shape)?;
        counts
            .spread
            .iter()
            .find_map(|spread| spread.filter_failure(snapshot, node))
            .or_else(|| counts.affinity.as_ref()?.filter_failure(snapshot, node))
            .or_else(|| first_hit(snapshot, node, &counts.anti_affinity).map(FilterFailure::AntiAffinity))
            .or_else(|| first_hit(snapshot, node, &counts.others_anti_affinity).map(FilterFailure::OthersAntiAffinity))
    }

    /// Whether a pod of this shape could violate a constraint of the preemptor. A pod that only matches an affinity term which others match
    /// too cannot.
    pub fn may_disturb(&self, shape: ShapeId) -> bool {
        let weighs = |counter: &Counter| counter.weights[shape.index()] != 0;
        self.shapes.iter().any(|counts| {
            counts.ports.iter().any(weighs)
                || counts.spread.iter().any(|spread| weighs(&spread.counter))
                || counts.anti_affinity.iter().any(weighs)
                || counts.others_anti_affinity.iter().any(weighs)
                || counts.affinity.iter().any(|affinity| affinity.matches_itself && affinity.terms.iter().any(weighs))
        })
    }

    /// How pods of these shapes constrain each other. `several` says of a shape whether there are several such pods.
    pub fn interplay(&self, snapshot: &Snapshot, shapes: &[(ShapeId, bool)]) -> Interplay {
        let mut interplay = Interplay::default();
        let counts: Vec<Option<&ShapeCounts>> = shapes.iter().map(|&(shape, _)| self.of(shape)).collect();
        let others = |index: usize| {
            let other = move |&(at, &(_, several)): &(usize, &(ShapeId, bool))| at != index || several;
            shapes.iter().enumerate().filter(other).map(|(at, &(shape, _))| (at, shape.index()))
        };
        for (index, own) in counts.iter().enumerate() {
            let Some(own) = own else { continue };
            let counts_a_member = |counter: &Counter| others(index).any(|(_, other)| counter.weights[other] != 0);
            interplay.spread += own.spread.iter().filter(|spread| counts_a_member(&spread.counter)).count();
            interplay.company |= own.affinity.iter().flat_map(|affinity| &affinity.terms).any(counts_a_member);
            for counter in own.anti_affinity.iter().chain(&own.others_anti_affinity) {
                if let CountedBy::Topology(topology) = counter.counted_by
                    && !is_by_node(snapshot, topology)
                {
                    let excluded = others(index).filter(|&(_, other)| counter.weights[other] != 0);
                    for (other, _) in excluded {
                        let pair = (index.min(other), index.max(other));
                        interplay.exclusions.entry(topology).or_default().insert(pair);
                    }
                }
            }
        }
        if interplay.company
            && let Some(terms) = terms_of_all(snapshot, shapes)
            && let Some(affinity) = counts.iter().flatten().find_map(|counts| counts.affinity.as_ref())
        {
            // All members match the terms of all. If a running pod matches them too, its domains are the only ones; else the first member
            // that is placed determines them.
            interplay.company = false;
            if affinity.is_first() {
                interplay.region = terms.iter().map(|term| term.topology).collect();
            }
        }
        interplay
    }

    fn of(&self, shape: ShapeId) -> Option<&ShapeCounts> {
        self.shapes.iter().find(|counts| counts.shape == shape)
    }
}

/// Whether each node with the label is a domain of its own.
fn is_by_node(snapshot: &Snapshot, topology: TopologyId) -> bool {
    let topology = snapshot.topology(topology);
    topology.domain.iter().flatten().count() == topology.n_domains
}

/// The affinity terms that all shapes have, if all shapes have the same and match them.
fn terms_of_all<'s>(snapshot: &'s Snapshot, shapes: &[(ShapeId, bool)]) -> Option<&'s [Term]> {
    let first = &snapshot.shape(shapes.first()?.0).affinity;
    let is_alike = |shape: &Shape| shape.affinity == *first && first.iter().all(|term| term.selects(shape));
    shapes.iter().all(|&(shape, _)| is_alike(snapshot.shape(shape))).then_some(first)
}

fn first_hit(snapshot: &Snapshot, node: NodeId, counters: &[Counter]) -> Option<TopologyId> {
    let hit = counters.iter().find(|counter| counter.in_domain_of(snapshot, node).is_some_and(|count| count > 0))?;
    match hit.counted_by {
        CountedBy::Topology(topology) => Some(topology),
        CountedBy::Node => unreachable!("anti-affinity has a topology"),
    }
}

impl ShapeCounts {
    /// `None` if the shape has no inter-pod constraints and is not selected by those of other pods.
    fn new(snapshot: &Snapshot, id: ShapeId) -> Option<Self> {
        let shape = snapshot.shape(id);
        let ports = (!shape.ports.is_empty()).then(|| {
            Counter::new(snapshot, CountedBy::Node, |other| {
                let conflict = |port: &_| other.ports.iter().any(|used| used.conflicts_with(port));
                i64::from(shape.ports.iter().any(conflict))
            })
        });
        let of_term = |term: &Term| {
            Counter::new(snapshot, CountedBy::Topology(term.topology), |other| i64::from(term.selects(other)))
        };
        let meets_all = |other: &Shape| shape.affinity.iter().all(|term| term.selects(other));
        let of_affinity = |term: &Term| {
            Counter::new(snapshot, CountedBy::Topology(term.topology), |other| i64::from(meets_all(other)))
        };
        let affinity = (!shape.affinity.is_empty()).then(|| AffinityCounter {
            terms: shape.affinity.iter().map(of_affinity).collect(),
            matches_itself: meets_all(shape),
        });
        let counts = Self {
            shape: id,
            ports,
            spread: shape.spread.iter().map(|spread| SpreadCounter::new(snapshot, shape, spread)).collect(),
            affinity,
            anti_affinity: shape.anti_affinity.iter().map(of_term).collect(),
            others_anti_affinity: others_anti_affinity(snapshot, shape),
        };
        (counts.ports.is_some() || !counts.is_local()).then_some(counts)
    }

    /// Whether no constraint concerns pods on other nodes.
    fn is_local(&self) -> bool {
        self.spread.is_empty()
            && self.affinity.is_none()
            && self.anti_affinity.is_empty()
            && self.others_anti_affinity.is_empty()
    }

    fn count(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId, sign: i64) {
        let counters = self
            .ports
            .iter_mut()
            .chain(self.affinity.iter_mut().flat_map(|affinity| &mut affinity.terms))
            .chain(&mut self.anti_affinity)
            .chain(&mut self.others_anti_affinity);
        for counter in counters {
            counter.count(snapshot, pod.shape, node, sign);
        }
        if pod.terminating.is_none() {
            for spread in &mut self.spread {
                spread.count(snapshot, pod.shape, node, sign);
            }
        }
    }
}

/// For each topology, the number of anti-affinity terms of other pods that select this shape.
fn others_anti_affinity(snapshot: &Snapshot, shape: &Shape) -> Vec<Counter> {
    let topologies: BTreeSet<TopologyId> = snapshot
        .shapes_with_anti_affinity()
        .iter()
        .flat_map(|&other| &snapshot.shape(other).anti_affinity)
        .filter(|term| term.selects(shape))
        .map(|term| term.topology)
        .collect();
    let selecting_terms = |other: &Shape, topology| {
        other.anti_affinity.iter().filter(|term| term.topology == topology && term.selects(shape)).count() as i64
    };
    topologies
        .into_iter()
        .map(|topology| Counter::new(snapshot, CountedBy::Topology(topology), |other| selecting_terms(other, topology)))
        .collect()
}

impl Counter {
    fn new(snapshot: &Snapshot, counted_by: CountedBy, weight: impl Fn(&Shape) -> i64) -> Self {
        let n_domains = match counted_by {
            CountedBy::Node => snapshot.node_ids().len(),
            CountedBy::Topology(topology) => snapshot.topology(topology).n_domains,
        };
        let weights = (0..snapshot.n_shapes()).map(|shape| weight(snapshot.shape(ShapeId::new(shape)))).collect();
        Self { counted_by, weights, counts: vec![0; n_domains] }
    }

    fn domain(&self, snapshot: &Snapshot, node: NodeId) -> Option<usize> {
        match self.counted_by {
            CountedBy::Node => Some(node.index()),
            CountedBy::Topology(topology) => {
                snapshot.topology(topology).domain[node.index()].map(|domain| domain as usize)
            }
        }
    }

    fn count(&mut self, snapshot: &Snapshot, shape: ShapeId, node: NodeId, sign: i64) {
        let weight = self.weights[shape.index()];
        if weight != 0
            && let Some(domain) = self.domain(snapshot, node)
        {
            self.counts[domain] += sign * weight;
        }
    }

    /// The count in the node's domain; `None` if the node lacks the label.
    fn in_domain_of(&self, snapshot: &Snapshot, node: NodeId) -> Option<i64> {
        self.domain(snapshot, node).map(|domain| self.counts[domain])
    }
}

impl AffinityCounter {
    /// The node needs the label of every term, and each of its domains a pod that matches all terms; the first pod of a series needs none.
    fn filter_failure(&self, snapshot: &Snapshot, node: NodeId) -> Option<FilterFailure> {
        let mut met = true;
        for term in &self.terms {
            match term.in_domain_of(snapshot, node) {
                None => return Some(FilterFailure::Affinity),
                Some(count) => met &= count > 0,
            }
        }
        (!met && !self.is_first()).then_some(FilterFailure::Affinity)
    }

    /// Whether a pod of the shape would be the first of its series.
    fn is_first(&self) -> bool {
        self.matches_itself && self.terms.iter().all(|term| term.counts.iter().all(|&count| count == 0))
    }
}

impl SpreadCounter {
    fn new(snapshot: &Snapshot, shape: &Shape, constraint: &Spread) -> Self {
        let topology = constraint.topology;
        let counter = Counter::new(snapshot, CountedBy::Topology(topology), |other| {
            let counts = other.namespace == shape.namespace
                && !constraint.selector.is_empty()
                && constraint.selector.matches(&other.labels);
            i64::from(counts)
        });
        let labelled = |node: NodeId| {
            shape.spread.iter().all(|spread| snapshot.topology(spread.topology).domain[node.index()].is_some())
        };
        let counted: Vec<bool> = snapshot
            .node_ids()
            .map(|id| {
                let node = snapshot.node(id);
                labelled(id)
                    && (!constraint.honors_selection || node::selects(&shape.nodes, node, snapshot.numbers()))
                    && (!constraint.honors_taints || node::untolerated(shape, node).is_none())
            })
            .collect();
        let domains: BTreeSet<u32> = snapshot
            .node_ids()
            .filter(|node| counted[node.index()])
            .filter_map(|node| snapshot.topology(topology).domain[node.index()])
            .collect();
        Self {
            constraint: constraint.clone(),
            counter,
            counted,
            n_domains: domains.len(),
            histogram: vec![domains.len()],
            minimum: 0,
            matches_itself: constraint.selector.matches(&shape.labels),
        }
    }

    fn count(&mut self, snapshot: &Snapshot, shape: ShapeId, node: NodeId, sign: i64) {
        if self.counter.weights[shape.index()] == 0 || !self.counted[node.index()] {
            return;
        }
        let domain = self.counter.domain(snapshot, node).expect("a counted node has the label");
        let before = self.counter.counts[domain];
        let after = before + sign;
        self.counter.counts[domain] = after;
        let (before, after) = (before as usize, usize::try_from(after).expect("what is taken away was counted"));
        if self.histogram.len() <= after {
            self.histogram.resize(after + 1, 0);
        }
        self.histogram[before] -= 1;
        self.histogram[after] += 1;
        if after < self.minimum || self.histogram[self.minimum] == 0 {
            self.minimum = after.min(before);
            while self.histogram[self.minimum] == 0 {
                self.minimum += 1;
            }
        }
    }

    fn filter_failure(&self, snapshot: &Snapshot, node: NodeId) -> Option<FilterFailure> {
        let Spread { topology, max_skew, min_domains, .. } = self.constraint;
        let Some(count) = self.counter.in_domain_of(snapshot, node) else {
            return Some(FilterFailure::SpreadLabel(topology));
        };
        let minimum = if self.n_domains < min_domains { 0 } else { self.minimum as i64 };
        let skew = count + i64::from(self.matches_itself) - minimum;
        (skew > max_skew).then_some(FilterFailure::Spread { topology, skew, max_skew })
    }
}

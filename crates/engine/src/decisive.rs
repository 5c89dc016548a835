//! The part of the input that a decision may depend on. If pods have constraints across nodes, it is everything.
//!
//! The property says what remains valid if all other units and nodes are removed; removing a node removes its pods. So everything on a
//! decisive node is decisive, and so is every node of a decisive unit.

use crate::domains::Domain;
use crate::explanation::{Decisive, Recorder};
use crate::fit::{self, Preemptor, PreemptorId};
use crate::ids::{NodeId, UnitId};
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;

impl Decisive {
    /// These nodes, the units with a pod for which `is_needed` holds, and everything that is decisive because of them. The nodes of a
    /// domain are decisive together, except for closed ones.
    pub fn with(
        snapshot: &Snapshot,
        nodes: impl Iterator<Item = NodeId>,
        is_needed: impl Fn(&Pod) -> bool,
        domains: &[Domain],
        closed: &Closed,
    ) -> Self {
        let mut decisive =
            Self { units: vec![false; snapshot.n_units()], nodes: vec![false; snapshot.node_ids().len()] };
        let mut pending: Vec<NodeId> = nodes.collect();
        let mut domains: Vec<&Domain> = domains.iter().collect();
        for unit in snapshot.unit_ids() {
            if snapshot.unit(unit).pods.iter().any(|&pod| is_needed(snapshot.pod(pod))) {
                decisive.add(snapshot, unit, &mut pending);
            }
        }
        while let Some(node) = pending.pop() {
            if std::mem::replace(&mut decisive.nodes[node.index()], true) {
                continue;
            }
            for pod in snapshot.pods_on(node) {
                let unit = snapshot.unit_of(pod).expect("a bound pod has a unit");
                decisive.add(snapshot, unit, &mut pending);
            }
            if let Some(index) = domains.iter().position(|domain| domain.nodes.contains(&node)) {
                let nodes = domains.swap_remove(index).nodes.iter().copied();
                pending.extend(nodes.filter(|node| !closed.0[node.index()]));
            }
        }
        decisive
    }

    fn add(&mut self, snapshot: &Snapshot, unit: UnitId, pending: &mut Vec<NodeId>) {
        if !std::mem::replace(&mut self.units[unit.index()], true) {
            pending.extend(snapshot.unit(unit).pods.iter().filter_map(|&pod| snapshot.bound_node(pod)));
        }
    }
}

/// Reports that the refusal of a preemptor depends only on its own gang and nodes.
pub(crate) fn report_gang<R: Recorder>(snapshot: &Snapshot, preemptor: &Preemptor, recorder: &mut R) {
    recorder.decisive(Decisive::with(
        snapshot,
        nominated(snapshot, preemptor),
        |pod| is_of_gang(snapshot, preemptor, pod),
        &[],
        &Closed(Vec::new()),
    ));
}

/// Whether a pod belongs to the preemptor's group or job.
pub(crate) fn is_of_gang(snapshot: &Snapshot, preemptor: &Preemptor, pod: &Pod) -> bool {
    let (group, job) = match preemptor.id {
        PreemptorId::Pod(own) => (snapshot.pod(own).group, snapshot.pod(own).job),
        PreemptorId::Group(group) => (Some(group), None),
        PreemptorId::Workload(_) => (None, None),
    };
    group.is_some() && pod.group == group || job.is_some() && pod.job == job
}

/// By node: whether no pod of the preemptor can be placed there, whatever is evicted.
pub(crate) struct Closed(Vec<bool>);

impl Closed {
    /// `None` without a recorder, and if pods have constraints across nodes, so that the decision may depend on everything.
    pub fn new<R: Recorder>(what_if: &mut WhatIf<'_>, preemptor: &Preemptor) -> Option<Self> {
        if !R::RECORDS || !what_if.inter_pod().is_local() {
            return None;
        }
        let by_shape = fit::by_shape(what_if.snapshot(), &preemptor.members);
        let nodes = what_if.snapshot().node_ids();
        let is_closed = |node: NodeId| {
            let mut pods = by_shape.values();
            pods.all(|&pod| preemptor.filter_failure(what_if, pod, node).is_some_and(|failure| !failure.resolvable()))
        };
        Some(Self(nodes.map(is_closed).collect()))
    }

    /// The nodes where a pod of the preemptor might be placed, and its nominated nodes.
    pub fn others<'a>(&'a self, snapshot: &'a Snapshot, preemptor: &'a Preemptor) -> impl Iterator<Item = NodeId> + 'a {
        let open = self.0.iter().enumerate().filter(|(_, closed)| !**closed).map(|(node, _)| NodeId::new(node));
        open.chain(nominated(snapshot, preemptor))
    }

    /// Marks the nodes of these units as not closed.
    pub fn open_nodes_of(&mut self, snapshot: &Snapshot, units: &[UnitId]) {
        for node in units.iter().flat_map(|&unit| &snapshot.unit(unit).pods).filter_map(|&pod| snapshot.bound_node(pod))
        {
            self.0[node.index()] = false;
        }
    }
}

/// The nodes that the preemptor's pods are bound or nominated to.
pub(crate) fn nominated<'a>(snapshot: &'a Snapshot, preemptor: &'a Preemptor) -> impl Iterator<Item = NodeId> + 'a {
    preemptor.members.iter().filter_map(|&pod| snapshot.bound_node(pod).or(snapshot.pod(pod).nominated))
}

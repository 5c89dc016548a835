//! What of the input a decision may depend on. In doubt everything: where pods mind each other across nodes nothing is left out.
//!
//! Units and nodes are removed together: a unit that is not decisive is removed, and a node that is not decisive with everything on
//! it. So what runs on a decisive node is decisive, and so is every node on which a decisive unit runs.

use crate::domains::Domain;
use crate::explanation::{Decisive, Recorder};
use crate::fit::{self, Preemptor, PreemptorId};
use crate::ids::{NodeId, UnitId};
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;

impl Decisive {
    /// These nodes, the units of which `is_needed` holds for a pod, and everything that is decisive because of them. The nodes of a
    /// domain are removed together or not at all, but for those that are closed.
    pub fn with(
        snapshot: &Snapshot,
        nodes: impl Iterator<Item = NodeId>,
        is_needed: impl Fn(&Pod) -> bool,
        domains: &[Domain],
        closed: &Closed,
    ) -> Self {
        let mut decisive =
            Self { units: vec![false; snapshot.n_units()], nodes: vec![false; snapshot.node_ids().len()] };
        let mut unsettled: Vec<NodeId> = nodes.collect();
        let mut domains: Vec<&Domain> = domains.iter().collect();
        for unit in snapshot.unit_ids() {
            if snapshot.unit(unit).pods.iter().any(|&pod| is_needed(snapshot.pod(pod))) {
                decisive.add(snapshot, unit, &mut unsettled);
            }
        }
        while let Some(node) = unsettled.pop() {
            if std::mem::replace(&mut decisive.nodes[node.index()], true) {
                continue;
            }
            for pod in snapshot.pods_on(node) {
                let unit = snapshot.unit_of(pod).expect("a bound pod has a unit");
                decisive.add(snapshot, unit, &mut unsettled);
            }
            if let Some(at) = domains.iter().position(|domain| domain.nodes.contains(&node)) {
                let nodes = domains.swap_remove(at).nodes.iter().copied();
                unsettled.extend(nodes.filter(|node| !closed.0[node.index()]));
            }
        }
        decisive
    }

    fn add(&mut self, snapshot: &Snapshot, unit: UnitId, unsettled: &mut Vec<NodeId>) {
        if !std::mem::replace(&mut self.units[unit.index()], true) {
            unsettled.extend(snapshot.unit(unit).pods.iter().filter_map(|&pod| snapshot.bound_node(pod)));
        }
    }
}

/// Reports that a preemptor which is refused because of what it is depends on its own gang and nodes alone.
pub(crate) fn report_gang<R: Recorder>(snapshot: &Snapshot, ask: &Preemptor, recorder: &mut R) {
    recorder.decisive(Decisive::with(
        snapshot,
        nominated(snapshot, ask),
        |pod| is_of_gang(snapshot, ask, pod),
        &[],
        &Closed(Vec::new()),
    ));
}

/// Whether a pod is of the preemptor's group or job.
pub(crate) fn is_of_gang(snapshot: &Snapshot, ask: &Preemptor, pod: &Pod) -> bool {
    let (group, job) = match ask.id {
        PreemptorId::Pod(own) => (snapshot.pod(own).group, snapshot.pod(own).job),
        PreemptorId::Group(group) => (Some(group), None),
        PreemptorId::Workload(_) => (None, None),
    };
    group.is_some() && pod.group == group || job.is_some() && pod.job == job
}

/// By node: whether no pod of the preemptor can land there, whatever runs there.
pub(crate) struct Closed(Vec<bool>);

impl Closed {
    /// `None` where a decision may depend on everything, because pods mind each other across nodes.
    pub fn new(what_if: &mut WhatIf<'_>, ask: &Preemptor) -> Option<Self> {
        if !what_if.inter_pod().is_local() {
            return None;
        }
        let by_shape = fit::by_shape(what_if.snapshot(), &ask.members);
        let nodes = what_if.snapshot().node_ids();
        let is_closed = |node: NodeId| {
            let mut pods = by_shape.values();
            pods.all(|&pod| fit::filter_failure(what_if, ask, pod, node).is_some_and(|misfit| !misfit.resolvable()))
        };
        Some(Self(nodes.map(is_closed).collect()))
    }

    /// The nodes where a pod of the preemptor might land, and those that one is nominated to.
    pub fn others<'a>(&'a self, snapshot: &'a Snapshot, ask: &'a Preemptor) -> impl Iterator<Item = NodeId> + 'a {
        let open = self.0.iter().enumerate().filter(|(_, closed)| !**closed).map(|(node, _)| NodeId::new(node));
        open.chain(nominated(snapshot, ask))
    }

    /// Counts the nodes where these units run as nodes where a pod might land.
    pub fn open_nodes_of(&mut self, snapshot: &Snapshot, units: &[UnitId]) {
        for node in units.iter().flat_map(|&unit| &snapshot.unit(unit).pods).filter_map(|&pod| snapshot.bound_node(pod))
        {
            self.0[node.index()] = false;
        }
    }
}

/// The nodes that the preemptor's pods are nominated to, or run on already.
pub(crate) fn nominated<'a>(snapshot: &'a Snapshot, ask: &'a Preemptor) -> impl Iterator<Item = NodeId> + 'a {
    ask.members.iter().filter_map(|&pod| snapshot.bound_node(pod).or(snapshot.pod(pod).nominated))
}

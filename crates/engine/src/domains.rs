//! Among which nodes is the preemptor placed? One node for a pod; for a group the whole cluster, or one domain of its topology.

use crate::fit::{Preemptor, PreemptorId};
use crate::ids::{NodeId, TopologyId};
use crate::snapshot::Snapshot;

/// The nodes among which a group is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The topology and which of its domains; `None` is the whole cluster.
    pub part: Option<(TopologyId, u32)>,
    /// Its nodes.
    pub nodes: Vec<NodeId>,
}

/// The domains of a group, in the order of their names. Members that run fix it; if they run in several, or where the label is
/// missing, there is none. (Rule 12 of the groups.)
pub(crate) fn domains(snapshot: &Snapshot, ask: &Preemptor) -> Vec<Domain> {
    let whole = || vec![Domain { part: None, nodes: snapshot.node_ids().collect() }];
    let PreemptorId::Group(group) = ask.id else {
        return whole();
    };
    let group = snapshot.group(group);
    let Some(topology) = group.topology else {
        return whole();
    };
    let domain_of = |node: NodeId| snapshot.topology(topology).domain[node.index()];
    let running: Vec<Option<u32>> =
        group.members.iter().filter_map(|&pod| snapshot.bound_node(pod)).map(domain_of).collect();
    let fixed = running.first().copied();
    if running.iter().any(|&domain| domain.is_none() || Some(domain) != fixed) {
        return Vec::new();
    }
    let mut domains: Vec<Domain> = (0..snapshot.topology(topology).n_domains as u32)
        .map(|domain| Domain { part: Some((topology, domain)), nodes: Vec::new() })
        .collect();
    for node in snapshot.node_ids() {
        if let Some(domain) = domain_of(node) {
            domains[domain as usize].nodes.push(node);
        }
    }
    domains.retain(|domain| {
        let is_fixed = fixed.is_none_or(|fixed| fixed == domain.part.map(|(_, domain)| domain));
        is_fixed && !domain.nodes.is_empty()
    });
    domains
}

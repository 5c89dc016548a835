//! The step *domains* of a decision: the sets of nodes in which a group may be placed, which are the whole cluster or the domains of its
//! topology. A pod has the whole cluster, and its search tries each node.

use crate::fit::{Preemptor, PreemptorId};
use crate::ids::{NodeId, TopologyId};
use crate::snapshot::Snapshot;

/// A set of nodes in which a group may be placed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The topology and the number of its domain, in the order of the domains' names; `None` for the whole cluster.
    pub part: Option<(TopologyId, u32)>,
    /// Its nodes.
    pub nodes: Vec<NodeId>,
}

/// docs/rules/kubernetes-groups.md#g12: the domains of a group, in the order of their names. Running members restrict it to their domain;
/// if they run in several, or on a node without the label, there is none.
pub(crate) fn domains(snapshot: &Snapshot, preemptor: &Preemptor) -> Vec<Domain> {
    let whole = || vec![Domain { part: None, nodes: snapshot.node_ids().collect() }];
    let PreemptorId::Group(group) = preemptor.id else { return whole() };
    let group = snapshot.group(group);
    let Some(topology) = group.topology else { return whole() };
    let domain_of = |node: NodeId| snapshot.topology(topology).domain[node.index()];
    let running = group.members.iter().filter(|&&pod| snapshot.pod(pod).terminating.is_none());
    let running: Vec<_> = running.filter_map(|&pod| snapshot.bound_node(pod)).map(domain_of).collect();
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

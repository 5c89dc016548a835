//! Placing the members of a group the plain way: the domains they may go to, and first fit.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, PodFacts};
use crate::fit::{Asker, fits, host_ports};
use crate::groups::Group;
use crate::occupancy::Occupancy;
use crate::spread::constraints;

/// The sets of nodes of which one must hold all members: the cluster, or each domain of the topology keys. Members that run
/// leave only the domain that they are in; nodes without the labels are in none. (Rule 12 of the groups.)
pub fn domains(cluster: &Cluster<'_>, group: &Group, running: &[usize]) -> Vec<Vec<usize>> {
    let all = 0..cluster.nodes.len();
    if group.topology_keys.is_empty() {
        return vec![all.collect()];
    }
    let mut domains: BTreeMap<Vec<&String>, Vec<usize>> = BTreeMap::new();
    for node in all {
        let labels = &cluster.nodes[node].labels;
        let values: Option<Vec<&String>> = group.topology_keys.iter().map(|key| labels.get(key)).collect();
        if let Some(values) = values {
            domains.entry(values).or_default().push(node);
        }
    }
    let holds_running = |nodes: &Vec<usize>| {
        running.iter().all(|&pod| cluster.pods[pod].node.is_some_and(|node| nodes.contains(&node)))
    };
    domains.into_values().filter(holds_running).collect()
}

/// How many members fit on the nodes if each goes to the first that has room.
pub fn first_fit(cluster: &Cluster<'_>, standing: &Occupancy, asker: &Asker, nodes: &[usize]) -> usize {
    let mut standing = standing.clone();
    let mut placed = 0;
    for &member in &asker.pods {
        let node = nodes.iter().find(|&&node| fits(cluster, &standing, asker, member, node).is_ok());
        if let Some(&node) = node {
            standing.put(member, node);
            placed += 1;
        }
    }
    placed
}

/// Whether first fit is as good as any other way: the members are alike and do not mind each other.
pub fn first_fit_is_best(cluster: &Cluster<'_>, members: &[usize]) -> bool {
    let Some(first) = members.first().map(|&member| &cluster.pods[member]) else { return true };
    members.iter().map(|&member| &cluster.pods[member]).all(|member| {
        let (one, other) = (&member.spec, &first.spec);
        putting_back_never_helps(member)
            && member.anti_affinity.is_empty()
            && host_ports(member).is_empty()
            && member.asks == first.asks
            && member.labels == first.labels
            && (&one.node_selector, &one.affinity, &one.tolerations)
                == (&other.node_selector, &other.affinity, &other.tolerations)
    })
}

/// Where pods attract or must be spread, putting one back can make room for another, and a victim of an early moment may turn out
/// spare at the end.
pub fn putting_back_never_helps(pod: &PodFacts) -> bool {
    pod.affinity.is_empty() && constraints(pod).is_empty()
}

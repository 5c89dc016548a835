//! The placement of a group's members: the domains, and first fit.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, PodFacts};
use crate::fit::{Preemptor, fits, host_ports};
use crate::groups::Group;
use crate::occupancy::Occupancy;
use crate::spread::constraints;

/// docs/rules/kubernetes-groups.md#g12: the sets of nodes of which one must contain all members: the cluster, or each domain of the
/// topology keys. Running members leave only their domain; nodes without the labels are in none.
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
    let contains_running = |nodes: &Vec<usize>| {
        running.iter().all(|&pod| cluster.pods[pod].node.is_some_and(|node| nodes.contains(&node)))
    };
    domains.into_values().filter(contains_running).collect()
}

/// The number of members that fit on the nodes if each is placed on the first that fits.
pub fn first_fit(occupancy: &Occupancy<'_>, preemptor: &Preemptor, nodes: &[usize]) -> usize {
    let mut occupancy = occupancy.clone();
    let mut placed = 0;
    for &member in &preemptor.pods {
        let node = nodes.iter().find(|&&node| fits(&occupancy, preemptor, member, node).is_ok());
        if let Some(&node) = node {
            occupancy.put(member, node);
            placed += 1;
        }
    }
    placed
}

/// docs/rules/kubernetes-groups.md#g24: whether at least `needed` members fit on the nodes, with any assignment in any order. `None` if the
/// members differ and are too many to try all; with `greedy` also if they differ.
pub fn enough_fit(
    occupancy: &Occupancy<'_>,
    preemptor: &Preemptor,
    nodes: &[usize],
    needed: usize,
    greedy: bool,
) -> Option<bool> {
    if first_fit_is_best(occupancy.cluster, &preemptor.pods) {
        return Some(first_fit(occupancy, preemptor, nodes) >= needed);
    }
    let is_small = preemptor.pods.len() <= 4 && nodes.len() <= 4;
    (is_small && !greedy).then(|| some_fit(occupancy, preemptor, &preemptor.pods, nodes, needed))
}

fn some_fit(occupancy: &Occupancy<'_>, preemptor: &Preemptor, pods: &[usize], nodes: &[usize], needed: usize) -> bool {
    needed == 0
        || pods.iter().any(|&pod| {
            nodes.iter().filter(|&&node| fits(occupancy, preemptor, pod, node).is_ok()).any(|&node| {
                let mut occupancy = occupancy.clone();
                occupancy.put(pod, node);
                let others: Vec<usize> = pods.iter().copied().filter(|&other| other != pod).collect();
                some_fit(&occupancy, preemptor, &others, nodes, needed - 1)
            })
        })
}

/// Whether first fit places as many members as any other order: the members are equal and have no constraints on each other.
pub fn first_fit_is_best(cluster: &Cluster<'_>, members: &[usize]) -> bool {
    let Some(first) = members.first().map(|&member| &cluster.pods[member]) else { return true };
    members.iter().map(|&member| &cluster.pods[member]).all(|member| {
        let (own, other) = (&member.spec, &first.spec);
        is_monotonic(member)
            && member.anti_affinity.is_empty()
            && host_ports(member).is_empty()
            && member.requests == first.requests
            && member.labels == first.labels
            && (&own.node_selector, &own.affinity, &own.tolerations)
                == (&other.node_selector, &other.affinity, &other.tolerations)
    })
}

/// Whether putting a pod back can only take room away. With affinity or spread constraints it can make room for another pod, so that an
/// earlier victim may turn out not to be needed.
pub fn is_monotonic(pod: &PodFacts) -> bool {
    pod.affinity.is_empty() && constraints(pod).is_empty()
}

//! The laws: which units may be taken, on which nodes, and whether any may be taken now.

use crate::cluster::{Cluster, Unit};
use crate::finding::Finding;
use crate::fit::{Preemptor, is_unresolvable};
use crate::occupancy::Occupancy;

/// The law that spares a unit.
pub fn spared(cluster: &Cluster<'_>, preemptor: &Preemptor, unit: usize) -> Option<Finding> {
    let unit = &cluster.units[unit];
    let named = |pod: usize| cluster.pod_name(pod);
    if let Some(&pod) = unit.pods.iter().find(|pod| preemptor.pods.contains(pod)) {
        return Some(Finding::OwnVictim { pod: named(pod) });
    }
    if unit.priority >= preemptor.priority {
        let (priority, preemptor) = (unit.priority, preemptor.priority);
        return Some(Finding::VictimNotLower { pod: named(unit.pods[0]), priority, preemptor });
    }
    unit.pods.iter().find_map(|&index| {
        let pod = &cluster.pods[index];
        if cluster.classes.is_undefined(pod.class()) {
            Some(Finding::VictimOfUnknownClass { pod: named(index) })
        } else if cluster.is_protected(&pod.name.namespace) {
            Some(Finding::VictimProtected { pod: named(index) })
        } else if cluster.classes.opted_out(pod.class()) {
            Some(Finding::VictimOptedOut { pod: named(index) })
        } else if cluster.classes.tolerates(pod.class(), pod.scheduled, preemptor.priority, preemptor.now) {
            Some(Finding::VictimTolerates { pod: named(index) })
        } else {
            None
        }
    })
}

/// docs/rules/toleration.md#t3: a lower pod on the node whose priority class is not defined; it excludes the node.
pub fn unknown_class_on(cluster: &Cluster<'_>, preemptor: &Preemptor, node: usize) -> Option<Finding> {
    let lower = |pod: usize| cluster.unit_of[pod].is_some_and(|unit| cluster.units[unit].priority < preemptor.priority);
    let pod = (0..cluster.pods.len()).find(|&pod| {
        cluster.pods[pod].node == Some(node) && cluster.classes.is_undefined(cluster.pods[pod].class()) && lower(pod)
    })?;
    Some(Finding::UnknownClassOnNode { node: cluster.node_name(node), pod: cluster.pod_name(pod) })
}

/// docs/rules/toleration.md#t3: the candidates of a gang with a pod on one of the nodes. No pod on a node with a lower pod of an undefined
/// class is one, but the gang may use the free room of that node.
pub fn candidates_of_gang(cluster: &Cluster<'_>, preemptor: &Preemptor, nodes: &[usize]) -> Vec<usize> {
    let is_known =
        |pod: &usize| cluster.pods[*pod].node.is_none_or(|node| unknown_class_on(cluster, preemptor, node).is_none());
    let mut units = candidates_on(cluster, preemptor, nodes);
    units.retain(|&unit| cluster.units[unit].pods.iter().all(is_known));
    units
}

/// The candidates with a pod on one of the nodes.
pub fn candidates_on(cluster: &Cluster<'_>, preemptor: &Preemptor, nodes: &[usize]) -> Vec<usize> {
    let is_there = |pod: &usize| cluster.pods[*pod].node.is_some_and(|node| nodes.contains(&node));
    let lawful =
        |&unit: &usize| cluster.units[unit].pods.iter().any(is_there) && spared(cluster, preemptor, unit).is_none();
    (0..cluster.units.len()).filter(lawful).collect()
}

/// The pods of these units.
pub fn pods_of(cluster: &Cluster<'_>, units: &[usize]) -> Vec<usize> {
    units.iter().flat_map(|&unit| cluster.units[unit].pods.iter().copied()).collect()
}

/// A lower pod that a scheduler preempted and that still terminates on the node.
fn terminating_victim(cluster: &Cluster<'_>, preemptor: &Preemptor, node: usize) -> Option<Finding> {
    let is_terminating = |&index: &usize| {
        let pod = &cluster.pods[index];
        let lower = cluster.unit_of[index].is_some_and(|unit| cluster.units[unit].priority < preemptor.priority);
        pod.node == Some(node) && pod.preempted && lower
    };
    let pod = (0..cluster.pods.len()).find(is_terminating)?;
    Some(Finding::StillTerminating { pod: cluster.pod_name(pod), node: cluster.node_name(node) })
}

/// docs/rules/kubernetes-pods.md#p3: the preemption in progress for a pod as kube-scheduler sees it: on its nominated node, unless no
/// eviction can make the pod fit there.
pub fn in_progress_for_pod(occupancy: &Occupancy<'_>, preemptor: &Preemptor, pod: usize) -> Option<Finding> {
    let cluster = occupancy.cluster;
    let node = cluster.pods[pod].nominated?;
    if is_unresolvable(occupancy, preemptor, pod, node) { None } else { terminating_victim(cluster, preemptor, node) }
}

/// docs/rules/kubernetes-groups.md#g7: the preemption in progress for a preemptor: on the nominated node of any of its pods, or on the node
/// of a pod that is resized.
pub fn in_progress(cluster: &Cluster<'_>, preemptor: &Preemptor) -> Option<Finding> {
    nominated_nodes(cluster, preemptor).find_map(|node| terminating_victim(cluster, preemptor, node))
}

/// docs/rules/kubernetes-groups.md#g25: the pods that were preempted for the preemptor and still terminate: the lower ones on its nominated
/// nodes, and those that terminate by preemption in the same units.
pub fn preempted_for(cluster: &Cluster<'_>, preemptor: &Preemptor) -> Vec<usize> {
    let nodes: Vec<usize> = nominated_nodes(cluster, preemptor).collect();
    let is_lower = |unit: &&Unit| unit.priority < preemptor.priority;
    let units = cluster.units.iter().filter(is_lower).filter(|unit| {
        unit.pods.iter().any(|&pod| {
            let pod = &cluster.pods[pod];
            pod.preempted && pod.node.is_some_and(|node| nodes.contains(&node))
        })
    });
    units.flat_map(|unit| unit.pods.iter().copied()).filter(|&pod| cluster.pods[pod].preempted).collect()
}

fn nominated_nodes(cluster: &Cluster<'_>, preemptor: &Preemptor) -> impl Iterator<Item = usize> {
    preemptor.pods.iter().filter_map(|&pod| {
        let pod = &cluster.pods[pod];
        pod.nominated.filter(|_| !preemptor.resize).or(pod.node.filter(|_| preemptor.resize))
    })
}

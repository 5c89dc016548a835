//! Who may be taken, where, and whether anybody may be taken now.

use crate::cluster::Cluster;
use crate::finding::Finding;
use crate::fit::{Asker, is_hopeless};
use crate::occupancy::Occupancy;

/// Why a unit may not be taken; nothing if it may.
pub fn spared(cluster: &Cluster<'_>, asker: &Asker, unit: usize) -> Option<Finding> {
    let unit = &cluster.units[unit];
    let named = |pod: usize| cluster.pod_name(pod);
    if let Some(&pod) = unit.pods.iter().find(|pod| asker.pods.contains(pod)) {
        return Some(Finding::OwnVictim { pod: named(pod) });
    }
    if unit.priority >= asker.priority {
        let (priority, preemptor) = (unit.priority, asker.priority);
        return Some(Finding::VictimNotLower { pod: named(unit.pods[0]), priority, preemptor });
    }
    unit.pods.iter().find_map(|&at| {
        let pod = &cluster.pods[at];
        if cluster.classes.lacks(pod.class()) {
            Some(Finding::VictimOfUnknownClass { pod: named(at) })
        } else if cluster.is_protected(&pod.name.namespace) {
            Some(Finding::VictimProtected { pod: named(at) })
        } else if cluster.classes.opted_out(pod.class()) {
            Some(Finding::VictimOptedOut { pod: named(at) })
        } else if cluster.classes.tolerates(pod.class(), pod.scheduled, asker.priority, asker.now) {
            Some(Finding::VictimTolerates { pod: named(at) })
        } else {
            None
        }
    })
}

/// A lower pod on the node whose class nobody defined: it rules the node out. (Rule 3 of the tolerations.)
pub fn unknown_class_on(cluster: &Cluster<'_>, asker: &Asker, node: usize) -> Option<Finding> {
    let lower = |pod: usize| cluster.unit_of[pod].is_some_and(|unit| cluster.units[unit].priority < asker.priority);
    let pod = (0..cluster.pods.len()).find(|&pod| {
        cluster.pods[pod].node == Some(node) && cluster.classes.lacks(cluster.pods[pod].class()) && lower(pod)
    })?;
    Some(Finding::UnknownClassOnNode { node: cluster.node_name(node), pod: cluster.pod_name(pod) })
}

/// The lawful units with a pod on one of the nodes: all that landing there could take.
pub fn potential_victims(cluster: &Cluster<'_>, asker: &Asker, nodes: &[usize]) -> Vec<usize> {
    let is_there = |pod: &usize| cluster.pods[*pod].node.is_some_and(|node| nodes.contains(&node));
    let lawful =
        |&unit: &usize| cluster.units[unit].pods.iter().any(is_there) && spared(cluster, asker, unit).is_none();
    (0..cluster.units.len()).filter(lawful).collect()
}

/// The pods of several units.
pub fn pods_of(cluster: &Cluster<'_>, units: &[usize]) -> Vec<usize> {
    units.iter().flat_map(|&unit| cluster.units[unit].pods.iter().copied()).collect()
}

/// A lower pod that the scheduler preempted and that still leaves a node.
fn leaving(cluster: &Cluster<'_>, asker: &Asker, node: usize) -> Option<Finding> {
    let leaves = |&at: &usize| {
        let pod = &cluster.pods[at];
        let lower = cluster.unit_of[at].is_some_and(|unit| cluster.units[unit].priority < asker.priority);
        pod.node == Some(node) && pod.preempted && lower
    };
    let pod = (0..cluster.pods.len()).find(leaves)?;
    Some(Finding::UnderWay { pod: cluster.pod_name(pod), node: cluster.node_name(node) })
}

/// The preemption for a pod that is under way: on its nominated node, unless that node is hopeless. (Rule 3 of the pods.)
pub fn under_way_for_pod(cluster: &Cluster<'_>, standing: &Occupancy, asker: &Asker, pod: usize) -> Option<Finding> {
    let node = cluster.pods[pod].nominated?;
    if is_hopeless(cluster, standing, asker, pod, node) { None } else { leaving(cluster, asker, node) }
}

/// The preemption for a group that is under way: on the nominated node of any pending member. (Rule 7 of the groups.)
pub fn under_way_for_group(cluster: &Cluster<'_>, asker: &Asker) -> Option<Finding> {
    asker.pods.iter().filter_map(|&pod| cluster.pods[pod].nominated).find_map(|node| leaving(cluster, asker, node))
}

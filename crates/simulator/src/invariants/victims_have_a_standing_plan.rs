//! Nobody is a victim without a plan for the whole preemptor that stands: it is said of every pod of it where it is meant to land, and
//! with the victims gone it fits there.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_loader::requests::{self, Amounts};
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::Held;
use crate::run::Gang;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(world: &VirtualCluster, step: &Step) -> Held {
    let (Some(unit), StepOutcome::Evict { placement, victims }) = (&step.unit, &step.outcome) else {
        return Ok(());
    };
    if let UnitRef::Group(name) | UnitRef::Job(name) = unit {
        for (_, Gang { min, .. }) in world.gangs().filter(|(job, _)| job.submission.name == *name) {
            let bound = bound_members(world, unit);
            if bound + placement.len() < min {
                return Err(format!("{unit} needs {min} pods, and only {} are placed", bound + placement.len()));
            }
        }
    }
    for (pod, node) in placement {
        let status = world.scheduler().live().pod(pod).and_then(|pod| pod.status.as_ref());
        if status.and_then(|status| status.nominated_node_name.as_ref()) != Some(node) {
            return Err(format!("{victims:?} yield for {unit}, and it is not said that {pod} is meant for {node}"));
        }
    }
    match fits(world, placement, victims) {
        true => Ok(()),
        false => Err(format!("with {victims:?} gone, {unit} does not fit as {placement:?}")),
    }
}

/// How many pods of a unit have a node, as far as the scheduler can know: one that is gone is there until somebody says so.
pub(super) fn bound_members(world: &VirtualCluster, unit: &UnitRef) -> usize {
    let live = world.scheduler().live();
    let node_of = |pod: &NamespacedName| live.pod(pod)?.node_name.as_ref();
    live.members(&unit.key()).iter().filter(|pod| node_of(pod).is_some()).count()
}

/// Whether the placement fits, as far as resources tell, with these and all who are leaving gone, and with those of higher priority
/// that are meant to land there.
pub(super) fn fits(world: &VirtualCluster, placement: &[(NamespacedName, String)], gone: &[NamespacedName]) -> bool {
    let live = world.scheduler().live();
    let nodes: BTreeSet<&String> = placement.iter().map(|(_, node)| node).collect();
    let mut used: BTreeMap<&String, Amounts> = BTreeMap::new();
    let mut add = |node, pod: &Pod| {
        let used = used.entry(node).or_default();
        for (resource, amount) in requests::requests(pod).unwrap_or_default() {
            *used.entry(resource).or_default() += amount;
        }
    };
    let priority = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    let placed = placement.iter().filter_map(|(name, _)| live.pod(name));
    let highest = placed.map(|pod| priority(pod)).max().unwrap_or(0);
    for (name, pod) in live.pods().filter(|(_, pod)| !pod.is_finished()) {
        let bound = pod.node_name.as_ref();
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_ref());
        let node = bound.or(nominated.filter(|_| priority(pod) > highest));
        let stays = pod.metadata.deletion_timestamp.is_none() && !gone.contains(name);
        if let Some(node) = node.filter(|node| stays && nodes.contains(node)) {
            add(node, pod);
        }
    }
    for (name, node) in placement {
        match live.pod(name) {
            Some(pod) => add(node, pod),
            None => return false,
        }
    }
    nodes.into_iter().all(|name| {
        let Some(Object::Node(node)) = live.get(&ObjectKey::new(Kind::Node, NamespacedName::new("", name))) else {
            return false;
        };
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let offered = requests::amounts(&allocatable, "status.allocatable").unwrap_or_default();
        let mut used = used.get(name).into_iter().flatten();
        used.all(|(resource, amount)| *amount <= offered.get(resource).copied().unwrap_or(0))
    })
}

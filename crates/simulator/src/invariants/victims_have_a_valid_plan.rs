//! Victims are evicted only for a plan that is still valid in the API: enough pods of the preemptor for its minimum have a node, each is
//! nominated to its node, and all fit there without the victims. For a Kueue workload the step has no
//! placement, so nothing is checked here; `lawful` checks its victims.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_loader::Amounts;
use reprieve_loader::requests;
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::{CheckResult, ensure};
use crate::run::Gang;
use crate::virtual_cluster::VirtualCluster;

/// Called after a step has been decided, before its evictions take effect.
pub(super) fn check(cluster: &VirtualCluster, step: &Step) -> CheckResult {
    let (Some(unit), StepOutcome::Evict { placement, victims }) = (&step.unit, &step.outcome) else {
        return Ok(());
    };
    if let UnitRef::Group(name) | UnitRef::Job(name) = unit {
        for (_, Gang { min, .. }) in cluster.gangs().filter(|(job, _)| job.submission.name == *name) {
            let bound = bound_members(cluster, unit);
            if bound + placement.len() < min {
                return Err(format!("{unit} needs {min} pods, but only {} are placed", bound + placement.len()));
            }
        }
    }
    for (pod, node) in placement {
        let status = cluster.scheduler().live().pod(pod).and_then(|pod| pod.status.as_ref());
        if status.and_then(|status| status.nominated_node_name.as_ref()) != Some(node) {
            return Err(format!("{victims:?} are evicted for {unit}, but pod {pod} is not nominated to {node}"));
        }
    }
    let fits = fits(cluster, placement, victims);
    ensure(fits, || format!("{unit} does not fit as {placement:?} without {victims:?}"))
}

/// The number of bound pods of a unit in the view of the scheduler, which may not know of a deletion yet.
pub(super) fn bound_members(cluster: &VirtualCluster, unit: &UnitRef) -> usize {
    let live = cluster.scheduler().live();
    let node_of = |pod: &NamespacedName| live.pod(pod)?.node_name.as_ref();
    live.members(&unit.key()).iter().filter(|pod| node_of(pod).is_some()).count()
}

/// Whether the requests of the placement fit without the removed and the terminating pods, and with the nominated pods of higher priority.
/// Nominated pods of equal priority are left out, as in the scheduler's own check before it evicts.
pub(super) fn fits(
    cluster: &VirtualCluster,
    placement: &[(NamespacedName, String)],
    removed: &[NamespacedName],
) -> bool {
    let live = cluster.scheduler().live();
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
        let remains = pod.metadata.deletion_timestamp.is_none() && !removed.contains(name);
        if let Some(node) = node.filter(|node| remains && nodes.contains(node)) {
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
        let limits = requests::amounts(&allocatable, "status.allocatable").unwrap_or_default();
        let mut used = used.get(name).into_iter().flatten();
        used.all(|(resource, amount)| *amount <= limits.get(resource).copied().unwrap_or(0))
    })
}

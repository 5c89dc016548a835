//! Whether a pod fits on a node beside those that stand: every filter of the rules, with the pods that are nominated there and
//! without them.

use jiff::Timestamp;

use crate::affinity::affinity;
use crate::cluster::{Cluster, PodFacts};
use crate::misfit::Misfit;
use crate::occupancy::Occupancy;
use crate::selector::{cordon, keeps_off, node_is_wanted};
use crate::spread::spread;

/// Who asks, and when.
pub struct Asker {
    /// By which it may take others, and by which nominated pods hold room against it.
    pub priority: i64,
    /// The pods that it asks for; their own nominations hold no room.
    pub pods: Vec<usize>,
    /// Whether it runs already and asks to grow. (Rule 20 of the pods.)
    pub resize: bool,
    /// The decision's clock.
    pub now: Timestamp,
}

/// Whether the pod fits, with those nominated to the node that are at least as high as the asker, and without. (Rule 6.)
pub fn fits(cluster: &Cluster<'_>, standing: &Occupancy, asker: &Asker, pod: usize, node: usize) -> Result<(), Misfit> {
    let holds_room = |&(at, other): &(usize, &PodFacts)| {
        other.node.is_none()
            && other.nominated == Some(node)
            && other.priority >= asker.priority
            && !asker.pods.contains(&at)
    };
    let nominees: Vec<usize> = cluster.pods.iter().enumerate().filter(holds_room).map(|(at, _)| at).collect();
    if !nominees.is_empty() {
        let mut crowded = standing.clone();
        nominees.iter().for_each(|&nominee| crowded.put(nominee, node));
        passes(cluster, &crowded, asker, pod, node)?;
    }
    passes(cluster, standing, asker, pod, node)
}

/// Whether the pod fails on the node for a reason that no eviction can mend, with everybody in place. (Rule 8.) As in
/// kube-scheduler the first filter that fails speaks for the node.
pub fn is_hopeless(cluster: &Cluster<'_>, standing: &Occupancy, asker: &Asker, pod: usize, node: usize) -> bool {
    fits(cluster, standing, asker, pod, node).is_err_and(|misfit| !misfit.may_yield())
}

/// All filters, in the order of kube-scheduler. A pod that grows where it runs is asked for nothing but room, on a node that lets it.
fn passes(cluster: &Cluster<'_>, standing: &Occupancy, asker: &Asker, pod: usize, node: usize) -> Result<(), Misfit> {
    if asker.resize {
        return if cluster.nodes[node].resize_preemption_disabled {
            Err(Misfit::NotWanted)
        } else {
            room(cluster, standing, pod, node)
        };
    }
    welcome(cluster, pod, node)?;
    ports(cluster, standing, pod, node)?;
    room(cluster, standing, pod, node)?;
    spread(cluster, standing, pod, node)?;
    affinity(cluster, standing, pod, node)
}

fn welcome(cluster: &Cluster<'_>, pod: usize, node: usize) -> Result<(), Misfit> {
    let (spec, facts) = (&cluster.pods[pod].spec, &cluster.nodes[node]);
    let cordon = facts.cordoned.then(cordon);
    if let Some(taint) = facts.taints.iter().chain(&cordon).find(|taint| keeps_off(taint, spec)) {
        return Err(Misfit::Taint { key: taint.key.clone() });
    }
    if node_is_wanted(spec, &facts.name, &facts.labels) { Ok(()) } else { Err(Misfit::NotWanted) }
}

/// Only what the pod asks for is looked at: a node may be short of other things already.
fn room(cluster: &Cluster<'_>, standing: &Occupancy, pod: usize, node: usize) -> Result<(), Misfit> {
    let offered = |resource: &String| cluster.nodes[node].allocatable.get(resource).copied().unwrap_or(0);
    let held = |resource: &String| -> i128 {
        standing.on[node].iter().map(|&other| cluster.pods[other].holds.get(resource).copied().unwrap_or(0)).sum()
    };
    let asked = || cluster.pods[pod].asks.iter().filter(|(_, amount)| **amount > 0);
    let is_beyond = |(resource, amount): &(&String, &i128)| *resource != "pods" && **amount > offered(resource);
    if let Some((resource, _)) = asked().find(is_beyond) {
        return Err(Misfit::NeverEnough { resource: resource.clone() });
    }
    match asked().find(|(resource, amount)| held(resource) + **amount > offered(resource)) {
        Some((resource, _)) => Err(Misfit::Resource { resource: resource.clone() }),
        None => Ok(()),
    }
}

/// Same port, same protocol, and the same address or all addresses on either side. (Rule 9.)
fn ports(cluster: &Cluster<'_>, standing: &Occupancy, pod: usize, node: usize) -> Result<(), Misfit> {
    for wanted in host_ports(&cluster.pods[pod]) {
        for taken in standing.on[node].iter().flat_map(|&other| host_ports(&cluster.pods[other])) {
            let same_address = wanted.ip == taken.ip || wanted.ip == "0.0.0.0" || taken.ip == "0.0.0.0";
            if wanted.port == taken.port && wanted.protocol == taken.protocol && same_address {
                return Err(Misfit::HostPort { port: wanted.port });
            }
        }
    }
    Ok(())
}

/// A port of the node that a pod takes.
pub struct HostPort<'p> {
    port: i32,
    protocol: &'p str,
    ip: &'p str,
}

/// The host ports of what runs beside each other: the containers and the sidecars. On the host's network every port is one.
pub fn host_ports(pod: &PodFacts) -> Vec<HostPort<'_>> {
    fn or<'p>(word: Option<&'p String>, default: &'p str) -> &'p str {
        word.map(String::as_str).filter(|word| !word.is_empty()).unwrap_or(default)
    }
    let init = pod.spec.init_containers.iter().flatten();
    let sidecars = init.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let containers = pod.spec.containers.iter().chain(sidecars);
    let on_host = pod.spec.host_network == Some(true);
    let ports = containers.flat_map(|container| container.ports.iter().flatten()).map(|port| HostPort {
        port: port.host_port.filter(|&port| port > 0).unwrap_or(if on_host { port.container_port } else { 0 }),
        protocol: or(port.protocol.as_ref(), "TCP"),
        ip: or(port.host_ip.as_ref(), "0.0.0.0"),
    });
    ports.filter(|port| port.port > 0).collect()
}

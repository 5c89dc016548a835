//! Whether a pod fits on a node: every filter of the rules, both with the pods nominated to the node and without them.

use jiff::Timestamp;

use crate::affinity::affinity;
use crate::cluster::{Cluster, PodFacts};
use crate::filter_failure::FilterFailure;
use crate::occupancy::Occupancy;
use crate::selector::{cordon, is_untolerated, selects_node};
use crate::spread::spread;

/// The preemptor and the time of the decision.
#[derive(Clone)]
pub struct Preemptor {
    /// The priority as a preemptor; nominees of at least this priority compete with it.
    pub priority: i64,
    /// The pods to place; their own nominations do not compete.
    pub pods: Vec<usize>,
    /// docs/rules/kubernetes-pods.md#p20: whether it is a running pod that is resized.
    pub resize: bool,
    /// The time of the decision.
    pub now: Timestamp,
}

/// docs/rules/kubernetes-pods.md#p6: whether the pod fits, with the pods nominated to the node that have at least the preemptor's priority,
/// and without them.
pub fn fits(occupancy: &Occupancy<'_>, preemptor: &Preemptor, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let cluster = occupancy.cluster;
    let competes = |&(index, other): &(usize, &PodFacts)| {
        other.node.is_none()
            && other.nominated == Some(node)
            && other.priority >= preemptor.priority
            && !preemptor.pods.contains(&index)
    };
    let nominees: Vec<usize> = cluster.pods.iter().enumerate().filter(competes).map(|(index, _)| index).collect();
    if !nominees.is_empty() {
        let mut with_nominees = occupancy.clone();
        nominees.iter().for_each(|&nominee| with_nominees.put(nominee, node));
        passes(&with_nominees, preemptor, pod, node)?;
    }
    passes(occupancy, preemptor, pod, node)
}

/// docs/rules/kubernetes-pods.md#p8: whether the pod does not fit with all pods in place for a reason that no eviction resolves. As in
/// kube-scheduler, the first filter that fails decides.
pub fn is_unresolvable(occupancy: &Occupancy<'_>, preemptor: &Preemptor, pod: usize, node: usize) -> bool {
    fits(occupancy, preemptor, pod, node).is_err_and(|failure| !failure.is_resolvable())
}

/// All filters in the order of kube-scheduler. For a resized pod only resources and the node's setting are checked.
fn passes(occupancy: &Occupancy<'_>, preemptor: &Preemptor, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let cluster = occupancy.cluster;
    if preemptor.resize {
        return if cluster.nodes[node].resize_preemption_disabled {
            Err(FilterFailure::NodeSelection)
        } else {
            resources(occupancy, pod, node)
        };
    }
    node_accepts(cluster, pod, node)?;
    ports(occupancy, pod, node)?;
    resources(occupancy, pod, node)?;
    spread(occupancy, pod, node)?;
    affinity(occupancy, pod, node)
}

fn node_accepts(cluster: &Cluster<'_>, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let (spec, facts) = (&cluster.pods[pod].spec, &cluster.nodes[node]);
    let cordon = facts.cordoned.then(cordon);
    if let Some(taint) = facts.taints.iter().chain(&cordon).find(|taint| is_untolerated(taint, spec)) {
        return Err(FilterFailure::Taint { key: taint.key.clone() });
    }
    if selects_node(spec, &facts.name, &facts.labels) { Ok(()) } else { Err(FilterFailure::NodeSelection) }
}

/// Only requested resources are checked: a node may be short of others already.
fn resources(occupancy: &Occupancy<'_>, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let cluster = occupancy.cluster;
    let allocatable = |resource: &String| cluster.nodes[node].allocatable.get(resource).copied().unwrap_or(0);
    let used = |resource: &String| -> i128 {
        occupancy.on[node].iter().map(|&other| cluster.pods[other].allocated.get(resource).copied().unwrap_or(0)).sum()
    };
    let requested = || cluster.pods[pod].requests.iter().filter(|(_, amount)| **amount > 0);
    let is_beyond = |(resource, amount): &(&String, &i128)| *resource != "pods" && **amount > allocatable(resource);
    if let Some((resource, _)) = requested().find(is_beyond) {
        return Err(FilterFailure::BeyondNode { resource: resource.clone() });
    }
    match requested().find(|(resource, amount)| used(resource) + **amount > allocatable(resource)) {
        Some((resource, _)) => Err(FilterFailure::Resource { resource: resource.clone() }),
        None => Ok(()),
    }
}

/// docs/rules/kubernetes-pods.md#p9: the same port, the same protocol, and the same address or all addresses on either side.
fn ports(occupancy: &Occupancy<'_>, pod: usize, node: usize) -> Result<(), FilterFailure> {
    let cluster = occupancy.cluster;
    for wanted in host_ports(&cluster.pods[pod]) {
        for taken in occupancy.on[node].iter().flat_map(|&other| host_ports(&cluster.pods[other])) {
            let same_address = wanted.ip == taken.ip || wanted.ip == "0.0.0.0" || taken.ip == "0.0.0.0";
            if wanted.port == taken.port && wanted.protocol == taken.protocol && same_address {
                return Err(FilterFailure::HostPort { port: wanted.port });
            }
        }
    }
    Ok(())
}

/// A host port of a pod.
pub struct HostPort<'p> {
    port: i32,
    protocol: &'p str,
    ip: &'p str,
}

/// The host ports of the containers and the sidecars. On the host network every port is a host port.
pub fn host_ports(pod: &PodFacts) -> Vec<HostPort<'_>> {
    fn or<'p>(value: Option<&'p String>, default: &'p str) -> &'p str {
        value.map(String::as_str).filter(|value| !value.is_empty()).unwrap_or(default)
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

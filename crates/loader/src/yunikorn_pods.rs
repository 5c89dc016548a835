//! Reads what the labels, annotations and owners of pods mean to policy YuniKorn. The rules are in `docs/rules/yunikorn.md`.

use reprieve_api::{NamespacedName, Pod};
use reprieve_engine::Policy;

use crate::owners::Owners;
use crate::priority_classes::ALLOW_PREEMPTION;

/// The full path of the queue that a pod names.
pub fn queue_of(pod: &Pod) -> Option<String> {
    let labels = pod.metadata.labels.as_ref()?;
    let name = labels.get("queue").or_else(|| labels.get("yunikorn.apache.org/queue"))?.to_ascii_lowercase();
    Some(if name == "root" || name.starts_with("root.") { name } else { format!("root.{name}") })
}

/// The application of a pod: its namespace and the name in its label. Pods without the label share no application; in the code of YuniKorn,
/// those of one namespace do. The label says nothing about pods of other namespaces: docs/security.md.
pub fn application_of(pod: &Pod, policy: &Policy) -> Option<NamespacedName> {
    let labels = pod.metadata.labels.as_ref();
    let named =
        labels.and_then(|labels| labels.get("applicationId").or_else(|| labels.get("yunikorn.apache.org/app-id")));
    let namespace = NamespacedName::from_meta(&pod.metadata).namespace;
    let of_namespace = || follows_code(policy).then(|| format!("yunikorn-{namespace}-autogen"));
    let name = named.cloned().or_else(of_namespace)?;
    Some(NamespacedName { namespace, name })
}

/// The opt-out of the pod itself, if the policy lets pods opt out.
pub fn own_opt_out(pod: &Pod, policy: &Policy) -> Option<bool> {
    let counts = matches!(policy, Policy::YuniKorn(settings) if settings.pod_opt_out);
    let value = pod.metadata.annotations.as_ref()?.get(ALLOW_PREEMPTION).filter(|_| counts)?;
    Some(value == "false")
}

/// Whether the policy reads the group of a pod: not if gangs are evicted pod by pod, as by YuniKorn.
pub fn reads_groups(policy: &Policy) -> bool {
    !matches!(policy, Policy::YuniKorn(settings) if !settings.whole_gangs)
}

/// Whether a DaemonSet created the pod for one node.
pub fn is_daemon(pod: &Pod, owners: &Owners) -> bool {
    owners.is_of_daemon_set(pod)
        && (pod.node_name.as_deref().is_some_and(|node| !node.is_empty()) || node_by_affinity(pod).is_some())
}

/// The name of the node that a pending pod reserves because a DaemonSet created it for that node.
pub fn daemon_node<'p>(pod: &'p Pod, owners: &Owners, policy: &Policy) -> Option<&'p String> {
    let reserves = matches!(policy, Policy::YuniKorn(_)) && !follows_code(policy) && owners.is_of_daemon_set(pod);
    node_by_affinity(pod).filter(|_| reserves)
}

/// The name by which victims record a pending pod as their preemptor, if the policy reads it.
pub fn recorded_as(name: &NamespacedName, policy: &Policy) -> Option<String> {
    let reads = matches!(policy, Policy::YuniKorn(_)) && !follows_code(policy);
    reads.then(|| format!("Pod {name}"))
}

fn follows_code(policy: &Policy) -> bool {
    matches!(policy, Policy::YuniKorn(settings) if settings.follows_code)
}

fn node_by_affinity(pod: &Pod) -> Option<&String> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let fields = terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let names = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    names.flat_map(|field| field.values.iter().flatten()).next()
}

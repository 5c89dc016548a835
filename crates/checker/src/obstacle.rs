//! docs/rules/kubernetes-pods.md#p21, docs/rules/kubernetes-pods.md#p22, docs/rules/kubernetes-groups.md#g22,
//! docs/rules/kubernetes-groups.md#g23: pods that cannot be placed at all: those with scheduling gates, members of a group for another
//! scheduler, and those with requirements that are not evaluated.

use reprieve_api::NamespacedName;

use crate::cluster::{Cluster, PodFacts};

/// Whether a pending pod has a requirement that is not evaluated: a volume tied to nodes, a resource claim, a feature of the node. Decoding
/// has left out all other volumes and mounts.
pub fn is_unsupported(pod: &PodFacts) -> bool {
    let spec = &pod.spec;
    let mut containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let of_container = containers.any(|container| {
        let claims = container.resources.as_ref().and_then(|resources| resources.claims.as_ref());
        let restarts = container.restart_policy_rules.iter().flatten();
        claims.is_some_and(|claims| !claims.is_empty())
            || restarts.into_iter().any(|rule| rule.action == "RestartAllContainers")
            || !container.volume_mounts.is_empty()
    });
    let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    let user_namespace = spec.host_network == Some(true) && spec.host_users == Some(false);
    let pod_level = spec.resources.iter().flat_map(|resources| resources.requests.iter().chain(&resources.limits));
    let has_other_resource = pod_level
        .flatten()
        .any(|(name, _)| !matches!(name.as_str(), "cpu" | "memory") && !name.starts_with("hugepages-"));
    of_container || claims || user_namespace || has_other_resource || !spec.volumes.is_empty()
}

/// Whether the group of a pending pod is refused, and the pod with it: the group has a requirement that is not evaluated, or too few
/// members remain.
pub fn is_gang_refused(cluster: &Cluster<'_>, pod: &PodFacts) -> bool {
    let Some(name) = pod.group.as_ref().filter(|_| pod.node.is_none() && !pod.of_other_scheduler) else { return false };
    // docs/rules/kubernetes-groups.md#g26
    let Some(group) = cluster.groups.get(name) else { return true };
    let members = || cluster.pods.iter().filter(|member| member.group.as_ref() == Some(name));
    let is_left_out = |member: &&PodFacts| member.node.is_none() && (member.gated || member.of_other_scheduler);
    let placed = || members().filter(|member| member.node.is_none() && !member.terminating && !is_left_out(member));
    let counted = members().filter(|member| member.node.is_some() && !member.terminating).count() + placed().count();
    let too_few = counted < group.min_count.max(1) && members().any(|member| is_left_out(&member));
    too_few || placed().any(is_unsupported) || is_unsupported_group(cluster, name)
}

/// Whether the PodGroup has a field that is not evaluated.
pub fn is_unsupported_group(cluster: &Cluster<'_>, name: &NamespacedName) -> bool {
    let named = cluster.objects.pod_groups.iter().map(|group| &*group.object);
    let mut named = named.filter(|group| NamespacedName::from_meta(&group.metadata) == *name).map(|group| &group.spec);
    named.any(|spec| {
        let parent = spec.parent_composite_pod_group_name.as_ref().is_some_and(|name| !name.is_empty());
        let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
        let constraints = spec.scheduling_constraints.as_ref().and_then(|constraints| constraints.topology.as_ref());
        parent || claims || constraints.is_some_and(|keys| keys.len() > 1)
    })
}

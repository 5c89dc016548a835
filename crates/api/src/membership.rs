//! The pod group of a pod, in every version of the API.

use crate::{NamespacedName, Pod};

/// Returns the group of a pod: the one that it names, or the gang that its owners form.
pub fn group_of(pod: &Pod) -> Option<NamespacedName> {
    named_group_of(pod).or_else(|| owner_gang_of(pod))
}

/// Returns the gang that the owners of a pod form.
pub fn owner_gang_of(pod: &Pod) -> Option<NamespacedName> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    pod.owner_gang.as_ref().map(|gang| NamespacedName::new(namespace, gang))
}

/// Returns the group that a pod names: a PodGroup, or the group of a Workload (Kubernetes 1.35).
pub fn named_group_of(pod: &Pod) -> Option<NamespacedName> {
    let spec = pod.spec.as_ref()?;
    let of_api = spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.clone());
    let of_workload = || {
        let reference = spec.workload_ref.as_ref()?;
        Some(workload_group(&reference.name, &reference.pod_group, reference.pod_group_replica_key.as_deref()))
    };
    let name = of_api.or_else(of_workload)?;
    Some(NamespacedName::new(pod.metadata.namespace.as_deref().unwrap_or_default(), &name))
}

/// Returns the name of a Workload's pod group: `WORKLOAD/GROUP`, followed by `/KEY` for a replica. No name of an object contains `/`, so that
/// neither two such groups nor such a group and a PodGroup have the same name.
pub fn workload_group(workload: &str, group: &str, replica: Option<&str>) -> String {
    match replica.filter(|replica| !replica.is_empty()) {
        Some(replica) => format!("{workload}/{group}/{replica}"),
        None => format!("{workload}/{group}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn group(spec: Value) -> Option<String> {
        let pod = json!({"metadata": {"name": "p", "namespace": "team"}, "spec": spec});
        group_of(&serde_json::from_value(pod).expect("a pod")).map(|name| name.to_string())
    }

    #[test]
    fn groups_of_different_workloads_are_different() {
        let of = |workload: &str, group_name: &str, key: Option<&str>| {
            group(json!({"workloadRef": {"name": workload, "podGroup": group_name, "podGroupReplicaKey": key}}))
        };
        assert_eq!(of("a", "b-c", None).as_deref(), Some("team/a/b-c"));
        let all =
            [("a", "b-c", None), ("a-b", "c", None), ("a", "b", Some("c")), ("a", "b", None), ("a", "b", Some("c-d"))];
        let names = all.map(|(workload, group, key)| of(workload, group, key));
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len(), "{names:?}");
        assert_eq!(group(json!({"schedulingGroup": {"podGroupName": "a-b-c"}})).as_deref(), Some("team/a-b-c"));
        assert_eq!(group(json!({})), None);
    }
}

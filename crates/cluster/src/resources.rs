//! What the profiles of a configuration read from the cluster.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::Kind;
use reprieve_engine::Policy;
use reprieve_loader::QueueSettings;
use reprieve_loader::policy::reads;

use crate::watch::WatchScope;

/// The kinds that a scheduler with this policy reads.
pub fn kinds(policy: &Policy) -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(move |kind| reads(policy, *kind))
}

/// What schedulers with these policies and queues read, one scope for each kind. Profiles with different scopes of a kind read all its
/// objects; the loader leaves out those that a profile does not mean.
pub fn scopes(profiles: &[(Policy, QueueSettings)]) -> Vec<WatchScope> {
    let mut scopes: BTreeMap<Kind, BTreeSet<WatchScope>> = BTreeMap::new();
    for (policy, queues) in profiles {
        for kind in kinds(policy) {
            scopes.entry(kind).or_default().insert(scope(kind, queues));
        }
    }
    let single = |(kind, scopes): (Kind, BTreeSet<WatchScope>)| match scopes.into_iter().collect::<Vec<_>>().as_slice()
    {
        [scope] => scope.clone(),
        _ => WatchScope::all(kind),
    };
    scopes.into_iter().map(single).collect()
}

/// What a scheduler with these queues reads of a kind. The only ConfigMap that is read is the one with the queues of policy YuniKorn.
pub fn scope(kind: Kind, queues: &QueueSettings) -> WatchScope {
    match (kind, queues.quota_namespace()) {
        (Kind::ConfigMap, _) => WatchScope::object(kind, &queues.config_map()),
        (Kind::ElasticQuota, Some(namespace)) => WatchScope::in_namespace(kind, namespace),
        _ => WatchScope::all(kind),
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::Profile;
    use serde_json::json;

    use super::*;

    fn profile(policy: &str, queues: serde_json::Value) -> (Policy, QueueSettings) {
        let args = serde_json::Map::from_iter([("queues".to_owned(), queues)]);
        let profile = Profile { args, ..Profile::of_policy(policy) };
        let policy = reprieve_loader::policy::policy_of_profile(&profile).expect("the profile is valid");
        (policy, QueueSettings::of_profile(&profile).expect("the profile is valid"))
    }

    #[test]
    fn groups_are_read_under_every_policy_that_chooses_pods() {
        for (policy, is_read) in [("Kubernetes", true), ("YuniKorn", true), ("Koordinator", true), ("Kueue", false)] {
            let policy =
                reprieve_loader::policy::policy_of_profile(&Profile::of_policy(policy)).expect("it is a policy");
            for kind in [Kind::PodGroup, Kind::Workload] {
                assert_eq!(kinds(&policy).any(|read| read == kind), is_read, "{policy:?} {kind:?}");
            }
        }
    }

    #[test]
    fn only_the_named_config_map_and_quotas_are_read() {
        let scope_of = |profiles: &[(Policy, QueueSettings)], kind: Kind| {
            let scopes = scopes(profiles);
            let scope = scopes.iter().find(|scope| scope.kind == kind).expect("the kind is read").clone();
            (scope.place(), scope.field_selector())
        };
        let yunikorn = profile("YuniKorn", json!({"namespace": "a", "name": "b"}));
        let place = (" in namespace a".to_owned(), Some("metadata.name=b".to_owned()));
        assert_eq!(scope_of(std::slice::from_ref(&yunikorn), Kind::ConfigMap), place);
        assert_eq!(scope_of(&[yunikorn], Kind::Pod), (String::new(), None));
        let [one, other] = ["a", "b"].map(|namespace| profile("Koordinator", json!({"namespace": namespace})));
        assert_eq!(scope_of(std::slice::from_ref(&one), Kind::ElasticQuota), (" in namespace a".to_owned(), None));
        assert_eq!(scope_of(&[one, other], Kind::ElasticQuota), (String::new(), None));
    }
}

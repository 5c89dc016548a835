//! Creates Kueue's quota objects. `to_kueue` and `simulator` call these functions.

use std::collections::BTreeMap;

use reprieve_api::kueue::{
    ClusterQueue, ClusterQueueSpec, Cohort, CohortSpec, FlavorQuotas, FlavorSpec, LocalQueue, LocalQueueSpec,
    PreemptionSpec, ResourceFlavor, ResourceGroupSpec, ResourceQuota,
};
use reprieve_api::quantity::format;

use crate::synthetic::named;

/// The name of the root Cohort.
pub const ROOT: &str = "cluster";

/// Returns a flavor of the nodes with these labels.
pub fn flavor(name: &str, node_labels: BTreeMap<String, String>) -> ResourceFlavor {
    let spec = FlavorSpec { node_labels, ..FlavorSpec::default() };
    ResourceFlavor { metadata: named(name, None), spec, ..ResourceFlavor::default() }
}

/// Returns the quota of one flavor. `quota` returns the nominal quota of a resource and its borrowing limit, `None` if there is no limit.
pub fn flavor_quotas(
    flavor: &str,
    resources: impl IntoIterator<Item = impl AsRef<str>>,
    quota: impl Fn(&str) -> (i64, Option<i64>),
) -> FlavorQuotas {
    let resource_quota = |resource: &str| {
        let (nominal, limit) = quota(resource);
        ResourceQuota {
            name: resource.to_owned(),
            nominal_quota: format(resource, nominal).into(),
            borrowing_limit: limit.map(|limit| format(resource, limit).into()),
            ..ResourceQuota::default()
        }
    };
    let resources = resources.into_iter().map(|resource| resource_quota(resource.as_ref())).collect();
    FlavorQuotas { name: flavor.to_owned(), resources }
}

/// Returns one resource group with these flavors, which all have the same resources.
pub fn resource_groups(flavors: Vec<FlavorQuotas>) -> Vec<ResourceGroupSpec> {
    let covered_resources = flavors[0].resources.iter().map(|quota| quota.name.clone()).collect();
    vec![ResourceGroupSpec { covered_resources, flavors }]
}

/// Returns a Cohort.
pub fn cohort(name: &str, parent: Option<&str>, resource_groups: Vec<ResourceGroupSpec>) -> Cohort {
    let parent_name = parent.map(str::to_owned);
    let spec = CohortSpec { parent_name, resource_groups, ..CohortSpec::default() };
    Cohort { metadata: named(name, None), spec, ..Cohort::default() }
}

/// Returns a ClusterQueue that reclaims its quota from the Cohort and preempts its own workloads of lower priority.
pub fn cluster_queue(name: &str, cohort: &str, resource_groups: Vec<ResourceGroupSpec>) -> ClusterQueue {
    let preemption = PreemptionSpec {
        within_cluster_queue: Some("LowerPriority".to_owned()),
        reclaim_within_cohort: Some("Any".to_owned()),
        ..PreemptionSpec::default()
    };
    let cohort_name = Some(cohort.to_owned());
    let spec = ClusterQueueSpec { cohort_name, resource_groups, preemption, ..ClusterQueueSpec::default() };
    ClusterQueue { metadata: named(name, None), spec, ..ClusterQueue::default() }
}

/// Returns a LocalQueue with the name of its ClusterQueue.
pub fn local_queue(name: &str, namespace: &str) -> LocalQueue {
    let spec = LocalQueueSpec { cluster_queue: name.to_owned(), ..LocalQueueSpec::default() };
    LocalQueue { metadata: named(name, Some(namespace)), spec, ..LocalQueue::default() }
}

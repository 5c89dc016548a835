//! Kueue's queues and cohorts for quota that was written in other words: one flavor, amounts as numbers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use reprieve_api::kueue::{
    ClusterQueue, ClusterQueueSpec, Cohort, CohortSpec, FlavorQuotas, PreemptionSpec, ResourceFlavor,
    ResourceGroupSpec, ResourceQuota,
};
use reprieve_api::quantity::written;

/// The cohort above all.
pub const ROOT: &str = "cluster";
/// The flavor of all quota.
pub const FLAVOR: &str = "default";

/// That flavor.
pub fn flavor() -> ResourceFlavor {
    ResourceFlavor { metadata: named(FLAVOR), ..ResourceFlavor::default() }
}

/// Quota of these resources: what it has of each of its own, and how much it may borrow; `None` is no limit.
pub fn quota<'r>(
    resources: impl IntoIterator<Item = &'r String>,
    quota: impl Fn(&String) -> (i64, Option<i64>),
) -> Vec<ResourceGroupSpec> {
    let of = |resource: &'r String| {
        let (nominal, limit) = quota(resource);
        ResourceQuota {
            name: resource.clone(),
            nominal_quota: written(resource, nominal).into(),
            borrowing_limit: limit.map(|limit| written(resource, limit).into()),
            ..ResourceQuota::default()
        }
    };
    let resources: Vec<ResourceQuota> = resources.into_iter().map(of).collect();
    let covered_resources = resources.iter().map(|quota| quota.name.clone()).collect();
    vec![ResourceGroupSpec { covered_resources, flavors: vec![FlavorQuotas { name: FLAVOR.to_owned(), resources }] }]
}

/// A cohort below another, or below none.
pub fn cohort(name: &str, parent: Option<&str>, resource_groups: Vec<ResourceGroupSpec>) -> Cohort {
    let parent_name = parent.map(str::to_owned);
    let spec = CohortSpec { parent_name, resource_groups, ..CohortSpec::default() };
    Cohort { metadata: named(name), spec, ..Cohort::default() }
}

/// A queue of a cohort that preempts for what it has lent, and the lower of its own.
pub fn cluster_queue(name: &str, cohort: &str, resource_groups: Vec<ResourceGroupSpec>) -> ClusterQueue {
    let preemption = PreemptionSpec {
        within_cluster_queue: Some("LowerPriority".to_owned()),
        reclaim_within_cohort: Some("Any".to_owned()),
        ..PreemptionSpec::default()
    };
    let cohort_name = Some(cohort.to_owned());
    let spec = ClusterQueueSpec { cohort_name, resource_groups, preemption, ..ClusterQueueSpec::default() };
    ClusterQueue { metadata: named(name), spec, ..ClusterQueue::default() }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

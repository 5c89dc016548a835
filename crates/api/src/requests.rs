//! Default requests: a limit without a request is also the request.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Sets missing requests to the limits.
pub fn fill_requests(resources: &mut ResourceRequirements) {
    fill(&mut resources.requests, resources.limits.as_ref());
}

/// Adds the quantities of resources that `list` lacks.
pub fn fill(list: &mut Option<BTreeMap<String, Quantity>>, from: Option<&BTreeMap<String, Quantity>>) {
    for (resource, quantity) in from.into_iter().flatten() {
        list.get_or_insert_default().entry(resource.clone()).or_insert_with(|| quantity.clone());
    }
}

//! The LimitRanges of one namespace: default requests and limits of containers, and bounds that pods must not exceed.

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use reprieve_api::quantity::format;
use reprieve_api::requests::fill;
use reprieve_api::{InputError, Pod, PodSpec};

use super::{Quantities, containers_of};
use crate::{Amounts, requests};

/// All LimitRanges of a namespace combined: the first default, the lowest max and the highest min of each resource.
#[derive(Default)]
pub(super) struct LimitRanges {
    container: MergedItem,
    pod: MergedItem,
}

#[derive(Default)]
struct MergedItem {
    default: Option<Quantities>,
    default_request: Option<Quantities>,
    max: Amounts,
    min: Amounts,
}

impl LimitRanges {
    /// Adds a LimitRange. The caller adds them in the order of their names.
    pub fn add(&mut self, object: &LimitRange) -> Result<(), InputError> {
        for (index, item) in object.spec.iter().flat_map(|spec| &spec.limits).enumerate() {
            let item = completed(item);
            let own = match item.type_.as_str() {
                "Container" => &mut self.container,
                "Pod" => &mut self.pod,
                _ => continue,
            };
            let amounts =
                |list: &Option<Quantities>, field: &str| amounts(list, &format!("spec.limits[{index}].{field}"));
            for (resource, amount) in amounts(&item.max, "max")? {
                own.max.entry(resource).and_modify(|max| *max = amount.min(*max)).or_insert(amount);
            }
            for (resource, amount) in amounts(&item.min, "min")? {
                own.min.entry(resource).and_modify(|min| *min = amount.max(*min)).or_insert(amount);
            }
            amounts(&item.default, "default")?;
            amounts(&item.default_request, "defaultRequest")?;
            fill(&mut own.default, item.default.as_ref());
            fill(&mut own.default_request, item.default_request.as_ref());
        }
        Ok(())
    }

    /// Sets the default limits and requests of each container.
    pub fn fill_containers(&self, spec: &mut PodSpec) {
        if self.container.has_no_defaults() {
            return;
        }
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
            self.container.fill(container.resources.get_or_insert_default());
        }
    }

    /// Sets the defaults of type `Pod` for a pod with pod-level resources, as only Kueue does.
    pub fn fill_pod(&self, spec: &mut PodSpec) {
        if let Some(resources) = &mut spec.resources {
            self.pod.fill(resources);
        }
    }

    /// Adds a text for each amount of a pod that is out of bounds. Each text begins with the field.
    pub fn violations(&self, spec: &PodSpec, violations: &mut Vec<String>) -> Result<(), InputError> {
        if self.container.has_bounds() {
            for (path, container) in containers_of(spec) {
                let Some(resources) = &container.resources else { continue };
                let (requests, limits) = amounts_of(resources, &format!("{path}.resources"))?;
                let (mut least, mut most) = (limits.clone(), limits);
                for (resource, amount) in requests {
                    most.entry(resource.clone()).and_modify(|most| *most = amount.max(*most)).or_insert(amount);
                    least.entry(resource).and_modify(|least| *least = amount.min(*least)).or_insert(amount);
                }
                self.container.violations(&path, "container", &least, &most, violations);
            }
        }
        if self.pod.has_bounds() {
            let total = requests::requests(&Pod::new(ObjectMeta::default(), spec.clone()))?;
            self.pod.violations("spec", "pod", &total, &total, violations);
        }
        Ok(())
    }
}

impl MergedItem {
    fn has_no_defaults(&self) -> bool {
        self.default.is_none() && self.default_request.is_none()
    }

    fn has_bounds(&self) -> bool {
        !self.max.is_empty() || !self.min.is_empty()
    }

    fn fill(&self, resources: &mut ResourceRequirements) {
        fill(&mut resources.limits, self.default.as_ref());
        fill(&mut resources.requests, self.default_request.as_ref());
    }

    fn violations(&self, path: &str, item_type: &str, least: &Amounts, most: &Amounts, violations: &mut Vec<String>) {
        let mut compare = |bounds: &Amounts, amounts: &Amounts, above: bool| {
            for (resource, bound) in bounds {
                let Some(amount) = amounts.get(resource) else { continue };
                if if above { amount > bound } else { amount < bound } {
                    let (amount, bound) = (format(resource, *amount), format(resource, *bound));
                    let relation = if above { "above the max" } else { "below the min" };
                    violations.push(format!(
                        "{path}: {amount} {resource} is {relation} of {bound} for a {item_type}; change it or the LimitRange"
                    ));
                }
            }
        };
        compare(&self.max, most, true);
        compare(&self.min, least, false);
    }
}

/// Returns requests and limits as numbers; errors name `path`.
pub(super) fn amounts_of(resources: &ResourceRequirements, path: &str) -> Result<(Amounts, Amounts), InputError> {
    let requests = amounts(&resources.requests, &format!("{path}.requests"))?;
    Ok((requests, amounts(&resources.limits, &format!("{path}.limits"))?))
}

fn amounts(list: &Option<Quantities>, path: &str) -> Result<Amounts, InputError> {
    list.as_ref().map_or_else(|| Ok(Amounts::new()), |list| requests::amounts(list, path))
}

/// Completes an item as the API server does: for containers, max is the default limit, and the default limit and min are default requests.
fn completed(item: &LimitRangeItem) -> LimitRangeItem {
    let mut item = item.clone();
    if item.type_ == "Container" {
        fill(&mut item.default, item.max.as_ref());
        fill(&mut item.default_request, item.default.as_ref());
        fill(&mut item.default_request, item.min.as_ref());
    }
    item
}

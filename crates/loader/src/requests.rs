//! Computes the requests of a pod as Kubernetes does: the sum over containers and sidecars, or the largest init container with the sidecars
//! started before it if that is more; pod-level requests replace those of containers; overhead is added. For a pod that is being
//! resized, the largest of desired, allocated and actual requests counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use reprieve_api::pod::ContainerStatus;
use reprieve_api::quantity::QuantityError;
use reprieve_api::{Container, InputError, Pod, PodSpec, PodStatus, ProblemCode, quantity};

/// The amount of each resource: milli-CPU for cpu, whole units for all others.
pub type Amounts = BTreeMap<String, i64>;

/// The amount of each resource in billionths. Each quantity is rounded as by the API server; sums are exact and rounded at the end.
type Exact = BTreeMap<String, i128>;

type Quantities = BTreeMap<String, Quantity>;

/// Returns the requests of a pod.
pub fn requests(pod: &Pod) -> Result<Amounts, InputError> {
    let empty = (PodSpec::default(), PodStatus::default());
    let spec = pod.spec.as_deref().unwrap_or(&empty.0);
    let status = pod.status.as_ref().unwrap_or(&empty.1);
    let infeasible = is_resize_infeasible(status);
    let reported = status.resources.as_ref();
    let read = |list: &Quantities, path: &str| exact(list, |resource| format!("{path}.{resource}"));
    let allocated = status.allocated_resources.as_ref();
    let allocated = allocated.map(|list| read(list, "status.allocatedResources")).transpose()?;
    let actual = reported.and_then(|resources| resources.requests.as_ref());
    let actual = actual.map(|list| read(list, "status.resources.requests")).transpose()?;
    let mut total = containers_total(spec, status, View::Desired)?;
    if pod.node_name.is_some() {
        if infeasible {
            total.clear();
        }
        if let (Some(allocated), Some(actual)) = (&allocated, &actual) {
            raise(&mut total, allocated.clone());
            raise(&mut total, actual.clone());
        } else if infeasible || reports_resources(status) {
            raise(&mut total, containers_total(spec, status, View::Allocated { infeasible })?);
            raise(&mut total, containers_total(spec, status, View::Actual { infeasible })?);
        }
    }
    let pod_level = pod_level_requests(spec);
    if !pod_level.is_empty() {
        let mut effective = read(&pod_level, "spec.resources.requests")?;
        if reported.is_some() {
            if infeasible {
                effective.clear();
            }
            raise(&mut effective, actual.unwrap_or_default());
            raise(&mut effective, allocated.unwrap_or_default());
        }
        total.extend(effective.into_iter().filter(|(resource, _)| is_pod_level(resource)));
    }
    if let Some(overhead) = &spec.overhead {
        add(&mut total, &read(overhead, "spec.overhead")?);
    }
    rounded(total, "spec.containers")
}

/// Whether the requests of the pod depend on its status, because it is or was resized.
pub fn requests_depend_on_status(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| {
        let pod_level = status.resources.is_some() || status.allocated_resources.is_some();
        pod_level || reports_resources(status) || resize_pending(status).is_some()
    })
}

fn container_statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.container_statuses.iter().chain(&status.init_container_statuses).flatten()
}

/// Whether the status of any container has allocated or actual resources.
fn reports_resources(status: &PodStatus) -> bool {
    container_statuses(status).any(|status| status.allocated_resources.is_some() || status.resources.is_some())
}

/// Returns the amounts of a resource list; errors name `path`.
pub fn amounts(list: &Quantities, path: &str) -> Result<Amounts, InputError> {
    rounded(exact(list, |resource| format!("{path}.{resource}"))?, path)
}

/// Returns the amount of a quantity in a queue's configuration, which may be a number or text.
pub(crate) fn amount(resource: &str, value: &Value) -> Result<i64, InputError> {
    let text = text_of(value);
    quantity_amount(resource, &text).map_err(|error| invalid(&text, error))
}

/// Returns the amount of a limit. A larger limit than any amount is the same as the largest amount.
pub(crate) fn limit(resource: &str, value: &Value) -> Result<i64, InputError> {
    let text = text_of(value);
    match quantity_amount(resource, &text) {
        Err(QuantityError::Overflow) => Ok(quantity::MAX_AMOUNT),
        amount => amount.map_err(|error| invalid(&text, error)),
    }
}

fn quantity_amount(resource: &str, text: &str) -> Result<i64, QuantityError> {
    quantity::parse_nano(text).and_then(|exact| in_units(resource, exact))
}

/// Returns the error about the text of a quantity.
pub(crate) fn invalid(text: &str, error: QuantityError) -> InputError {
    InputError::new(format!("{text:?} {error}")).code(code_of(error))
}

fn code_of(error: QuantityError) -> ProblemCode {
    match error {
        QuantityError::Overflow => ProblemCode::TooLarge,
        QuantityError::Syntax | QuantityError::Negative => ProblemCode::InvalidValue,
    }
}

/// Returns the text of a scalar.
pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn in_units(resource: &str, exact: i128) -> Result<i64, QuantityError> {
    if resource == "cpu" { quantity::nano_to_milli(exact) } else { quantity::nano_to_units(exact) }
}

/// Which requests of a container to sum: those of its spec, or those that the kubelet reports as allocated or actual.
#[derive(Clone, Copy)]
enum View {
    Desired,
    Allocated { infeasible: bool },
    Actual { infeasible: bool },
}

fn containers_total(spec: &PodSpec, status: &PodStatus, view: View) -> Result<Exact, InputError> {
    let mut total = Exact::new();
    for (index, container) in spec.containers.iter().enumerate() {
        add(&mut total, &container_requests(container, status, view, || format!("spec.containers[{index}]"))?);
    }
    let mut sidecars = Exact::new();
    let mut initializing = Exact::new();
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        let mut own = container_requests(container, status, view, || format!("spec.initContainers[{index}]"))?;
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        raise(&mut initializing, own);
    }
    raise(&mut total, initializing);
    Ok(total)
}

fn container_requests(
    container: &Container,
    status: &PodStatus,
    view: View,
    path: impl Fn() -> String,
) -> Result<Exact, InputError> {
    let desired = || {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let field = |resource: &str| {
            let list = if is_from_limit(container, resource) { "limits" } else { "requests" };
            format!("{}.resources.{list}.{resource}", path())
        };
        requests.map_or(Ok(Exact::new()), |list| exact(list, field))
    };
    let infeasible = match view {
        View::Desired => return desired(),
        View::Allocated { infeasible } | View::Actual { infeasible } => infeasible,
    };
    if let Some(own) = container_statuses(status).find(|status| status.name == container.name) {
        let actual = own.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let reported = match view {
            View::Actual { .. } => actual.or(own.allocated_resources.as_ref()),
            View::Desired | View::Allocated { .. } => own.allocated_resources.as_ref(),
        };
        if let Some(reported) = reported {
            return exact(reported, |resource| format!("status of container {}.{resource}", container.name));
        }
    }
    if infeasible { Ok(Exact::new()) } else { desired() }
}

/// Whether a request was copied from the limit when the pod was read. An error then names the limit, because the file has no request.
fn is_from_limit(container: &Container, resource: &str) -> bool {
    let Some(resources) = &container.resources else { return false };
    let quantity = |list: &Option<Quantities>| list.as_ref().and_then(|list| list.get(resource)).cloned();
    let limit = quantity(&resources.limits);
    limit.is_some() && limit == quantity(&resources.requests)
}

/// Parses quantities; `field` returns the field path of a resource for errors.
fn exact(list: &Quantities, field: impl Fn(&str) -> String) -> Result<Exact, InputError> {
    let amount = |(resource, quantity): (&String, &Quantity)| {
        let text = quantity.0.as_str();
        let parsed = quantity::parse_nano(text);
        let amount = parsed.map_err(|error| invalid(text, error).field(field(resource)))?;
        Ok((resource.clone(), quantity::round_to_milli(amount)))
    };
    list.iter().map(amount).collect()
}

fn rounded(exact: Exact, path: &str) -> Result<Amounts, InputError> {
    let amount = |(resource, amount): (String, i128)| {
        let too_large = |error| {
            InputError::new(format!("the sum {error}")).field(format!("{path}: {resource}")).code(code_of(error))
        };
        let rounded = in_units(&resource, amount).map_err(too_large)?;
        Ok((resource, rounded))
    };
    exact.into_iter().map(amount).collect()
}

fn add(total: &mut Exact, more: &Exact) {
    for (resource, amount) in more {
        *total.entry(resource.clone()).or_default() += amount; // each amount is below 2^93, so the sum cannot overflow
    }
}

fn raise(total: &mut Exact, to: Exact) {
    for (resource, amount) in to {
        let known = total.entry(resource).or_default();
        *known = amount.max(*known);
    }
}

/// Whether the resource is allowed in pod-level requests.
pub fn is_pod_level(resource: &str) -> bool {
    resource == "cpu" || resource == "memory" || is_huge_pages(resource)
}

pub(crate) fn is_huge_pages(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

fn is_resize_infeasible(status: &PodStatus) -> bool {
    resize_pending(status).is_some_and(|reason| reason == "Infeasible")
}

/// Whether a resize of the pod is deferred until its node has room.
pub fn is_resize_deferred(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(resize_pending).is_some_and(|reason| reason == "Deferred")
}

fn resize_pending(status: &PodStatus) -> Option<&str> {
    let pending = status.conditions.iter().flatten().find(|condition| condition.type_ == "PodResizePending")?;
    Some(pending.reason.as_deref().unwrap_or_default())
}

/// Returns the pod-level requests. A pod-level limit is a request if neither the pod nor, except for huge pages, a container requests the
/// resource.
pub(crate) fn pod_level_requests(spec: &PodSpec) -> Cow<'_, Quantities> {
    static NONE: Quantities = Quantities::new();
    let resources = spec.resources.as_ref();
    let own = resources.and_then(|resources| resources.requests.as_ref()).unwrap_or(&NONE);
    let limits = resources.and_then(|resources| resources.limits.as_ref()).unwrap_or(&NONE);
    let containers = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let requests = |container: &Container, resource: &String| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        requests.is_some_and(|requests| requests.contains_key(resource))
    };
    let counts = |resource: &String| {
        let by_container = !is_huge_pages(resource) && containers().any(|container| requests(container, resource));
        is_pod_level(resource) && !own.contains_key(resource) && !by_container
    };
    let mut all = Cow::Borrowed(own);
    for (resource, limit) in limits.iter().filter(|(resource, _)| counts(resource)) {
        all.to_mut().insert(resource.clone(), limit.clone());
    }
    all
}

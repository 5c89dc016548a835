//! Quantities and requests in exact arithmetic: each in billionths, rounded up to thousandths as the API server stores it, then summed, and
//! rounded up again.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use reprieve_api::pod::ContainerStatus;
use reprieve_api::{Container, Pod};

/// Amounts by resource. Exact amounts are in billionths; rounded ones in thousandths of a cpu and in whole units of other resources.
pub type Amounts = BTreeMap<String, i128>;

const BILLION: i128 = 1_000_000_000;
/// Kubernetes stores no quantity above 2^63 - 1.
const MAX_QUANTITY: i128 = (i64::MAX as i128) * BILLION;

/// The rounded requests of a pending or resized pod by its spec, with one unit of `pods`. `Err` names the invalid field.
pub fn requested(pod: &Pod) -> Result<Amounts, String> {
    let total = containers_total(pod, &|container, _| requests_of(container))?;
    pod_request(pod, total, pod_level_requests(pod)?)
}

/// The rounded allocation of a bound pod. During a resize it is the maximum of the desired, the allocated and the actual resources; an
/// infeasible resize counts nothing.
pub fn allocated(pod: &Pod) -> Result<Amounts, String> {
    let status = pod.status.clone().unwrap_or_default();
    let infeasible =
        status.conditions.iter().flatten().any(|condition| {
            condition.type_ == "PodResizePending" && condition.reason.as_deref() == Some("Infeasible")
        });
    let desired = |container: &Container| if infeasible { Ok(Amounts::new()) } else { requests_of(container) };
    let allocated = |container: &Container, status: Option<&ContainerStatus>| match status
        .and_then(|status| status.allocated_resources.as_ref())
    {
        Some(list) => exact(Some(list), "status.containerStatuses.allocatedResources"),
        None => desired(container),
    };
    let actual = |container: &Container, status: Option<&ContainerStatus>| match status
        .and_then(|status| status.resources.as_ref()?.requests.as_ref())
    {
        Some(list) => exact(Some(list), "status.containerStatuses.resources.requests"),
        None => allocated(container, status),
    };
    let allocated_pod_level = status.allocated_resources.as_ref();
    let actual_pod_level = status.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let mut total = containers_total(pod, &|container, _| desired(container))?;
    if allocated_pod_level.is_some() && actual_pod_level.is_some() {
        raise(&mut total, &exact(allocated_pod_level, "status.allocatedResources")?);
        raise(&mut total, &exact(actual_pod_level, "status.resources.requests")?);
    } else {
        raise(&mut total, &containers_total(pod, &allocated)?);
        raise(&mut total, &containers_total(pod, &actual)?);
    }
    let mut pod_level = pod_level_requests(pod)?;
    if !pod_level.is_empty() && status.resources.is_some() {
        if infeasible {
            pod_level.clear();
        }
        raise(&mut pod_level, &exact(allocated_pod_level, "status.allocatedResources")?);
        raise(&mut pod_level, &exact(actual_pod_level, "status.resources.requests")?);
    }
    pod_request(pod, total, pod_level)
}

/// The rounded amounts of a list, such as the allocatable resources of a node.
pub fn allocatable(list: Option<&BTreeMap<String, Quantity>>, field: &str) -> Result<Amounts, String> {
    Ok(rounded(&exact(list, field)?))
}

type OfContainer<'a> = &'a dyn Fn(&Container, Option<&ContainerStatus>) -> Result<Amounts, String>;

/// The sum over the containers, or the peak during initialization if that is more: init containers run one by one beside the sidecars
/// started earlier.
fn containers_total(pod: &Pod, of_container: OfContainer<'_>) -> Result<Amounts, String> {
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let statuses: Vec<&ContainerStatus> =
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten()).collect();
    let amounts_of = |container: &Container| {
        of_container(container, statuses.iter().find(|status| status.name == container.name).copied())
    };
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &amounts_of(container)?);
    }
    let mut sidecars = Amounts::new();
    let mut before = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let amounts = amounts_of(container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &amounts);
            add(&mut sidecars, &amounts);
            raise(&mut before, &sidecars);
        } else {
            let mut at_once = sidecars.clone();
            add(&mut at_once, &amounts);
            raise(&mut before, &at_once);
        }
    }
    raise(&mut total, &before);
    Ok(total)
}

/// The pod-level requests. A pod-level limit counts as the request if there is none and, except for huge pages, no container requests the
/// resource.
fn pod_level_requests(pod: &Pod) -> Result<Amounts, String> {
    let Some(spec) = &pod.spec else { return Ok(Amounts::new()) };
    let resources = spec.resources.as_ref();
    let is_counted =
        |resource: &String| matches!(resource.as_str(), "cpu" | "memory") || resource.starts_with("hugepages-");
    let counted = |list: &Option<BTreeMap<String, Quantity>>| -> BTreeMap<String, Quantity> {
        list.iter()
            .flatten()
            .filter(|(resource, _)| is_counted(resource))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    };
    let mut pod_level =
        exact(Some(&counted(&resources.and_then(|own| own.requests.clone()))), "spec.resources.requests")?;
    let mut of_containers = Amounts::new();
    for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
        of_containers.extend(requests_of(container)?);
    }
    let mut limits = counted(&resources.and_then(|own| own.limits.clone()));
    limits.retain(|resource, _| !pod_level.contains_key(resource));
    limits.retain(|resource, _| resource.starts_with("hugepages-") || !of_containers.contains_key(resource));
    pod_level.extend(exact(Some(&limits), "spec.resources.limits")?);
    Ok(pod_level)
}

/// Pod-level requests for cpu, memory and huge pages replace the sum over containers. Overhead is added.
fn pod_request(pod: &Pod, mut total: Amounts, pod_level: Amounts) -> Result<Amounts, String> {
    for (resource, amount) in pod_level {
        if resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-") {
            total.insert(resource, amount);
        }
    }
    let overhead = pod.spec.as_ref().and_then(|spec| spec.overhead.as_ref());
    add(&mut total, &exact(overhead, "spec.overhead")?);
    let mut request = rounded(&total);
    request.insert("pods".to_owned(), 1);
    Ok(request)
}

fn requests_of(container: &Container) -> Result<Amounts, String> {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    exact(requests, "spec.containers.resources.requests")
}

fn exact(list: Option<&BTreeMap<String, Quantity>>, field: &str) -> Result<Amounts, String> {
    let read = |(resource, text): (&String, &Quantity)| {
        let amount = quantity(&text.0).ok_or_else(|| format!("{field}.{resource}"))?;
        Ok((resource.clone(), divide_up(amount, BILLION / 1000) * (BILLION / 1000)))
    };
    list.into_iter().flatten().map(read).collect()
}

fn rounded(amounts: &Amounts) -> Amounts {
    let round = |(resource, amount): (&String, &i128)| {
        let unit = if resource == "cpu" { BILLION / 1000 } else { BILLION };
        (resource.clone(), divide_up(*amount, unit))
    };
    amounts.iter().map(round).collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        *sum.entry(resource.clone()).or_default() += amount;
    }
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (resource, amount) in other {
        let entry = most.entry(resource.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

/// Parses a quantity into billionths, rounding up: sign, digits with at most one point, and a suffix.
fn quantity(text: &str) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{integer}{fraction}");
    let mantissa: i128 = digits.parse().ok()?;
    let (factor, exponent) = scale(suffix)?;
    let exponent = exponent.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    let product = mantissa.checked_mul(factor);
    let size = match (product, power) {
        (Some(0), _) => 0,
        (Some(product), Some(power)) if exponent < 0 => divide_up(product, power),
        (Some(_), None) if exponent < 0 => 1,
        (Some(product), Some(power)) => product.checked_mul(power).unwrap_or(MAX_QUANTITY),
        (None, _) | (_, None) => MAX_QUANTITY,
    };
    let size = size.min(MAX_QUANTITY);
    Some(if negative { -size } else { size })
}

/// The factor and the power of ten of a suffix.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let known = match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(known)
}

fn divide_up(amount: i128, by: i128) -> i128 {
    amount.div_euclid(by) + i128::from(amount.rem_euclid(by) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_in_billionths() {
        for (text, billionths) in [
            ("1", Some(BILLION)),
            ("0.5", Some(BILLION / 2)),
            (".5", Some(BILLION / 2)),
            ("5.", Some(5 * BILLION)),
            ("100m", Some(BILLION / 10)),
            ("1.5Gi", Some(3 * (1 << 29) * BILLION)),
            ("2e3", Some(2000 * BILLION)),
            ("2E", Some(2_000_000_000_000_000_000 * BILLION)),
            ("1n", Some(1)),
            ("0.1n", Some(1)), // finer than a billionth: rounded up
            ("-1", Some(-BILLION)),
            ("9e99", Some(MAX_QUANTITY)),
            ("1x", None),
            ("", None),
            ("1 ", None),
        ] {
            assert_eq!(quantity(text), billionths, "{text:?}");
        }
    }
}

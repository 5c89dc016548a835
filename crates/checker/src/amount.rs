//! Quantities and requests, read the long way: each in billionths, rounded up to thousandths as the API server stores it, then
//! summed, and rounded up again. It leaves to others what a node has room for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use reprieve_api::pod::{Container, ContainerStatus, Pod};

/// By resource. Exact amounts are in billionths; rounded ones in thousandths of a cpu and in whole units of all else.
pub type Amounts = BTreeMap<String, i128>;

const BILLION: i128 = 1_000_000_000;
/// Kubernetes holds no quantity above 2^63 - 1.
const LARGEST: i128 = (i64::MAX as i128) * BILLION;

/// What a pod asks of a node, rounded, with the place that it takes among the node's pods. `Err` names the unreadable field.
/// A pending pod, and one that asks to grow, asks for what its spec says.
pub fn asked(pod: &Pod) -> Result<Amounts, String> {
    let wanted = containers_total(pod, &|container, _| requests_of(container))?;
    pod_request(pod, wanted, whole_of(pod)?)
}

/// What a bound pod holds, rounded. Where its size is being changed, that is the largest of what it wants, what it was promised and
/// what it has; a wish that can never be met holds nothing.
pub fn held(pod: &Pod) -> Result<Amounts, String> {
    let status = pod.status.clone().unwrap_or_default();
    let infeasible =
        status.conditions.iter().flatten().any(|condition| {
            condition.type_ == "PodResizePending" && condition.reason.as_deref() == Some("Infeasible")
        });
    let wished = |container: &Container| if infeasible { Ok(Amounts::new()) } else { requests_of(container) };
    let promised = |container: &Container, status: Option<&ContainerStatus>| match status
        .and_then(|status| status.allocated_resources.as_ref())
    {
        Some(list) => exact(Some(list), "status.containerStatuses.allocatedResources"),
        None => wished(container),
    };
    let actual = |container: &Container, status: Option<&ContainerStatus>| match status
        .and_then(|status| status.resources.as_ref()?.requests.as_ref())
    {
        Some(list) => exact(Some(list), "status.containerStatuses.resources.requests"),
        None => promised(container, status),
    };
    let promised_whole = status.allocated_resources.as_ref();
    let actual_whole = status.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let mut together = containers_total(pod, &|container, _| wished(container))?;
    if promised_whole.is_some() && actual_whole.is_some() {
        raise(&mut together, &exact(promised_whole, "status.allocatedResources")?);
        raise(&mut together, &exact(actual_whole, "status.resources.requests")?);
    } else {
        raise(&mut together, &containers_total(pod, &promised)?);
        raise(&mut together, &containers_total(pod, &actual)?);
    }
    let mut whole = whole_of(pod)?;
    if !whole.is_empty() && status.resources.is_some() {
        if infeasible {
            whole.clear();
        }
        raise(&mut whole, &exact(promised_whole, "status.allocatedResources")?);
        raise(&mut whole, &exact(actual_whole, "status.resources.requests")?);
    }
    pod_request(pod, together, whole)
}

/// A list of amounts, rounded: what a node offers.
pub fn offered(list: Option<&BTreeMap<String, Quantity>>, field: &str) -> Result<Amounts, String> {
    Ok(rounded(&exact(list, field)?))
}

type OfContainer<'a> = &'a dyn Fn(&Container, Option<&ContainerStatus>) -> Result<Amounts, String>;

/// The containers run together. The init containers run before them, one by one, beside the sidecars that were started earlier;
/// the pod needs the most that is ever needed at once.
fn containers_total(pod: &Pod, of_container: OfContainer<'_>) -> Result<Amounts, String> {
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let statuses: Vec<&ContainerStatus> =
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten()).collect();
    let amounts_of = |container: &Container| {
        of_container(container, statuses.iter().find(|status| status.name == container.name).copied())
    };
    let mut together = Amounts::new();
    for container in &spec.containers {
        add(&mut together, &amounts_of(container)?);
    }
    let mut sidecars = Amounts::new();
    let mut before = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let amounts = amounts_of(container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut together, &amounts);
            add(&mut sidecars, &amounts);
            raise(&mut before, &sidecars);
        } else {
            let mut at_once = sidecars.clone();
            add(&mut at_once, &amounts);
            raise(&mut before, &at_once);
        }
    }
    raise(&mut together, &before);
    Ok(together)
}

/// What the pod asks for as a whole, apart from its containers. A limit of the pod's own counts where it says nothing else; what a
/// container asks for is something else, but for huge pages.
fn whole_of(pod: &Pod) -> Result<Amounts, String> {
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
    let mut whole = exact(Some(&counted(&resources.and_then(|own| own.requests.clone()))), "spec.resources.requests")?;
    let mut asked: Amounts = Amounts::new();
    for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
        asked.extend(requests_of(container)?);
    }
    let mut limits = counted(&resources.and_then(|own| own.limits.clone()));
    limits.retain(|resource, _| !whole.contains_key(resource));
    limits.retain(|resource, _| resource.starts_with("hugepages-") || !asked.contains_key(resource));
    whole.extend(exact(Some(&limits), "spec.resources.limits")?);
    Ok(whole)
}

/// What the pod itself asks for cpu, memory and huge pages beats the sum of its containers. Overhead comes on top.
fn pod_request(pod: &Pod, mut together: Amounts, whole: Amounts) -> Result<Amounts, String> {
    for (resource, amount) in whole {
        if resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-") {
            together.insert(resource, amount);
        }
    }
    let overhead = pod.spec.as_ref().and_then(|spec| spec.overhead.as_ref());
    add(&mut together, &exact(overhead, "spec.overhead")?);
    let mut request = rounded(&together);
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

/// A quantity in billionths, rounded up if it is finer: sign, digits with at most one point, and a suffix.
fn quantity(text: &str) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let mantissa: i128 = digits.parse().ok()?;
    let (factor, exponent) = scale(suffix)?;
    let exponent = exponent.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    let product = mantissa.checked_mul(factor);
    let size = match (product, power) {
        (Some(0), _) => 0,
        (Some(product), Some(power)) if exponent < 0 => divide_up(product, power),
        (Some(_), None) if exponent < 0 => 1,
        (Some(product), Some(power)) => product.checked_mul(power).unwrap_or(LARGEST),
        (None, _) | (_, None) => LARGEST,
    };
    let size = size.min(LARGEST);
    Some(if negative { -size } else { size })
}

/// What a suffix multiplies by, and the power of ten that comes on top.
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
            ("9e99", Some(LARGEST)),
            ("1x", None),
            ("", None),
            ("1 ", None),
        ] {
            assert_eq!(quantity(text), billionths, "{text:?}");
        }
    }
}

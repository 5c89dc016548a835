//! The disruption controller: updates `status.disruptionsAllowed` of PodDisruptionBudgets when pods change.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use reprieve_api::{Kind, Object};
use reprieve_checker::selects;

use crate::api::Api;

/// Updates the budgets of a namespace.
pub(super) fn count_budgets(api: &mut Api, namespace: &str) {
    let budgets: Vec<PodDisruptionBudget> = api
        .of_kind(Kind::PodDisruptionBudget)
        .filter_map(|object| match object {
            Object::PodDisruptionBudget(budget) => Some(PodDisruptionBudget::clone(budget)),
            _ => None,
        })
        .filter(|budget| budget.metadata.namespace.as_deref().unwrap_or("default") == namespace)
        .collect();
    for mut budget in budgets {
        let (expected, healthy) = count_pods(api, &budget, namespace);
        let allowed = i32::try_from((healthy - desired_healthy(&budget, expected)).max(0)).unwrap_or(i32::MAX);
        let status = budget.status.get_or_insert_default();
        if status.disruptions_allowed != Some(allowed) {
            status.disruptions_allowed = Some(allowed);
            api.store(Object::from(budget));
        }
    }
}

/// The number of pods that the budget selects, and how many of them run and are not terminating.
fn count_pods(api: &Api, budget: &PodDisruptionBudget, namespace: &str) -> (i64, i64) {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let (mut expected, mut healthy) = (0, 0);
    for pod in api.pods().filter(|pod| !pod.is_finished()) {
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        if pod.metadata.namespace.as_deref() == Some(namespace) && selects(selector, &labels) {
            expected += 1;
            let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
            healthy += i64::from(runs && pod.metadata.deletion_timestamp.is_none());
        }
    }
    (expected, healthy)
}

/// The number of pods that must stay healthy.
fn desired_healthy(budget: &PodDisruptionBudget, expected: i64) -> i64 {
    let share = |value: &IntOrString| match value {
        IntOrString::Int(count) => i64::from(*count),
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(100);
            (expected * percent + 99) / 100
        }
    };
    let spec = budget.spec.clone().unwrap_or_default();
    match (&spec.min_available, &spec.max_unavailable) {
        (Some(min), _) => share(min),
        (None, Some(max)) => expected - share(max),
        (None, None) => expected,
    }
}

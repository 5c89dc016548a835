//! The parts of a pod's state that the scheduler reads.

use k8s_openapi::api::core::v1::PodCondition;
use reprieve_api::{Pod, PodStatus};
use reprieve_report::unit_ref::UnitRef;

use crate::action::VICTIM;

/// The type of the condition that shows whether a pod is bound.
pub(crate) const SCHEDULED: &str = "PodScheduled";

/// Whether the pod has succeeded or failed.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the pod is pending: unbound, without scheduling gates and not deleted.
pub(crate) fn needs_place(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    let gated = gates.is_some_and(|gates| !gates.is_empty());
    pod.node_name.is_none() && !gated && pod.metadata.deletion_timestamp.is_none()
}

/// Whether the pod is terminating, or another operator was asked to evict it. The label without the condition is not the scheduler's; if its
/// owner removed the label, the other operator must be asked again.
pub(crate) fn is_evicted(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() || pod.is_soft_evicted()
}

/// The unit that the pod is marked as a victim of.
pub(crate) fn preemptor_of(pod: Option<&Pod>) -> Option<UnitRef> {
    UnitRef::parse(victim_condition(pod?)?.message.as_deref()?)
}

fn victim_condition(pod: &Pod) -> Option<&PodCondition> {
    condition(pod, VICTIM).filter(|condition| condition.status == "True")
}

pub(crate) fn condition<'p>(pod: &'p Pod, type_: &str) -> Option<&'p PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// Whether two states of a pod differ only in the reason why it waits, which matters to no unit.
pub(super) fn differs_only_in_wait_reason(before: Option<&Pod>, after: Option<&Pod>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let is_bound = condition(after, SCHEDULED).is_some_and(|condition| condition.status == "True");
    if is_bound || before.node_name != after.node_name || before.spec != after.spec {
        return false;
    }
    let (empty, none) = (PodStatus::default(), Vec::new());
    let [was, is] = [before, after].map(|pod| pod.status.as_ref().unwrap_or(&empty));
    let [were, are] = [was, is].map(|status| {
        let conditions = status.conditions.as_ref().unwrap_or(&none).iter();
        conditions.filter(|condition| condition.type_ != SCHEDULED)
    });
    if !were.eq(are) || was.without_conditions() != is.without_conditions() {
        return false;
    }
    let mut metadata = before.metadata.clone();
    metadata.resource_version.clone_from(&after.metadata.resource_version);
    metadata.managed_fields.clone_from(&after.metadata.managed_fields);
    metadata == after.metadata
}

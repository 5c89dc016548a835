//! Conditions of pods and PodGroups: whether they are scheduled, and why not. These conditions are for people and other programs; no
//! decision reads them. A condition that shows why a unit waits is rewritten only when the reason changes, not for other details in its message.

use std::collections::BTreeSet;

use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::laws::Mismatch;
use reprieve_engine::{Priority, Timestamp};
use reprieve_loader::timestamp;
use reprieve_report::reasons::no_node_available;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ConditionUpdate, EventReason};
use crate::action_log::Request;
use crate::effects::stored_message;
use crate::reported::ReportedReasons;
use crate::view::{ClusterView, SCHEDULED, condition, needs_place};
use crate::wait_reason::WaitReason;

/// Type of a PodGroup's condition; once true, it stays true.
const GROUP_SCHEDULED: &str = "PodGroupInitiallyScheduled";
/// Type of the condition of a PodGroup that contains a pod with another priority.
const MISMATCH: &str = "PodsNotMatchingPriority";
/// Type of the condition of a PodGroup that asks for a preemption priority it may not use.
const REFUSED_PRIORITY: &str = EventReason::PreemptionPriorityRefused.as_str();
/// Reason of the condition of a pending pod or PodGroup.
const UNSCHEDULABLE: &str = "Unschedulable";

/// The PodGroups whose conditions may have to change, and the reasons that were reported on pods and PodGroups.
#[derive(Default)]
pub(crate) struct StatusUpdates {
    groups: BTreeSet<NamespacedName>,
    reported: ReportedReasons,
}

impl StatusUpdates {
    /// Notes that a PodGroup or one of its pods changed.
    pub fn group_changed(&mut self, group: NamespacedName) {
        self.groups.insert(group);
    }

    /// Notes that PriorityClasses changed: any PodGroup may now be refused the preemption priority that it asks for.
    pub fn classes_changed(&mut self, view: &ClusterView) {
        let groups = view.live.all().filter(|(key, _)| key.kind == Kind::PodGroup);
        self.groups.extend(groups.map(|(key, _)| key.name.clone()));
    }

    /// The groups of which the object or a pod changed since the last call of [`Self::update_groups`].
    pub fn changed_groups(&self) -> impl Iterator<Item = &NamespacedName> {
        self.groups.iter()
    }

    /// Updates the conditions of the groups that changed. If the pods of a group name several schedulers, the scheduler of the first pod
    /// by name reports a refused preemption priority, and a pod with another priority.
    pub fn update_groups(&mut self, view: &ClusterView, now: Timestamp) -> Vec<Request> {
        let mut requests = Vec::new();
        for name in std::mem::take(&mut self.groups) {
            let key = ObjectKey::new(Kind::PodGroup, name.clone());
            let unit = UnitRef::Group(name);
            // A pod that names another scheduler has no unit here.
            let is_ours = |pod: &NamespacedName| view.unit_of(view.pod(pod)).as_ref() == Some(&unit);
            let members = view.live.members(&key);
            if members.iter().any(is_ours) {
                requests.extend(scheduled(&key, view, now));
            }
            if members.first().is_some_and(is_ours) {
                requests.extend(refused_priority(&key, view, now));
                requests.extend(mismatch(&key, view, now));
            }
        }
        requests
    }

    /// Reports on the pods of a unit, and on its PodGroup, why the unit waits.
    pub fn report_waiting(
        &mut self,
        unit: &UnitRef,
        (reason, why): (WaitReason, &str),
        view: &ClusterView,
        now: Timestamp,
    ) -> Vec<Request> {
        let why = format!("{reason}: {why}");
        let mut waiting = |key: ObjectKey, type_, full: String| {
            let message = stored_message(&full);
            let written = written(&key, type_, view);
            let shown = written.as_ref().filter(|written| !written.holds && written.reason == UNSCHEDULABLE);
            let is_new = self.reported.is_new(&key, shown.map(|written| written.message), reason, message);
            let message = message.to_owned();
            let condition = ConditionUpdate { type_, holds: false, reason: UNSCHEDULABLE, message, since: now };
            let event_key = key.clone();
            let request = if is_new { write(key, condition, written.as_ref(), view) } else { None };
            request.map(|request| request.then_event(event_key, None, EventReason::FailedScheduling, full))
        };
        let pending = view.members(unit).into_iter().filter(|name| view.pod(name).is_some_and(needs_place));
        let of_pod = no_node_available(view.loaded().snapshot.node_ids().len(), &why);
        let pods = pending.filter_map(|name| waiting(ObjectKey::new(Kind::Pod, name), SCHEDULED, of_pod.clone()));
        let mut requests: Vec<Request> = pods.collect();
        if let UnitRef::Group(_) = unit {
            let key = unit.key();
            if !holds(&key, GROUP_SCHEDULED, view) {
                requests.extend(waiting(key.clone(), GROUP_SCHEDULED, why));
            }
        }
        requests
    }

    /// Notes that a unit preempts: the next report why it waits is written even if the reason is the same, because it names other victims.
    pub fn preempting(&mut self, unit: &UnitRef, view: &ClusterView) {
        for pod in view.members(unit) {
            self.reported.forget(&ObjectKey::new(Kind::Pod, pod));
        }
        self.reported.forget(&unit.key());
    }

    /// Forgets what was reported on an object that is deleted.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.reported.forget(key);
    }
}

/// Reports that a group is scheduled, once enough of its pods are known to be bound.
fn scheduled(key: &ObjectKey, view: &ClusterView, now: Timestamp) -> Option<Request> {
    if holds(key, GROUP_SCHEDULED, view) {
        return None;
    }
    let Some(Object::PodGroup(group)) = view.live.get(key) else { return None };
    let gang = group.spec.scheduling_policy.gang.as_ref();
    let needed = gang.map_or(1, |gang| usize::try_from(gang.min_count).unwrap_or(0)).max(1);
    let is_unbound = |name: &&NamespacedName| !view.pod(name).is_some_and(runs) || view.assumed.is_binding(name);
    let members = view.live.members(key);
    // At most this many members may be unbound; one more, and too few are bound.
    let max_unbound = members.len().checked_sub(needed)?;
    if members.iter().filter(is_unbound).nth(max_unbound).is_some() {
        return None;
    }
    let (reason, message) = ("Scheduled", "Scheduled: enough of its pods are bound".to_owned());
    let condition = ConditionUpdate { type_: GROUP_SCHEDULED, holds: true, reason, message, since: now };
    update(key.clone(), condition, view)
}

fn runs(pod: &Pod) -> bool {
    pod.node_name.is_some() && pod.metadata.deletion_timestamp.is_none()
}

/// Reports whether a pod of the group, pending or running, itself has another priority than the group
/// (docs/rules/kubernetes-groups.md#g20).
fn mismatch(key: &ObjectKey, view: &ClusterView, now: Timestamp) -> Option<Request> {
    let loaded = view.loaded();
    let group = loaded.names.group_id(&key.name).map(|group| loaded.snapshot.group(group))?;
    let mismatching = group.members.iter().find_map(|&pod| match loaded.snapshot.pod(pod).mismatch {
        Some(Mismatch::Priority { member, .. }) => Some((member, pod)),
        Some(Mismatch::Preempting { .. }) | None => None,
    });
    let (reason, message) = match mismatching {
        Some((Priority(priority), pod)) => {
            let pod = loaded.names.pod(pod);
            (MISMATCH, format!("{MISMATCH}: {pod} has priority {priority}, and its group {}", group.priority.0))
        }
        None if holds(key, MISMATCH, view) => {
            ("Matching", format!("Matching: all its pods have priority {}", group.priority.0))
        }
        None => return None,
    };
    let holds = mismatching.is_some();
    update(key.clone(), ConditionUpdate { type_: MISMATCH, holds, reason, message, since: now }, view)
}

/// Reports whether the group is refused the preemption priority that it asks for (docs/rules/kubernetes-groups.md#g16); a refusal is also
/// an event.
fn refused_priority(key: &ObjectKey, view: &ClusterView, now: Timestamp) -> Option<Request> {
    let refused = view.live.refused_priority(&key.name);
    if refused.is_none() && !holds(key, REFUSED_PRIORITY, view) {
        return None;
    }
    let (holds, allowed) =
        (refused.is_some(), || ("Accepted", "the preemption priority of the group is allowed".to_owned()));
    let (reason, message) = refused.map_or_else(allowed, |refused| (refused.reason(), refused.to_string()));
    let condition = ConditionUpdate { type_: REFUSED_PRIORITY, holds, reason, message: message.clone(), since: now };
    let written = written(key, REFUSED_PRIORITY, view);
    if written.as_ref().is_some_and(|written| written.has_reason_of(&condition) && written.message == message) {
        return None;
    }
    let request = write(key.clone(), condition, written.as_ref(), view)?;
    if holds {
        Some(request.then_event(key.clone(), None, EventReason::PreemptionPriorityRefused, message))
    } else {
        Some(request)
    }
}

/// The request that writes a condition, unless the object has a condition with the same status and reason. Such a condition has the same
/// message, except for details that do not matter.
fn update(key: ObjectKey, condition: ConditionUpdate, view: &ClusterView) -> Option<Request> {
    let written = written(&key, condition.type_, view);
    if written.as_ref().is_some_and(|written| written.has_reason_of(&condition)) {
        return None;
    }
    write(key, condition, written.as_ref(), view)
}

/// The request that writes a condition. The transition time stays if the status does.
fn write(
    key: ObjectKey,
    condition: ConditionUpdate,
    written: Option<&Written<'_>>,
    view: &ClusterView,
) -> Option<Request> {
    let unchanged = written.filter(|written| written.holds == condition.holds);
    let since = unchanged.and_then(|written| written.since).unwrap_or(condition.since);
    let (kind, object) = (key.kind, view.target_as_known(&key)?);
    Some(Request::new(Action::SetCondition { kind, object, condition: ConditionUpdate { since, ..condition } }))
}

/// Whether the object has a condition of this type with status true.
fn holds(key: &ObjectKey, type_: &str, view: &ClusterView) -> bool {
    written(key, type_, view).is_some_and(|written| written.holds)
}

/// A condition that an object has, or will have once the actions in flight have succeeded.
struct Written<'v> {
    holds: bool,
    reason: &'v str,
    message: &'v str,
    since: Option<Timestamp>,
}

impl Written<'_> {
    fn has_reason_of(&self, condition: &ConditionUpdate) -> bool {
        (self.holds, self.reason) == (condition.holds, condition.reason)
    }
}

fn written<'v>(key: &ObjectKey, type_: &str, view: &'v ClusterView) -> Option<Written<'v>> {
    if let Some(ConditionUpdate { holds, reason, message, since, .. }) = view.assumed.condition(key, type_) {
        return Some(Written { holds: *holds, reason, message, since: Some(*since) });
    }
    if key.kind == Kind::Pod {
        let condition = condition(view.observed_pod(&key.name)?, type_)?;
        return Some(Written {
            holds: condition.status == "True",
            reason: condition.reason.as_deref().unwrap_or_default(),
            message: condition.message.as_deref().unwrap_or_default(),
            since: condition.last_transition_time.as_ref().map(|since| timestamp(since.0)),
        });
    }
    let Object::PodGroup(group) = view.live.get(key)? else { return None };
    let conditions = group.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some(Written {
        holds: condition.status == "True",
        reason: &condition.reason,
        message: &condition.message,
        since: Some(timestamp(condition.last_transition_time.0)),
    })
}

#[cfg(test)]
mod tests {
    use reprieve_api::pod::Pod;
    use reprieve_engine::policy::Policy;
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use serde_json::json;

    use super::*;
    use crate::action::ActionId;
    use crate::test_bugs::Bugs;

    #[test]
    fn a_condition_is_written_once_for_each_reason_and_keeps_its_time() {
        let mut view = ClusterView::new("reprieve", Policy::Kubernetes(Kubernetes::default()));
        let pod = json!({
            "metadata": {"name": "a", "namespace": "default", "uid": "a", "resourceVersion": "1"},
            "spec": {"schedulerName": "reprieve", "containers": []},
        });
        let unit = UnitRef::Pod(NamespacedName::new("default", "a"));
        view.seen(&Object::from(serde_json::from_value::<Pod>(pod).expect("a pod")));
        view.update_pod(&unit.key().name, Bugs::default());
        let mut status = StatusUpdates::default();
        for (at, reason, why, written) in [
            (1, WaitReason::NoFeasiblePlan, "no node has room for it", true),
            (2, WaitReason::NoFeasiblePlan, "two nodes have no room for it", false),
            (3, WaitReason::Law("PreemptionPolicyNever"), "its preemptionPolicy is Never", true),
        ] {
            let requests = status.report_waiting(&unit, (reason, why), &view, Timestamp(at));
            assert_eq!(!requests.is_empty(), written, "{reason}: {why}");
            for Request { action, .. } in requests {
                let Action::SetCondition { condition, .. } = &action else { panic!("{action:?}") };
                assert_eq!(condition.since, Timestamp(1), "it has not been scheduled since then");
                view.assumed.add(ActionId(u64::try_from(at).expect("it is positive")), &action, Timestamp(at));
            }
        }
    }
}

//! Conditions of pods and PodGroups: why they wait, and that they do not any more. They are for people and for other programs; nothing is
//! decided by them. A condition is written once for each reason.

use std::collections::BTreeSet;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_loader::time::timestamp;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ConditionUpdate};
use crate::action_log::Request;
use crate::view::{ClusterView, SCHEDULED, condition, needs_place};
use crate::wait_reason::{WaitReason, is_about};

/// Of a PodGroup; once it holds, it does so for ever.
const GROUP_SCHEDULED: &str = "PodGroupInitiallyScheduled";
/// Of a PodGroup whose pods have other priorities than it has.
const MISMATCH: &str = "PodsNotMatchingPriority";
/// Of a PodGroup that asks for a preemption priority which it is not given.
const REFUSED_PRIORITY: &str = "PreemptionPriorityRefused";
/// The reason of a condition of an object that waits.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";

/// The conditions that are still to be written.
#[derive(Default)]
pub(crate) struct StatusUpdates {
    /// PodGroups that changed, or whose pods did.
    groups: BTreeSet<NamespacedName>,
}

impl StatusUpdates {
    /// A PodGroup changed, or a pod of it did.
    pub fn group_changed(&mut self, group: NamespacedName) {
        self.groups.insert(group);
    }

    /// All PodGroups may ask for something else, because priority classes changed.
    pub fn classes_changed(&mut self, view: &ClusterView) {
        let groups = view.live.all().filter(|(key, _)| key.kind == Kind::PodGroup);
        self.groups.extend(groups.map(|(key, _)| key.name.clone()));
    }

    /// Writes on groups that changed whether they were scheduled, and whether the preemption priority that they ask for is refused. Of two
    /// schedulers that read a group, the one of its first pod writes the latter.
    pub fn update_groups(&mut self, view: &ClusterView, now: Timestamp) -> Vec<Request> {
        let mut requests = Vec::new();
        for name in std::mem::take(&mut self.groups) {
            let key = ObjectKey::new(Kind::PodGroup, name.clone());
            let unit = UnitRef::Group(name);
            let is_ours = |pod: &NamespacedName| view.unit_of(view.pod(pod)).as_ref() == Some(&unit);
            let members = view.live.members(&key);
            if members.iter().any(is_ours) {
                requests.extend(scheduled(&key, view, now));
            }
            if members.first().is_some_and(is_ours) {
                requests.extend(refused_priority(&key, view, now));
            }
        }
        requests
    }
}

/// Writes on a unit that it waits, and why.
pub(crate) fn waits(
    unit: &UnitRef,
    (reason, why): (WaitReason, &str),
    view: &ClusterView,
    now: Timestamp,
) -> Vec<Request> {
    let mut requests = Vec::new();
    let waits = |type_| {
        let (subject, message) = (reason.as_str().into(), format!("{reason}: {why}"));
        ConditionUpdate { type_, holds: false, reason: UNSCHEDULABLE, subject, message, since: now }
    };
    for name in view.members(unit) {
        if view.pod(&name).is_some_and(needs_place) {
            requests.extend(update(ObjectKey::new(Kind::Pod, name), waits(SCHEDULED), view));
        }
    }
    if let UnitRef::Group(_) = unit {
        let key = unit.key();
        if !holds(&key, GROUP_SCHEDULED, view) {
            requests.extend(update(key.clone(), waits(GROUP_SCHEDULED), view));
        }
        requests.extend(mismatch(&key, view, now));
    }
    requests
}

/// Writes on a group that it was scheduled, once enough of its pods are known to be bound.
fn scheduled(key: &ObjectKey, view: &ClusterView, now: Timestamp) -> Option<Request> {
    if holds(key, GROUP_SCHEDULED, view) {
        return None;
    }
    let Some(Object::PodGroup(group)) = view.live.get(key) else { return None };
    let gang = group.spec.scheduling_policy.gang.as_ref();
    let needed = gang.map_or(1, |gang| usize::try_from(gang.min_count).unwrap_or(0)).max(1);
    let is_unbound =
        |pod: &&NamespacedName| view.pod(pod).is_none_or(|pod| pod.node_name.is_none()) || view.assumed.is_binding(pod);
    let members = view.live.members(key);
    // So many may lack a node; one more is not looked for.
    let spare = members.len().checked_sub(needed)?;
    if members.iter().filter(is_unbound).nth(spare).is_some() {
        return None;
    }
    let (reason, message) = ("Scheduled", "Scheduled: enough of its pods are bound".to_owned());
    let condition =
        ConditionUpdate { type_: GROUP_SCHEDULED, holds: true, reason, subject: reason.into(), message, since: now };
    update(key.clone(), condition, view)
}

/// Writes on a group that a pod of it has another priority, or no longer has.
fn mismatch(key: &ObjectKey, view: &ClusterView, now: Timestamp) -> Option<Request> {
    let loaded = view.loaded();
    let group = loaded.names.group_id(&key.name).map(|group| loaded.snapshot.group(group))?;
    let other = group.members.iter().find(|pod| loaded.snapshot.pod(**pod).priority != group.priority);
    let condition = match other {
        Some(&pod) => {
            let (priority, pod) = (loaded.snapshot.pod(pod).priority.0, loaded.names.pod(pod));
            let message = format!("{MISMATCH}: {pod} has priority {priority}, and its group {}", group.priority.0);
            ConditionUpdate {
                type_: MISMATCH,
                holds: true,
                reason: MISMATCH,
                subject: MISMATCH.into(),
                message,
                since: now,
            }
        }
        None if holds(key, MISMATCH, view) => {
            let message = format!("Matching: all its pods have priority {}", group.priority.0);
            ConditionUpdate {
                type_: MISMATCH,
                holds: false,
                reason: "Matching",
                subject: "Matching".into(),
                message,
                since: now,
            }
        }
        None => return None,
    };
    update(key.clone(), condition, view)
}

/// Writes on a group that the preemption priority that it asks for is refused, or no longer is; the former is recorded as an event, too.
fn refused_priority(key: &ObjectKey, view: &ClusterView, now: Timestamp) -> Vec<Request> {
    match view.live.refused_priority(&key.name) {
        Some(refused) => {
            let (reason, message) = (refused.reason(), refused.to_string());
            let (type_, subject) = (REFUSED_PRIORITY, message.clone().into());
            let condition = ConditionUpdate { type_, holds: true, reason, subject, message: message.clone(), since: now };
            let Some(request) = update(key.clone(), condition, view) else { return Vec::new() };
            vec![request, Request::record(key.clone(), None, REFUSED_PRIORITY, message)]
        }
        None if holds(key, REFUSED_PRIORITY, view) => {
            let allowed = "what it asks for is allowed";
            let (type_, subject, message) = (REFUSED_PRIORITY, allowed.into(), allowed.to_owned());
            let condition = ConditionUpdate { type_, holds: false, reason: "Accepted", subject, message, since: now };
            update(key.clone(), condition, view).into_iter().collect()
        }
        None => Vec::new(),
    }
}

/// The condition as a request, unless the object has it already.
fn update(key: ObjectKey, condition: ConditionUpdate, view: &ClusterView) -> Option<Request> {
    let written = written(&key, condition.type_, view);
    if written.as_ref().is_some_and(|written| written.says(&condition)) {
        return None;
    }
    let same = written.filter(|written| written.holds == condition.holds);
    let since = same.and_then(|written| written.since).unwrap_or(condition.since);
    let (kind, object) = (key.kind, view.target_as_known(&key)?);
    Some(Request::new(Action::SetCondition { kind, object, condition: ConditionUpdate { since, ..condition } }))
}

/// Whether the object has a condition of this type that holds.
fn holds(key: &ObjectKey, type_: &str, view: &ClusterView) -> bool {
    written(key, type_, view).is_some_and(|written| written.holds)
}

/// A condition that an object has, or will have.
struct Written<'v> {
    holds: bool,
    reason: &'v str,
    message: &'v str,
    since: Option<Timestamp>,
}

impl Written<'_> {
    fn says(&self, condition: &ConditionUpdate) -> bool {
        (self.holds, self.reason) == (condition.holds, condition.reason) && is_about(self.message, &condition.subject)
    }
}

/// The condition of this type that the object has, or will have.
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
        for (at, reason, why, written) in [
            (1, WaitReason::NoFeasiblePlan, "no node has room for it", true),
            (2, WaitReason::NoFeasiblePlan, "two nodes have no room for it", false),
            (3, WaitReason::Law("Never"), "its preemptionPolicy is Never", true),
        ] {
            let requests = waits(&unit, (reason, why), &view, Timestamp(at));
            assert_eq!(!requests.is_empty(), written, "{reason}: {why}");
            for Request { action, .. } in requests {
                let Action::SetCondition { condition, .. } = &action else { panic!("{action:?}") };
                assert_eq!(condition.since, Timestamp(1), "it has not been scheduled since then");
                view.assumed.add(ActionId(u64::try_from(at).expect("it is positive")), &action, Timestamp(at));
            }
        }
    }
}

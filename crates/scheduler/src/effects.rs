//! What each action changes in an object. Three callers share it: the view (assumed state), the simulated API server, and the live executor
//! (patches). Preconditions and subresources are left to these callers.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use reprieve_api::kueue::{EvictionStats, KueueWorkload};
use reprieve_api::{NamespacedName, Object, Pod};
use reprieve_engine::Timestamp;
use reprieve_loader::time::time;
use reprieve_loader::timestamp;
use reprieve_report::planned_actions::workload_preempted;
use serde_json::{Map, Value, json};

use crate::action::{
    Action, ConditionUpdate, JobPodSettings, PREEMPTED_FOR, PREEMPTED_VALUE, SOFT_EVICTED, SOFT_EVICTION, VICTIM,
};

/// The type of a victim's condition.
const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// The reason of the condition [`VICTIM`] until the victim is evicted.
const MARKED: &str = "Marked";
/// Less than the 32768 characters that the API server accepts for the message of a condition.
const MAX_MESSAGE_LENGTH: usize = 30_000;

/// The part of a message that is written into a condition.
pub(crate) fn stored_message(message: &str) -> &str {
    message.char_indices().nth(MAX_MESSAGE_LENGTH).map_or(message, |(end, _)| &message[..end])
}

/// Changes an object as the action does; `false` if the action does not apply to its kind, or its state does not allow it.
pub fn apply(action: &Action, object: &mut Object, now: Timestamp) -> bool {
    match object {
        Object::Pod(pod) => apply_to_pod(action, Arc::make_mut(pod), now),
        Object::PodGroup(group) => apply_to_group(action, Arc::make_mut(group)),
        Object::KueueWorkload(workload) => apply_to_workload(action, Arc::make_mut(workload), now),
        Object::Job(job) => apply_to_job(action, Arc::make_mut(job)),
        _ => false,
    }
}

/// The strategic merge patch for `/status` of a pod or PodGroup that makes the change; `None` if the action is not such a patch.
pub fn patch(action: &Action) -> Option<Value> {
    PodChange::of(action).map(|change| change.patch())
}

/// Changes a pod as the action does; `false` if the action does not apply to pods.
pub fn apply_to_pod(action: &Action, pod: &mut Pod, now: Timestamp) -> bool {
    match action {
        Action::Bind { node, .. } => bind(pod, node, now),
        Action::Evict { .. } => terminate(pod, now),
        _ => match PodChange::of(action) {
            Some(change) => change.apply(pod),
            None => return false,
        },
    }
    true
}

/// Starts the termination of a pod, which ends at the latest with its grace period. A pod that terminates already keeps its deadline.
pub fn terminate(pod: &mut Pod, now: Timestamp) {
    let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let until = now.plus_seconds(grace.unwrap_or(30));
    let deletion = &mut pod.metadata.deletion_timestamp;
    *deletion = deletion.take().or(time(until).map(Time));
}

/// Removes the mark of a victim.
pub(crate) fn unmark(pod: &mut Pod) {
    PodChange::unmarked().apply(pod);
}

/// What an action changes in the metadata and the status of a pod, or in the status of a PodGroup.
#[derive(Default)]
struct PodChange {
    label: Option<(&'static str, &'static str)>,
    /// A value of `None` removes the annotation.
    annotations: Vec<(&'static str, Option<String>)>,
    /// A value of `None` removes the nomination.
    nominated: Option<Option<String>>,
    conditions: Vec<ConditionChange>,
}

enum ConditionChange {
    Set(Box<PodCondition>),
    Remove(&'static str),
}

impl PodChange {
    fn of(action: &Action) -> Option<Self> {
        let marked = |preemptor: &String, reason: &str, message: &str, at: Timestamp| Self {
            annotations: vec![(PREEMPTED_FOR, Some(preemptor.clone()))],
            conditions: vec![
                ConditionChange::set(DISRUPTION_TARGET, true, "PreemptionByScheduler", message, at),
                ConditionChange::set(VICTIM, true, reason, preemptor, at),
            ],
            ..Self::default()
        };
        match action {
            Action::Nominate { node, .. } => Some(Self { nominated: Some(node.clone()), ..Self::default() }),
            Action::Mark { preemptor, message, at, .. } => Some(marked(preemptor, MARKED, message, *at)),
            Action::SoftEvict { preemptor, message, note, at, .. } => {
                let mut marked = marked(preemptor, SOFT_EVICTED, message, *at);
                marked.annotations.push((SOFT_EVICTION, Some(note.clone())));
                Some(Self { label: Some((SOFT_EVICTION, PREEMPTED_VALUE)), ..marked })
            }
            Action::Unmark { .. } => Some(Self::unmarked()),
            Action::SetCondition { condition, .. } => {
                let ConditionUpdate { type_, holds, reason, message, since, .. } = condition;
                let condition = ConditionChange::set(type_, *holds, reason, message, *since);
                Some(Self { conditions: vec![condition], ..Self::default() })
            }
            _ => None,
        }
    }

    fn unmarked() -> Self {
        Self {
            annotations: vec![(PREEMPTED_FOR, None)],
            conditions: vec![ConditionChange::Remove(DISRUPTION_TARGET), ConditionChange::Remove(VICTIM)],
            ..Self::default()
        }
    }

    fn apply(self, pod: &mut Pod) {
        if let Some((key, value)) = self.label {
            pod.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        }
        for (key, value) in self.annotations {
            match value {
                Some(value) => {
                    pod.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value);
                }
                None => _ = pod.metadata.annotations.as_mut().map(|annotations| annotations.remove(key)),
            }
        }
        let status = pod.status.get_or_insert_default();
        if let Some(node) = self.nominated {
            status.nominated_node_name = node;
        }
        for change in self.conditions {
            let conditions = status.conditions.get_or_insert_default();
            conditions.retain(|condition| condition.type_ != change.type_());
            if let ConditionChange::Set(condition) = change {
                conditions.push(*condition);
            }
        }
    }

    fn patch(self) -> Value {
        let (mut metadata, mut status) = (Map::new(), Map::new());
        if let Some((key, value)) = self.label {
            metadata.insert("labels".to_owned(), json!({key: value}));
        }
        if !self.annotations.is_empty() {
            let annotations = self.annotations.into_iter().map(|(key, value)| (key.to_owned(), json!(value)));
            metadata.insert("annotations".to_owned(), Value::Object(annotations.collect()));
        }
        if let Some(node) = self.nominated {
            status.insert("nominatedNodeName".to_owned(), json!(node));
        }
        let condition = |change| match change {
            ConditionChange::Set(condition) => json!(condition),
            ConditionChange::Remove(type_) => json!({"type": type_, "$patch": "delete"}),
        };
        if !self.conditions.is_empty() {
            let conditions: Vec<Value> = self.conditions.into_iter().map(condition).collect();
            status.insert("conditions".to_owned(), json!(conditions));
        }
        json!({"metadata": metadata, "status": status})
    }
}

impl ConditionChange {
    fn set(type_: &str, holds: bool, reason: &str, message: &str, since: Timestamp) -> Self {
        Self::Set(Box::new(PodCondition {
            type_: type_.to_owned(),
            status: status_of(holds).to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(stored_message(message).to_owned()),
            last_transition_time: time(whole_seconds(since)).map(Time),
            ..PodCondition::default()
        }))
    }

    fn type_(&self) -> &str {
        match self {
            Self::Set(condition) => &condition.type_,
            Self::Remove(type_) => type_,
        }
    }
}

fn bind(pod: &mut Pod, node: &str, now: Timestamp) {
    pod.node_name = Some(node.to_owned());
    let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    conditions.push(PodCondition {
        type_: "PodScheduled".to_owned(),
        status: status_of(true).to_owned(),
        last_transition_time: time(now).map(Time),
        ..PodCondition::default()
    });
}

fn apply_to_group(action: &Action, group: &mut PodGroup) -> bool {
    let Action::SetCondition { condition, .. } = action else { return false };
    let Some(since) = time(whole_seconds(condition.since)).map(Time) else { return false };
    let conditions = group.status.get_or_insert_default().conditions.get_or_insert_default();
    let ConditionUpdate { type_, holds, reason, message, .. } = condition;
    replace_condition(conditions, self::condition(type_, *holds, reason, message.clone(), since));
    true
}

/// The message of the condition `Requeued` of a workload, and of the event.
pub(crate) const REQUEUED: &str = "its pods are gone, and it waits for quota again";
/// The message of the condition `Finished` of a workload, and of the event.
pub(crate) const FINISHED: &str = "the workload is finished";
/// The type of a workload's condition whose message is only the preemptor, as `namespace/name`: the status of a Workload has no field for the
/// preemptor, and an annotation cannot be written together with the status.
const PREEMPTED_FOR_WORKLOAD: &str = VICTIM;

/// The preemptor of a workload that has had no quota since, and the time since which the workload waits again.
pub fn preemptor_recorded_on(workload: &KueueWorkload) -> Option<(NamespacedName, Timestamp)> {
    let status = workload.status.as_ref().filter(|status| status.admission.is_none())?;
    let find =
        |type_: &str| status.conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True");
    let preempted = find("Preempted")?;
    // A condition older than the preemption belongs to an earlier preemption: the version that preempted now did not write it.
    let is_current = |condition: &&Condition| condition.last_transition_time >= preempted.last_transition_time;
    let (namespace, name) = find(PREEMPTED_FOR_WORKLOAD).filter(is_current)?.message.split_once('/')?;
    Some((NamespacedName::new(namespace, name), timestamp(find("Requeued")?.last_transition_time.0)))
}

pub(crate) fn apply_to_workload(action: &Action, workload: &mut KueueWorkload, now: Timestamp) -> bool {
    let status = workload.status.get_or_insert_default();
    let Some(now) = time(now).map(Time) else { return false };
    let set = |conditions: &mut Vec<Condition>, type_: &str, is: bool, reason: &str, message: String| {
        set_condition(conditions, type_, is, reason, message, &now);
    };
    match action {
        Action::SetQuotaPending { message, .. } => {
            set(&mut status.conditions, "QuotaReserved", false, "Pending", message.clone());
        }
        Action::Admit { admission, .. } => {
            if status.admission.is_some() {
                return false;
            }
            let message = format!("quota reserved in ClusterQueue {}", admission.cluster_queue);
            for ended in ["Evicted", "Preempted", PREEMPTED_FOR_WORKLOAD] {
                if is_true(&status.conditions, ended) {
                    set(&mut status.conditions, ended, false, "QuotaReserved", message.clone());
                }
            }
            set(&mut status.conditions, "QuotaReserved", true, "QuotaReserved", message);
            set(&mut status.conditions, "Admitted", true, "Admitted", "the workload is admitted".to_owned());
            status.admission = Some((**admission).clone());
        }
        Action::EvictWorkload { preemptor, shown, reason, .. } => {
            let message = workload_preempted(shown, *reason);
            if !is_true(&status.conditions, "Evicted") {
                count_eviction(&mut status.scheduling_stats.get_or_insert_default().evictions);
            }
            set(&mut status.conditions, "Evicted", true, "Preempted", message.clone());
            if is_true(&status.conditions, "Requeued") {
                set(&mut status.conditions, "Requeued", false, "Preempted", message.clone());
            }
            set(&mut status.conditions, "Preempted", true, &format!("{reason:?}"), message);
            set(&mut status.conditions, PREEMPTED_FOR_WORKLOAD, true, "Preempted", preemptor.to_string());
        }
        Action::RequeueWorkload { .. } => {
            let message = REQUEUED.to_owned();
            for lost in ["QuotaReserved", "Admitted"] {
                set(&mut status.conditions, lost, false, "Pending", message.clone());
            }
            set(&mut status.conditions, "Requeued", true, "Requeued", message);
            status.admission = None;
        }
        Action::FinishWorkload { reason, .. } => {
            set(&mut status.conditions, "Finished", true, reason, FINISHED.to_owned());
        }
        _ => return false,
    }
    true
}

fn count_eviction(evictions: &mut Vec<EvictionStats>) {
    match evictions.iter_mut().find(|stats| stats.reason == "Preempted") {
        Some(known) => known.count += 1,
        None => evictions.push(EvictionStats { reason: "Preempted".to_owned(), count: 1, ..EvictionStats::default() }),
    }
}

/// The API server accepts new pod settings only for a suspended Job.
pub(crate) fn apply_to_job(action: &Action, job: &mut Job) -> bool {
    let spec = job.spec.get_or_insert_default();
    let was_suspended = spec.suspend == Some(true);
    let settings = match action {
        Action::SuspendJob { .. } => {
            spec.suspend = Some(true);
            return true;
        }
        Action::StartJob { settings, .. } | Action::RestoreJob { settings, .. } if was_suspended => settings.clone(),
        _ => return false,
    };
    spec.suspend = Some(matches!(action, Action::RestoreJob { .. }));
    let JobPodSettings { parallelism, node_selector, tolerations } = settings;
    spec.parallelism = Some(parallelism);
    let pod = spec.template.spec.get_or_insert_default();
    pod.node_selector = Some(node_selector).filter(|selector| !selector.is_empty());
    pod.tolerations = Some(tolerations).filter(|tolerations| !tolerations.is_empty());
    true
}

/// Whether the condition of this type is true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

fn set_condition(conditions: &mut Vec<Condition>, type_: &str, is: bool, reason: &str, message: String, now: &Time) {
    let status = status_of(is);
    let before = conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status);
    let since = before.map_or(now, |condition| &condition.last_transition_time).clone();
    replace_condition(conditions, condition(type_, is, reason, message, since));
}

fn replace_condition(conditions: &mut Vec<Condition>, condition: Condition) {
    conditions.retain(|known| known.type_ != condition.type_);
    conditions.push(condition);
}

fn condition(type_: &str, holds: bool, reason: &str, message: String, last_transition_time: Time) -> Condition {
    let (type_, status, reason) = (type_.to_owned(), status_of(holds).to_owned(), reason.to_owned());
    Condition { type_, status, reason, message, last_transition_time, observed_generation: None }
}

fn status_of(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

/// The API server stores times in whole seconds.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp(at.0 - at.0.rem_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use reprieve_api::kinds::Kind;
    use reprieve_engine::policy::kueue::PreemptionReason;

    use super::*;
    use crate::action::Target;

    const AT: Timestamp = Timestamp(1_767_229_200_900_000);

    fn target() -> Target {
        Target { name: NamespacedName::new("default", "a"), uid: "u".to_owned(), version: 1 }
    }

    fn soft_evict() -> Action {
        let (preemptor, message) = ("Job default/job".to_owned(), "preempted for Job default/job".to_owned());
        Action::SoftEvict {
            pod: target(),
            preemptor,
            message,
            note: r#"{"preemptJob":"default/job"}"#.to_owned(),
            at: AT,
        }
    }

    #[test]
    fn patch_and_applied_change_agree() {
        let mut pod = Pod::default();
        assert!(apply_to_pod(&soft_evict(), &mut pod, AT));
        let patch = patch(&soft_evict()).unwrap();
        let metadata = serde_json::to_value(&pod.metadata).unwrap();
        assert_eq!(patch["metadata"], metadata);
        assert_eq!(patch["status"], serde_json::to_value(&pod.status).unwrap());
        assert_eq!(metadata["labels"][SOFT_EVICTION], "preempted");
        assert_eq!(metadata["annotations"][SOFT_EVICTION], r#"{"preemptJob":"default/job"}"#);
        assert_eq!(patch["status"]["conditions"][0]["lastTransitionTime"], "2026-01-01T01:00:00Z");
    }

    #[test]
    fn unmark_reverts_mark() {
        let (mut pod, message) = (Pod::default(), String::new());
        let mark = Action::Mark { pod: target(), preemptor: "Pod default/b".to_owned(), message, at: AT };
        assert!(apply_to_pod(&mark, &mut pod, AT));
        assert!(apply_to_pod(&Action::Unmark { pod: target() }, &mut pod, AT));
        assert_eq!(pod.metadata.annotations.unwrap().len(), 0);
        assert_eq!(pod.status.unwrap().conditions.unwrap(), []);
        let patch = patch(&Action::Unmark { pod: target() }).unwrap();
        assert_eq!(patch["metadata"]["annotations"], json!({PREEMPTED_FOR: null}));
        assert_eq!(
            patch["status"]["conditions"],
            json!([{"type": "DisruptionTarget", "$patch": "delete"}, {"type": VICTIM, "$patch": "delete"}])
        );
    }

    #[test]
    fn a_removed_nomination_is_null_in_the_patch() {
        let patch = patch(&Action::Nominate { pod: target(), node: None }).unwrap();
        assert_eq!(patch["status"], json!({"nominatedNodeName": null}));
    }

    #[test]
    fn every_condition_has_a_transition_time() {
        let message = "NoFeasiblePlan: no node has room for it".to_owned();
        let condition =
            ConditionUpdate { type_: "PodScheduled", holds: false, reason: "Unschedulable", message, since: AT };
        for kind in [Kind::Pod, Kind::PodGroup] {
            let patch = patch(&Action::SetCondition { kind, object: target(), condition: condition.clone() }).unwrap();
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "NoFeasiblePlan: no node has room for it", "lastTransitionTime": "2026-01-01T01:00:00Z",
            });
            assert_eq!(patch["status"]["conditions"], json!([condition]));
        }
    }

    #[test]
    fn the_preemptor_of_a_workload_is_read_from_its_own_condition_alone() {
        let mut workload = KueueWorkload::default();
        let evict = |preemptor| Action::EvictWorkload {
            workload: target(),
            preemptor: NamespacedName::new("default", preemptor),
            shown: format!("default/{preemptor}"),
            reason: PreemptionReason::InClusterQueue,
        };
        assert!(apply_to_workload(&evict("big"), &mut workload, AT));
        assert!(apply_to_workload(&Action::RequeueWorkload { workload: target() }, &mut workload, AT));
        assert_eq!(preemptor_recorded_on(&workload), Some((NamespacedName::new("default", "big"), AT)));
        let conditions = |workload: &mut KueueWorkload, keep: &dyn Fn(&Condition) -> bool| {
            workload.status.as_mut().expect("it has one").conditions.retain(keep);
        };

        let mut by_older = workload.clone();
        conditions(&mut by_older, &|condition| condition.type_ != PREEMPTED_FOR_WORKLOAD);
        assert_eq!(preemptor_recorded_on(&by_older), None, "an older version wrote only the message");

        conditions(&mut workload, &|condition| condition.type_ == PREEMPTED_FOR_WORKLOAD);
        let (mut again, later) = (KueueWorkload::default(), AT.plus_seconds(60));
        assert!(apply_to_workload(&evict("other"), &mut again, later));
        assert!(apply_to_workload(&Action::RequeueWorkload { workload: target() }, &mut again, later));
        conditions(&mut again, &|condition| condition.type_ != PREEMPTED_FOR_WORKLOAD);
        let stale = workload.status.expect("it has one").conditions;
        again.status.as_mut().expect("it has one").conditions.extend(stale);
        assert_eq!(preemptor_recorded_on(&again), None, "the condition of the first preemption is outdated");
    }
}

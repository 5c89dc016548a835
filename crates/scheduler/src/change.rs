//! What the requests about workloads and Jobs make of them: the scheduler assumes it, and a virtual API does it. And what is said of pods
//! and PodGroups.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use reprieve_engine::Timestamp;
use reprieve_objects::kueue::{EvictionStats, KueueWorkload};
use reprieve_objects::load::{time, timestamp};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;

use crate::action::{Action, Launch, Said};

/// How the message of the condition `Preempted` begins; the preemptor follows.
const PREEMPTED_FOR: &str = "preempted for workload ";

/// The workload for which this one was preempted, and has had no quota since; and since when it waits again.
pub fn preempted_for(workload: &KueueWorkload) -> Option<(FullName, Timestamp)> {
    let status = workload.status.as_ref().filter(|status| status.admission.is_none())?;
    let find = |type_: &str| status.conditions.iter().find(|one| one.type_ == type_ && one.status == "True");
    let (preemptor, _) = find("Preempted")?.message.strip_prefix(PREEMPTED_FOR)?.split_once(": ")?;
    let (namespace, name) = preemptor.split_once('/')?;
    Some((FullName::new(namespace, name), timestamp(find("Requeued")?.last_transition_time.0)))
}

/// Changes a workload; `false` where the request is not about one, or cannot be.
pub fn change_workload(workload: &mut KueueWorkload, action: &Action, now: Timestamp) -> bool {
    let status = workload.status.get_or_insert_default();
    let Some(now) = time(now).map(Time) else { return false };
    let set = |conditions: &mut Vec<Condition>, type_: &str, is: bool, reason: &str, message: String| {
        set_condition(conditions, type_, is, reason, message, &now);
    };
    match action {
        Action::Refuse { message, .. } => {
            set(&mut status.conditions, "QuotaReserved", false, "Pending", message.clone());
        }
        Action::Admit { admission, .. } => {
            if status.admission.is_some() {
                return false;
            }
            let message = format!("quota reserved in ClusterQueue {}", admission.cluster_queue);
            for once in ["Evicted", "Preempted"] {
                if is_true(&status.conditions, once) {
                    set(&mut status.conditions, once, false, "QuotaReserved", message.clone());
                }
            }
            set(&mut status.conditions, "QuotaReserved", true, "QuotaReserved", message);
            set(&mut status.conditions, "Admitted", true, "Admitted", "the workload is admitted".to_owned());
            status.admission = Some((**admission).clone());
        }
        Action::EvictWorkload { preemptor, ground, .. } => {
            let message = format!("{PREEMPTED_FOR}{preemptor}: {ground:?}");
            if !is_true(&status.conditions, "Evicted") {
                count_eviction(&mut status.scheduling_stats.get_or_insert_default().evictions);
            }
            set(&mut status.conditions, "Evicted", true, "Preempted", message.clone());
            if is_true(&status.conditions, "Requeued") {
                set(&mut status.conditions, "Requeued", false, "Preempted", message.clone());
            }
            set(&mut status.conditions, "Preempted", true, &format!("{ground:?}"), message);
        }
        Action::Requeue { .. } => {
            let message = "its pods are gone, and it waits for quota again".to_owned();
            for lost in ["QuotaReserved", "Admitted"] {
                set(&mut status.conditions, lost, false, "Pending", message.clone());
            }
            set(&mut status.conditions, "Requeued", true, "Requeued", message);
            status.admission = None;
        }
        Action::Finish { reason, .. } => {
            set(&mut status.conditions, "Finished", true, reason, "the workload is over".to_owned());
        }
        _ => return false,
    }
    true
}

fn count_eviction(evictions: &mut Vec<EvictionStats>) {
    match evictions.iter_mut().find(|one| one.reason == "Preempted") {
        Some(known) => known.count += 1,
        None => evictions.push(EvictionStats { reason: "Preempted".to_owned(), count: 1, ..EvictionStats::default() }),
    }
}

/// Changes a Job; `false` where the request is not about one, or cannot be: pods of a Job that is not suspended are made as they are.
pub fn change_job(job: &mut Job, action: &Action) -> bool {
    let spec = job.spec.get_or_insert_default();
    let suspended = spec.suspend == Some(true);
    match action {
        Action::SuspendJob { .. } => {
            spec.suspend = Some(true);
            true
        }
        Action::StartJob { launch, .. } if suspended => {
            spec.suspend = Some(false);
            set_launch(job, launch);
            true
        }
        Action::RestoreJob { launch, .. } if suspended => {
            set_launch(job, launch);
            true
        }
        _ => false,
    }
}

/// Says something of a pod, in its status.
pub fn say_of_pod(pod: &mut Pod, said: &Said, now: Timestamp) {
    let status = if said.holds { "True" } else { "False" };
    let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    let before = conditions.iter().find(|one| one.type_ == said.type_ && one.status == status);
    let since = before.map_or_else(|| time(now).map(Time), |one| one.last_transition_time.clone());
    conditions.retain(|condition| condition.type_ != said.type_);
    conditions.push(PodCondition {
        type_: said.type_.to_owned(),
        status: status.to_owned(),
        reason: Some(said.reason.to_owned()),
        message: Some(said.message.clone()),
        last_transition_time: since,
        ..PodCondition::default()
    });
}

/// Says something of a PodGroup, in its status.
pub fn say_of_group(group: &mut PodGroup, said: &Said, now: Timestamp) {
    let Some(now) = time(now).map(Time) else { return };
    let conditions = group.status.get_or_insert_default().conditions.get_or_insert_default();
    set_condition(conditions, said.type_, said.holds, said.reason, said.message.clone(), &now);
}

fn set_launch(job: &mut Job, launch: &Launch) {
    let Launch { parallelism, node_selector, tolerations } = launch.clone();
    let spec = job.spec.get_or_insert_default();
    spec.parallelism = Some(parallelism);
    let pod = spec.template.spec.get_or_insert_default();
    pod.node_selector = Some(node_selector).filter(|selector| !selector.is_empty());
    pod.tolerations = Some(tolerations).filter(|tolerations| !tolerations.is_empty());
}

/// Whether a condition holds.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

fn set_condition(conditions: &mut Vec<Condition>, type_: &str, is: bool, reason: &str, message: String, now: &Time) {
    let status = if is { "True" } else { "False" };
    let before = conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status);
    let since = before.map_or_else(|| now.clone(), |condition| condition.last_transition_time.clone());
    conditions.retain(|condition| condition.type_ != type_);
    conditions.push(Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: since,
        observed_generation: None,
    });
}

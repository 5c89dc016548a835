//! The actions that carry out a decision, in order, with the messages of their conditions and events. `plan -o wide` shows the list and the
//! scheduler executes it, so both have the same labels, messages and reasons.

use std::fmt;

use reprieve_api::NamespacedName;
use reprieve_engine::choose::Plan;
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::kueue::PreemptionReason;
use reprieve_engine::workloads::OnPreemption;
use reprieve_engine::{EvictionReason, Policy, UnitId, WorkloadId};
use reprieve_loader::Loaded;
use serde::Serialize;

use crate::unit_ref::UnitRef;

/// Event reason on a victim.
pub const PREEMPTED: &str = "Preempted";
/// Event reason on a preemptor.
pub const PREEMPTING: &str = "Preempting";
/// Event reason on a bound pod.
pub const SCHEDULED: &str = "Scheduled";
/// Event reason on an admitted workload.
pub const ADMITTED: &str = "Admitted";
/// Event reason and message on a Job that is resumed.
pub const STARTED: (&str, &str) = ("Started", "Workload admitted");
/// Event reason and message on a Job that is suspended.
pub const STOPPED: (&str, &str) = ("Stopped", "Workload has no quota or is being evicted");
/// The number of victims that the event on a preemptor names.
const MAX_NAMED: usize = 5;
/// The initiator in the annotation for soft eviction.
const INITIATOR: &str = "reprieve";

/// An action of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedAction {
    /// Nominate a node for a pod of the preemptor.
    Nominate {
        /// The pod.
        pod: NamespacedName,
        /// The node; `None` removes the nomination.
        node: Option<String>,
    },
    /// Mark a pod as a victim with the condition `DisruptionTarget`.
    Mark {
        /// The pod.
        pod: NamespacedName,
        /// The message.
        message: String,
    },
    /// Remove the mark of a pod that is no longer a victim.
    Unmark {
        /// The pod.
        pod: NamespacedName,
    },
    /// Evict a pod, and record an event about it.
    Evict {
        /// The pod.
        pod: NamespacedName,
        /// If set, the pod is not deleted but gets the label [`SOFT_EVICTION`](reprieve_api::pod::SOFT_EVICTION) and an annotation of the
        /// same key with this value, and another operator evicts it.
        note: Option<String>,
        /// The reason, for the event.
        why: String,
    },
    /// Evict a workload, and record an event about it: its pods are deleted, and the workload is requeued or terminated.
    EvictWorkload {
        /// The workload.
        workload: NamespacedName,
        /// The reason, for the condition and the event.
        reason: PreemptionReason,
        /// Whether the workload is requeued or terminated.
        then: OnPreemption,
        /// The Job of the workload, to be suspended.
        job: Option<NamespacedName>,
    },
}

/// The actions that carry out a plan.
pub fn planned_actions(loaded: &Loaded, policy: &Policy, preemptor: &Preemptor, plan: &Plan) -> Vec<PlannedAction> {
    if let Policy::Kueue(_) = policy {
        return workload_evictions(loaded, plan);
    }
    let unit = preemptor_ref(loaded, policy, preemptor);
    // A running pod that waits for a resize is not nominated.
    let pending = plan.placement.iter().filter(|(pod, _)| loaded.snapshot.bound_node(*pod).is_none());
    let nominations = pending.map(|&(pod, node)| PlannedAction::Nominate {
        pod: loaded.names.pod(pod).clone(),
        node: Some(loaded.names.node(node).to_owned()),
    });
    let victims: Vec<(NamespacedName, String)> = plan
        .victims
        .iter()
        .zip(&plan.reasons)
        .flat_map(|(&victim, reason)| {
            let why = why(loaded, preemptor, victim, *reason);
            loaded.snapshot.unit(victim).pods.iter().map(move |&pod| (loaded.names.pod(pod).clone(), why.clone()))
        })
        .collect();
    let marks = victims.iter().map(|(pod, _)| mark(&unit, pod.clone()));
    let evictions = victims.iter().map(|(pod, why)| evict(&unit, policy, pod.clone(), why.clone()));
    nominations.chain(marks).chain(evictions).collect()
}

/// The victims of a plan.
pub fn victims(planned: &[PlannedAction]) -> impl Iterator<Item = &NamespacedName> {
    planned.iter().filter_map(|action| match action {
        PlannedAction::Evict { pod, .. } => Some(pod),
        _ => None,
    })
}

/// The Job that owns a workload.
pub(crate) fn job_of(loaded: &Loaded, id: WorkloadId) -> Option<NamespacedName> {
    let job = loaded.snapshot.workload(id).job?;
    Some(NamespacedName::new(&loaded.names.workload(id).namespace, loaded.names.text(job)))
}

/// Marks a pod as a victim of a preemptor.
pub fn mark(preemptor: &UnitRef, pod: NamespacedName) -> PlannedAction {
    PlannedAction::Mark { pod, message: message(preemptor) }
}

/// Evicts a victim of a preemptor as the policy does: by deletion or by label.
pub fn evict(preemptor: &UnitRef, policy: &Policy, pod: NamespacedName, why: String) -> PlannedAction {
    let is_soft = matches!(policy, Policy::Koordinator(policy) if !policy.deletes_victims);
    PlannedAction::Evict {
        pod,
        note: is_soft.then(|| soft_eviction_note(&preemptor.key().name.to_string(), preemptor)),
        why,
    }
}

/// The actions of a plan of policy Kueue: one for each victim that is not evicted already.
pub fn workload_evictions(loaded: &Loaded, plan: &Plan) -> Vec<PlannedAction> {
    let victims = plan.victims.iter().zip(&plan.reasons).filter_map(|(&unit, reason)| {
        let EvictionReason::Quota(reason) = *reason else { return None };
        let id = loaded.snapshot.unit(unit).workload?;
        let workload = loaded.snapshot.workload(id);
        let is_evicted = workload.admission.as_ref().is_none_or(|admission| admission.evicted);
        let (name, then) = (loaded.names.workload(id).clone(), workload.on_preemption);
        let job = job_of(loaded, id);
        (!is_evicted).then_some(PlannedAction::EvictWorkload { workload: name, reason, then, job })
    });
    victims.collect()
}

/// The reference to the preemptor that its victims carry.
pub fn preemptor_ref(loaded: &Loaded, policy: &Policy, preemptor: &Preemptor) -> UnitRef {
    let names = &loaded.names;
    match (policy, preemptor.id) {
        (_, PreemptorId::Group(group)) => UnitRef::Group(names.group(group).clone()),
        (_, PreemptorId::Workload(workload)) => UnitRef::Workload(names.workload(workload).clone()),
        (Policy::Koordinator(_), PreemptorId::Pod(pod)) if let Some(job) = loaded.snapshot.pod(pod).job => {
            UnitRef::Job(names.job(job).clone())
        }
        (_, PreemptorId::Pod(pod)) => UnitRef::Pod(names.pod(pod).clone()),
    }
}

/// Why a unit is a victim of a plan.
fn why(loaded: &Loaded, preemptor: &Preemptor, victim: UnitId, reason: EvictionReason) -> String {
    let queue = |queue| loaded.names.queue(queue);
    match reason {
        EvictionReason::LowerPriority => {
            format!("priority {} is below {}", loaded.snapshot.unit(victim).priority.0, preemptor.priority.0)
        }
        EvictionReason::NoGuarantee { queue: of } => format!("queue {} has no guarantee", queue(of)),
        EvictionReason::OverGuarantee { queue: of } => format!("queue {} uses more than its guarantee", queue(of)),
        EvictionReason::DaemonNeedsNode => "a DaemonSet pod needs the node".to_owned(),
        EvictionReason::Quota(reason) => format!("{reason:?}"),
    }
}

/// Event message on a bound pod.
pub fn bound(node: &str) -> String {
    format!("bound to {node}")
}

/// Event message on an admitted workload.
pub fn admitted(cluster_queue: &str) -> String {
    format!("admitted by ClusterQueue {cluster_queue}")
}

/// Condition message on a victim.
pub fn message(preemptor: &dyn fmt::Display) -> String {
    format!("preempted for {preemptor}")
}

/// Event message on a victim.
pub fn preempted(preemptor: &dyn fmt::Display, why: &str) -> String {
    format!("{}: {why}", message(preemptor))
}

/// Condition message on a workload that is a victim.
pub fn workload_preempted(preemptor: &dyn fmt::Display, reason: PreemptionReason) -> String {
    format!("preempted for workload {preemptor}: {reason:?}")
}

/// Event message on a preemptor: the first victims, each with the reason.
pub fn preempting(victims: &[(impl fmt::Display, String)]) -> String {
    let named = victims.iter().take(MAX_NAMED).map(|(victim, why)| format!("evicting {victim}: {why}"));
    let others = victims.len().saturating_sub(MAX_NAMED);
    let rest = (others > 0).then(|| format!("and {others} more"));
    named.chain(rest).collect::<Vec<_>>().join("; ")
}

/// Event message on a workload for which another one is evicted.
pub fn preempting_workload(victim: &dyn fmt::Display) -> String {
    format!("evicting Workload {victim}")
}

/// docs/rules/koordinator.md#q13: the value of the annotation for soft eviction, as JSON: the name of the preemptor, as the victim shows it,
/// and fields that Koordinator's own annotation of this key has.
pub fn soft_eviction_note(name: &str, preemptor: &dyn fmt::Display) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Note<'a> {
        preempt_job: &'a str,
        initiator: &'a str,
        reason: String,
    }
    let note = Note { preempt_job: name, initiator: INITIATOR, reason: message(preemptor) };
    serde_json::to_string(&note).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use reprieve_api::{Kind, ObjectKey};

    use super::*;

    #[test]
    fn soft_eviction_note_is_json() {
        let job = UnitRef::Job(NamespacedName::new("team", "train"));
        let expected = r#"{"preemptJob":"team/train","initiator":"reprieve","reason":"preempted for Job team/train"}"#;
        assert_eq!(soft_eviction_note("team/train", &job), expected);
    }

    #[test]
    fn event_of_a_preemptor_names_the_first_victims() {
        let victim = |index: usize| {
            (ObjectKey::new(Kind::Pod, NamespacedName::new("default", &format!("v{index}"))), "why".to_owned())
        };
        let victims: Vec<_> = (0..7).map(victim).collect();
        assert!(preempting(&victims[..1]).eq("evicting Pod default/v0: why"));
        assert!(preempting(&victims).ends_with("evicting Pod default/v4: why; and 2 more"));
    }
}

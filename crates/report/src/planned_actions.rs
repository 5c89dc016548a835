//! What is done to objects when a plan is carried out, in this order. `plan` shows the list, and the scheduler performs it: both have it
//! from here, with the same labels, messages and reasons.

use reprieve_api::kinds::{Key, Kind};
use reprieve_api::meta::FullName;
use reprieve_engine::UnitId;
use reprieve_engine::choose::Plan;
use reprieve_engine::fit::{Ask, Preemptor};
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::Ground;
use reprieve_engine::workloads::OnPreemption;
use reprieve_loader::load::Loaded;

use crate::decision::ActionReport;
use crate::unit_name::UnitName;

/// The label of a victim that another operator evicts.
pub const SOFT_EVICTION: &str = "scheduling.koordinator.sh/soft-eviction";
/// The reason of the event of a pod or a workload that is a victim.
pub const PREEMPTED: &str = "Preempted";
/// The reason of the event of a preemptor.
pub const PREEMPTING: &str = "Preempting";
/// How many victims the event of a preemptor names.
const MAX_NAMED: usize = 5;
/// The most characters that the value of a label may have.
const MAX_LABEL: usize = 63;

/// Something that is done when a plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedAction {
    /// Nominate a node for a pod of the preemptor.
    Nominate {
        /// The pod.
        pod: FullName,
        /// The node.
        node: String,
    },
    /// Mark a pod as a victim: the condition `DisruptionTarget` with this message.
    Mark {
        /// The pod.
        pod: FullName,
        /// The message.
        message: String,
    },
    /// Evict a pod, and record an event about it.
    Evict {
        /// The pod.
        pod: FullName,
        /// `Some`: the pod is not deleted; it gets the label [`SOFT_EVICTION`] with this value, for another operator to evict it.
        label: Option<String>,
        /// Why it is a victim.
        why: String,
    },
    /// Evict a workload, and record an event about it: its pods are deleted, and it waits for quota again or is over.
    EvictWorkload {
        /// The workload.
        workload: FullName,
        /// Why it is a victim.
        ground: Ground,
        /// What becomes of it.
        then: OnPreemption,
    },
}

/// All that is done when a plan is carried out.
pub fn planned_actions(loaded: &Loaded, policy: &Policy, ask: &Ask, plan: &Plan) -> Vec<PlannedAction> {
    if let Policy::Kueue(_) = policy {
        return workload_evictions(loaded, plan);
    }
    let unit = preemptor(loaded, policy, ask);
    // A pod that runs already, and only grows, is not nominated.
    let pending = plan.placement.iter().filter(|(pod, _)| loaded.snapshot.home(*pod).is_none());
    let nominations = pending.map(|&(pod, node)| PlannedAction::Nominate {
        pod: loaded.names.pod(pod).clone(),
        node: loaded.names.node(node).to_owned(),
    });
    let victims: Vec<(FullName, String)> = plan
        .victims
        .iter()
        .flat_map(|&victim| loaded.snapshot.unit(victim).pods.iter().map(move |&pod| (victim, pod)))
        .map(|(victim, pod)| (loaded.names.pod(pod).clone(), why(loaded, policy, ask, victim)))
        .collect();
    let marks = victims.iter().map(|(pod, _)| mark(&unit, pod.clone()));
    let evictions = victims.iter().map(|(pod, why)| evict(&unit, policy, pod.clone(), why.clone()));
    nominations.chain(marks).chain(evictions).collect()
}

/// Whether there is something to do: a pod that is nominated to the node already is not nominated again.
pub(crate) fn is_pending(loaded: &Loaded, action: &PlannedAction) -> bool {
    match action {
        PlannedAction::Nominate { pod, node } => {
            let nominated = loaded.names.pod_id(pod).and_then(|pod| loaded.snapshot.pod(pod).nominated);
            nominated.is_none_or(|nominated| loaded.names.node(nominated) != node)
        }
        PlannedAction::Mark { .. } | PlannedAction::Evict { .. } | PlannedAction::EvictWorkload { .. } => true,
    }
}

/// Marks a pod as a victim of a preemptor.
pub fn mark(preemptor: &UnitName, pod: FullName) -> PlannedAction {
    PlannedAction::Mark { pod, message: message(preemptor) }
}

/// Evicts a victim of a preemptor, in the way of the policy.
pub fn evict(preemptor: &UnitName, policy: &Policy, pod: FullName, why: String) -> PlannedAction {
    let is_soft = matches!(policy, Policy::Koordinator(policy) if !policy.deletes_victims);
    PlannedAction::Evict { pod, label: is_soft.then(|| label_value(&message(preemptor))), why }
}

/// The same for a plan of policy Kueue. A workload that was evicted already is left as it is.
pub fn workload_evictions(loaded: &Loaded, plan: &Plan) -> Vec<PlannedAction> {
    let victims = plan.victims.iter().zip(&plan.grounds).filter_map(|(&unit, &ground)| {
        let id = loaded.snapshot.unit(unit).workload?;
        let workload = loaded.snapshot.workload(id);
        let is_evicted = workload.admission.as_ref().is_none_or(|admission| admission.evicted);
        let (name, then) = (loaded.names.workload(id).clone(), workload.on_preemption);
        (!is_evicted).then_some(PlannedAction::EvictWorkload { workload: name, ground, then })
    });
    victims.collect()
}

/// The preemptor by name, as victims refer to it.
pub fn preemptor(loaded: &Loaded, policy: &Policy, ask: &Ask) -> UnitName {
    let names = &loaded.names;
    match (policy, ask.preemptor) {
        (_, Preemptor::Group(group)) => UnitName::Group(names.group(group).clone()),
        (_, Preemptor::Workload(workload)) => UnitName::Workload(names.workload(workload).clone()),
        (Policy::Koordinator(_), Preemptor::Pod(pod)) if let Some(job) = loaded.snapshot.pod(pod).job => {
            UnitName::Job(names.job(job).clone())
        }
        (_, Preemptor::Pod(pod)) => UnitName::Pod(names.pod(pod).clone()),
    }
}

/// Why a unit is a victim of a plan.
fn why(loaded: &Loaded, policy: &Policy, ask: &Ask, victim: UnitId) -> String {
    let Loaded { snapshot, names, .. } = loaded;
    let victim = snapshot.unit(victim);
    let queue = victim.pods.first().and_then(|&pod| snapshot.pod(pod).queue);
    let for_daemon = matches!(ask.preemptor, Preemptor::Pod(pod) if snapshot.pod(pod).daemon);
    match (policy, queue) {
        (Policy::YuniKorn, _) if for_daemon => "a pod of a DaemonSet needs its node".to_owned(),
        (Policy::YuniKorn, Some(queue)) => format!("its queue {} uses more than it is guaranteed", names.queue(queue)),
        _ => format!("its priority {} is below {}", victim.priority.0, ask.priority.0),
    }
}

/// The message of the condition of a victim.
pub fn message(preemptor: &UnitName) -> String {
    format!("preempted for {preemptor}")
}

/// The message of the event of a victim.
pub fn preempted(preemptor: &UnitName, why: &str) -> String {
    format!("{}: {why}", message(preemptor))
}

/// The message of the condition of a workload that is a victim.
pub fn workload_preempted(preemptor: &FullName, ground: Ground) -> String {
    format!("preempted for workload {preemptor}: {ground:?}")
}

/// The message of the event of a preemptor: why each victim is evicted, for the first few.
pub fn preempting(victims: &[(Key, String)]) -> String {
    let named = victims.iter().take(MAX_NAMED).map(|(victim, why)| format!("{victim} yields for it: {why}"));
    let others = victims.len().saturating_sub(MAX_NAMED);
    let rest = (others > 0).then(|| format!("and {others} others"));
    named.chain(rest).collect::<Vec<_>>().join("; ")
}

/// The message of the event of a workload for which another one is evicted.
pub fn preempting_workload(victim: &FullName) -> String {
    format!("Workload {victim} yields for it")
}

/// A message as the value of a label: with the characters that the API allows, and no longer than it allows.
fn label_value(message: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = message.chars().map(allowed).take(MAX_LABEL).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// The actions as rows.
pub(crate) fn rows(unit: &UnitName, actions: &[PlannedAction]) -> Vec<ActionReport> {
    let mut rows = Vec::new();
    let mut victims = Vec::new();
    for action in actions {
        match action {
            PlannedAction::Nominate { pod, node } => rows.push(on_pod("Nominate", pod, node.clone())),
            PlannedAction::Mark { pod, message } => rows.push(on_pod("Mark", pod, message.clone())),
            PlannedAction::Evict { pod, label, why } => {
                rows.push(match label {
                    Some(value) => on_pod("Label", pod, format!("{SOFT_EVICTION}: {value}")),
                    None => on_pod("Delete", pod, String::new()),
                });
                rows.push(on_pod("Event", pod, format!("{PREEMPTED}: {}", preempted(unit, why))));
                victims.push((Key::new(Kind::Pod, pod.clone()), why.clone()));
            }
            PlannedAction::EvictWorkload { workload, ground, then } => {
                let action = match then {
                    OnPreemption::Requeue => "Requeue",
                    OnPreemption::Terminate => "Terminate",
                };
                let preemptor = unit.key().name;
                rows.push(on_workload(action, workload, workload_preempted(&preemptor, *ground)));
                let event = preempted(unit, &format!("{ground:?}"));
                rows.push(on_workload("Event", workload, format!("{PREEMPTED}: {event}")));
                let event = preempting_workload(workload);
                rows.push(on_workload("Event", &preemptor, format!("{PREEMPTING}: {event}")));
            }
        }
    }
    if !victims.is_empty() {
        let text = format!("{PREEMPTING}: {}", preempting(&victims));
        let name = unit.key().name.to_string();
        rows.push(match unit {
            UnitName::Group(_) | UnitName::Job(_) => ActionReport { group: name, ..row("Event", text) },
            UnitName::Pod(_) | UnitName::Workload(_) | UnitName::BatchJob(_) => {
                ActionReport { pod: name, ..row("Event", text) }
            }
        });
    }
    rows
}

fn row(action: &'static str, text: String) -> ActionReport {
    ActionReport { action, pod: String::new(), workload: String::new(), group: String::new(), text }
}

fn on_pod(action: &'static str, pod: &FullName, text: String) -> ActionReport {
    ActionReport { pod: pod.to_string(), ..row(action, text) }
}

fn on_workload(action: &'static str, workload: &FullName, text: String) -> ActionReport {
    ActionReport { workload: workload.to_string(), ..row(action, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_value_is_valid() {
        assert_eq!(label_value("preempted for PodGroup a/b"), "preempted-for-PodGroup-a-b");
        assert_eq!(label_value(&"x".repeat(80)).len(), 63);
        assert_eq!(label_value("preempted for Pod a/b."), "preempted-for-Pod-a-b");
    }

    #[test]
    fn the_event_of_a_preemptor_names_the_first_victims() {
        let victim = |at: usize| (Key::new(Kind::Pod, FullName::new("default", &format!("v{at}"))), "why".to_owned());
        let victims: Vec<_> = (0..7).map(victim).collect();
        assert!(preempting(&victims[..1]).eq("Pod default/v0 yields for it: why"));
        assert!(preempting(&victims).ends_with("Pod default/v4 yields for it: why; and 2 others"));
    }
}

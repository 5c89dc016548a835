//! The remaining actions of a decision as rows of `plan -o wide`.

use reprieve_api::pod::{PREEMPTED as PREEMPTED_VALUE, SOFT_EVICTION};
use reprieve_api::{Kind, NamespacedName, ObjectKey};
use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::workloads::OnPreemption;
use reprieve_engine::{Outcome, Policy, WorkloadId};
use reprieve_loader::Loaded;

use crate::decision::ActionReport;
use crate::loaded_states::LoadedStates;
use crate::planned_actions::{
    ADMITTED, PREEMPTED, PREEMPTING, PlannedAction, SCHEDULED, STARTED, STOPPED, admitted, bound, job_of,
    planned_actions, preempted, preempting, preempting_workload, preemptor_ref, workload_evictions, workload_preempted,
};
use crate::remaining_actions::Remaining;
use crate::unit_ref::UnitRef;

/// The detail of a nomination that is cleared.
const NO_NODE: &str = "no node";

/// The remaining actions that carry out a decision, as rows. Under policies other than Kueue they include the removal of nominations and
/// marks that the decision no longer needs.
pub(crate) fn report_actions(
    loaded: &mut Loaded,
    policy: &Policy,
    preemptor: &Preemptor,
    outcome: &Outcome,
) -> Vec<ActionReport> {
    let unit = preemptor_ref(loaded, policy, preemptor);
    match (outcome, preemptor.id) {
        (Outcome::Wait(_) | Outcome::Unschedulable(_), PreemptorId::Workload(_)) => return Vec::new(),
        (Outcome::Schedule(_), PreemptorId::Workload(id)) => return admission(loaded, id),
        (Outcome::Preempt(plan), PreemptorId::Workload(_)) => return rows(&unit, &workload_evictions(loaded, plan)),
        _ => {}
    }
    let is_in_progress = matches!(outcome, Outcome::Preempt(_)) && is_in_progress(loaded, policy, &unit, preemptor);
    let states = LoadedStates { loaded, policy, preemptor };
    let remaining = Remaining { loaded, policy, unit: &unit, states: &states };
    match outcome {
        Outcome::Schedule(placement) => {
            let mut all = Vec::new();
            for &(pod, node) in placement {
                let (pod, node) = (loaded.names.pod(pod), loaded.names.node(node));
                all.push(on_pod("Bind", pod, node.to_owned()));
                all.push(on_pod("Event", pod, format!("{SCHEDULED}: {}", bound(node))));
            }
            all.extend(rows(&unit, &remaining.without_victims()));
            all
        }
        Outcome::Unschedulable(_) => {
            let (nominations, marks) = (remaining.nominate(&[]), remaining.without_victims());
            rows(&unit, &[nominations, marks].concat())
        }
        Outcome::Wait(_) => rows(&unit, &remaining.of_broken_groups()),
        Outcome::Preempt(_) if is_in_progress => rows(&unit, &remaining.of_broken_groups()),
        Outcome::Preempt(plan) => {
            let remaining = remaining.of_plan(&planned_actions(loaded, policy, preemptor, plan));
            [rows(&unit, &remaining.preparations), rows(&unit, &remaining.evictions)].concat()
        }
    }
}

/// Whether the preemptor waits for earlier victims instead of taking those of a new plan.
fn is_in_progress(loaded: &mut Loaded, policy: &Policy, unit: &UnitRef, preemptor: &Preemptor) -> bool {
    let states = LoadedStates { loaded, policy, preemptor };
    let earlier = Remaining { loaded, policy, unit, states: &states }.terminating_victims(preemptor);
    earlier.is_some_and(|victims| victims.make_room_for(preemptor, &mut loaded.snapshot))
}

/// Admits a workload and resumes its Job.
fn admission(loaded: &Loaded, id: WorkloadId) -> Vec<ActionReport> {
    let (name, queue) = (loaded.names.workload(id), loaded.snapshot.workload(id).queue);
    let queue = queue.map(|queue| loaded.names.queue(queue)).unwrap_or_default();
    let mut rows = vec![on_workload("Admit", name, queue.to_owned())];
    rows.push(on_workload("Event", name, format!("{ADMITTED}: {}", admitted(queue))));
    rows.extend(job_of(loaded, id).into_iter().flat_map(|job| on_job("Start", &job, STARTED)));
    rows
}

/// The actions as rows.
fn rows(unit: &UnitRef, actions: &[PlannedAction]) -> Vec<ActionReport> {
    let mut rows = Vec::new();
    let mut victims = Vec::new();
    for action in actions {
        match action {
            PlannedAction::Nominate { pod, node } => {
                let node = node.clone().unwrap_or_else(|| NO_NODE.to_owned());
                rows.push(on_pod("Nominate", pod, node));
            }
            PlannedAction::Unmark { pod } => rows.push(on_pod("Unmark", pod, String::new())),
            PlannedAction::Mark { pod, message } => rows.push(on_pod("Mark", pod, message.clone())),
            PlannedAction::Evict { pod, note, why } => {
                rows.push(match note {
                    Some(note) => {
                        on_pod("Label", pod, format!("{SOFT_EVICTION}: {PREEMPTED_VALUE}, annotation {note}"))
                    }
                    None => on_pod("Delete", pod, String::new()),
                });
                rows.push(on_pod("Event", pod, format!("{PREEMPTED}: {}", preempted(unit, why))));
                victims.push((ObjectKey::new(Kind::Pod, pod.clone()), why.clone()));
            }
            PlannedAction::EvictWorkload { workload, reason, then, job } => {
                let action = match then {
                    OnPreemption::Requeue => "Requeue",
                    OnPreemption::Terminate => "Terminate",
                };
                let preemptor = unit.key().name;
                rows.push(on_workload(action, workload, workload_preempted(&preemptor, *reason)));
                let event = preempted(unit, &format!("{reason:?}"));
                rows.push(on_workload("Event", workload, format!("{PREEMPTED}: {event}")));
                let event = preempting_workload(workload);
                rows.push(on_workload("Event", &preemptor, format!("{PREEMPTING}: {event}")));
                rows.extend(job.iter().flat_map(|job| on_job("Suspend", job, STOPPED)));
            }
        }
    }
    if !victims.is_empty() {
        let text = format!("{PREEMPTING}: {}", preempting(&victims));
        let name = unit.key().name.to_string();
        let (pod, group) = match unit {
            UnitRef::Group(_) | UnitRef::Job(_) => (String::new(), name),
            UnitRef::Pod(_) | UnitRef::Workload(_) | UnitRef::BatchJob(_) => (name, String::new()),
        };
        rows.push(ActionReport { action: "Event", pod, group, text, ..ActionReport::default() });
    }
    rows
}

fn on_pod(action: &'static str, pod: &NamespacedName, text: String) -> ActionReport {
    ActionReport { action, pod: pod.to_string(), text, ..ActionReport::default() }
}

/// An action on a Job, and the event about it.
fn on_job(action: &'static str, job: &NamespacedName, (reason, message): (&str, &str)) -> [ActionReport; 2] {
    let row = |action, text| ActionReport { action, group: job.to_string(), text, ..ActionReport::default() };
    [row(action, String::new()), row("Event", format!("{reason}: {message}"))]
}

fn on_workload(action: &'static str, workload: &NamespacedName, text: String) -> ActionReport {
    ActionReport { action, workload: workload.to_string(), text, ..ActionReport::default() }
}

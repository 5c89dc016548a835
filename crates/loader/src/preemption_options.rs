//! Reads options of Kueue's design document that Kueue itself does not have: the order of candidates, the cost of a preemption, the
//! waiting time before a preemption, and what happens to a preempted workload. None of them is on by default.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use reprieve_engine::Timestamp;
use reprieve_engine::workloads::{ByPriority, ByRuntime, Milestone, OnPreemption, Sorting};

use crate::timestamp;
use reprieve_api::InputError;
use reprieve_api::kueue::{KueueWorkload, KueueWorkloadStatus, MilestoneSpec};

/// A workload may not preempt for this time after it was preempted once and queued again.
const PAUSE_SECONDS: i64 = 300;
/// Each further preemption doubles the pause, at most this often (to two weeks).
const MAX_DOUBLINGS: u32 = 12;

/// Reads the order of candidates. Priority and runtime may each be named once.
pub fn sorting(criteria: &[String]) -> Result<Sorting, InputError> {
    if criteria.is_empty() {
        return Ok(Sorting::default());
    }
    let mut sorting = Sorting { priority: ByPriority::Never, runtime: ByRuntime::Never };
    for criterion in criteria {
        match (criterion.as_str(), sorting.priority, sorting.runtime) {
            ("ByLowestPriority", ByPriority::Never, ByRuntime::Never) => sorting.priority = ByPriority::First,
            ("ByLowestPriority", ByPriority::Never, _) => sorting.priority = ByPriority::Last,
            ("ByLowestRuntime", _, ByRuntime::Never) => sorting.runtime = ByRuntime::Lowest,
            ("ByLongestRuntime", _, ByRuntime::Never) => sorting.runtime = ByRuntime::Longest,
            _ => {
                let known = "ByLowestPriority, ByLowestRuntime or ByLongestRuntime, priority and runtime once each";
                let problem = format!("{criterion:?} is not valid; write {known}");
                return Err(InputError::new(problem).field("spec.preemption.workloadSorting"));
            }
        }
    }
    Ok(sorting)
}

pub fn milestones(workload: &KueueWorkload) -> Result<Vec<Milestone>, InputError> {
    let written = workload.spec.preemption.iter().flat_map(|spec| &spec.disruption_cost_milestones);
    let mut milestones: Vec<Milestone> = Vec::new();
    for (index, MilestoneSpec { seconds, cost }) in written.enumerate() {
        let field = |name: &str| format!("spec.preemption.disruptionCostMilestones[{index}].{name}");
        let number = |value: i64, name: &str| {
            let problem = format!("{value} is not between 0 and {}; write a number in this range", u32::MAX);
            u32::try_from(value).map_err(|_| InputError::new(problem).field(field(name)))
        };
        let milestone = Milestone { seconds: number(*seconds, "seconds")?, cost: number(*cost, "cost")? };
        if milestones.last().is_some_and(|last| last.seconds >= milestone.seconds) {
            let problem = format!("{seconds} is not later than the milestone before it; sort them by seconds");
            return Err(InputError::new(problem).field(field("seconds")));
        }
        milestones.push(milestone);
    }
    Ok(milestones)
}

pub fn on_preemption(workload: &KueueWorkload) -> Result<OnPreemption, InputError> {
    let choices = [("Requeue", OnPreemption::Requeue), ("Terminate", OnPreemption::Terminate)];
    parse_choice("spec.onPreemption", workload.spec.on_preemption.as_deref(), &choices)
}

/// Returns the time from which a preempted workload may preempt again: five minutes after it was requeued, doubled by each further
/// preemption.
pub fn preempts_from(status: &KueueWorkloadStatus) -> Option<Timestamp> {
    let evictions = status.scheduling_stats.iter().flat_map(|stats| &stats.evictions);
    let times: i64 = evictions.filter(|stats| stats.reason == "Preempted").map(|stats| i64::from(stats.count)).sum();
    let requeued =
        status.conditions.iter().find(|condition| condition.type_ == "Requeued" && condition.status == "True")?;
    let doublings = u32::try_from(times - 1).ok()?.min(MAX_DOUBLINGS);
    Some(timestamp(requeued.last_transition_time.0).plus_seconds(PAUSE_SECONDS << doublings))
}

/// Returns the time since which a workload waits: the time at which a scheduler first refused it.
pub fn waiting_since(conditions: &[Condition]) -> Option<Timestamp> {
    let refused =
        |kind: &str| conditions.iter().find(|condition| condition.type_ == kind && condition.status == "False");
    let refused = refused("QuotaReserved").or_else(|| refused("Admitted"));
    refused.map(|condition| timestamp(condition.last_transition_time.0))
}

/// Returns the value for the text of a field; the first choice is the default. Further names of a value follow its first name.
pub(crate) fn parse_choice<T: Copy + PartialEq>(
    field: &str,
    text: Option<&str>,
    choices: &[(&str, T)],
) -> Result<T, InputError> {
    let Some(text) = text else { return Ok(choices[0].1) };
    let names: Vec<&str> = choices.chunk_by(|a, b| a.1 == b.1).map(|same| same[0].0).collect();
    let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        InputError::new(format!("{text:?} is not valid; write one of {}", names.join(", "))).field(field)
    })
}

//! What a queue and a workload say of being preempted, beyond whom the law lets go: who goes first, when, at what cost, and what
//! becomes of them. All of it is from the design that Kueue comes from, and nothing of it is on by default.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use reprieve_engine::Timestamp;
use reprieve_engine::workloads::{ByPriority, ByRuntime, Milestone, OnPreemption, Sorting};

use crate::timestamp;
use reprieve_api::InputError;
use reprieve_api::kueue::{KueueWorkload, KueueWorkloadStatus, MilestoneSpec};

/// How long a workload that was preempted preempts nobody, the first time.
const PAUSE_SECONDS: i64 = 300;
/// How often that is doubled at most: it is three weeks then.
const MAX_DOUBLINGS: u32 = 12;

/// A criterion that is named twice, or both ways of comparing running times, say nothing clear.
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
                let problem = format!("{criterion:?} is not understood; write {known}");
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
            let problem = format!("{value} is not between 0 and {}", u32::MAX);
            u32::try_from(value).map_err(|_| InputError::new(problem).field(field(name)))
        };
        let milestone = Milestone { seconds: number(*seconds, "seconds")?, cost: number(*cost, "cost")? };
        if milestones.last().is_some_and(|last| last.seconds >= milestone.seconds) {
            let problem =
                format!("{seconds} is not later than the milestone before it; write them in the order of time");
            return Err(InputError::new(problem).field(field("seconds")));
        }
        milestones.push(milestone);
    }
    Ok(milestones)
}

pub fn on_preemption(workload: &KueueWorkload) -> Result<OnPreemption, InputError> {
    let choices = [("Requeue", OnPreemption::Requeue), ("Terminate", OnPreemption::Terminate)];
    parse_choice("spec.onPreemption", workload.spec.on_preemption.as_deref(), &choices, "Requeue or Terminate")
}

/// From when on a workload that was preempted may preempt others again: five minutes after it was put back into its queue, and twice as
/// long each further time.
pub fn preempts_from(status: &KueueWorkloadStatus) -> Option<Timestamp> {
    let evictions = status.scheduling_stats.iter().flat_map(|stats| &stats.evictions);
    let times: i32 = evictions.filter(|one| one.reason == "Preempted").map(|one| one.count).sum();
    let requeued = status.conditions.iter().find(|one| one.type_ == "Requeued" && one.status == "True")?;
    let doubled = u32::try_from(times - 1).ok()?.min(MAX_DOUBLINGS);
    Some(timestamp(requeued.last_transition_time.0).plus_seconds(PAUSE_SECONDS << doubled))
}

/// Since when a workload waits: a scheduler that looked at it and gave it nothing said so.
pub fn waiting_since(conditions: &[Condition]) -> Option<Timestamp> {
    let refused = |kind: &str| conditions.iter().find(|one| one.type_ == kind && one.status == "False");
    refused("QuotaReserved").or_else(|| refused("Admitted")).map(|one| timestamp(one.last_transition_time.0))
}

/// What the text of a field stands for: the first choice where the field is missing.
pub(crate) fn parse_choice<T: Copy>(
    field: &str,
    text: Option<&str>,
    choices: &[(&str, T)],
    names: &str,
) -> Result<T, InputError> {
    let Some(text) = text else { return Ok(choices[0].1) };
    let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| InputError::new(format!("{text:?} is not understood; write {names}")).field(field))
}

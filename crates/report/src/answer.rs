//! The outcome of a decision with names instead of ids, in the form of a test file's `expect`.

use std::collections::BTreeMap;

use reprieve_api::answer::Answer;
use reprieve_api::{OutcomeName, VictimRef};
use reprieve_engine::fit::Placement;
use reprieve_engine::{EvictionReason, Outcome, PodId};
use reprieve_loader::{Loaded, Question};

/// Decides a question and returns the outcome with names.
pub fn answer(question: &Question, loaded: &mut Loaded) -> Answer {
    let outcome = question.decide(loaded);
    named(loaded, &question.preemptor(loaded).members, &outcome)
}

/// Converts an outcome for a preemptor with these members.
pub fn named(loaded: &Loaded, members: &[PodId], outcome: &Outcome) -> Answer {
    let name = |outcome, victims, nominated| Answer { outcome, victims, nominated };
    match outcome {
        Outcome::Schedule(placement) => name(OutcomeName::Schedule, Vec::new(), nominated(loaded, placement)),
        Outcome::Preempt(plan) => {
            let mut victims: Vec<VictimRef> = Vec::new();
            for (index, &unit) in plan.victims.iter().enumerate() {
                let unit = loaded.snapshot.unit(unit);
                let reason = match plan.reasons.get(index) {
                    Some(EvictionReason::Quota(reason)) => Some(format!("{reason:?}")),
                    _ => None,
                };
                let workload = unit.workload.map(|workload| loaded.names.workload(workload).to_string());
                if workload.is_some() {
                    victims.push(VictimRef { workload, reason, pod: None });
                    continue;
                }
                let pods = unit.pods.iter().map(|&pod| Some(loaded.names.pod(pod).to_string()));
                victims.extend(pods.map(|pod| VictimRef { pod, reason: reason.clone(), workload: None }));
            }
            victims.sort_unstable();
            name(OutcomeName::Preempt, victims, nominated(loaded, &plan.placement))
        }
        Outcome::Wait(_) => {
            let kept = members.iter().filter_map(|&pod| Some((pod, loaded.snapshot.pod(pod).nominated?)));
            name(OutcomeName::Wait, Vec::new(), nominated(loaded, &kept.collect()))
        }
        Outcome::Unschedulable(_) => name(OutcomeName::Unschedulable, Vec::new(), BTreeMap::new()),
    }
}

/// The nominations of a placement. A running pod that waits for a resize is not nominated.
fn nominated(loaded: &Loaded, placement: &Placement) -> BTreeMap<String, String> {
    let pending = placement.iter().filter(|(pod, _)| loaded.snapshot.bound_node(*pod).is_none());
    let names = |&(pod, node): &_| (loaded.names.pod(pod).to_string(), loaded.names.node(node).to_owned());
    pending.map(names).collect()
}

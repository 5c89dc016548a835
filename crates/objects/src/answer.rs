//! What came of a question, in names: the same words as a test's `expect`.

use std::collections::BTreeMap;

use reprieve_engine::fit::Placement;
use reprieve_engine::{Outcome, PodId};
use serde::Serialize;

use crate::load::Loaded;
use crate::test_file::{OutcomeName, VictimRef};

/// An outcome, its victims and its nominations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What came of it.
    pub outcome: OutcomeName,
    /// Who yields, by name.
    pub victims: Vec<VictimRef>,
    /// Pod to node, for every pod of the preemptor that is placed, or that keeps an earlier nomination.
    pub nominated: BTreeMap<String, String>,
}

impl Answer {
    /// Names what the engine decided.
    pub fn new(loaded: &Loaded, members: &[PodId], outcome: &Outcome) -> Self {
        let name = |outcome, victims, nominated| Self { outcome, victims, nominated };
        match outcome {
            Outcome::Schedule(placement) => name(OutcomeName::Schedule, Vec::new(), nominated(loaded, placement)),
            Outcome::Preempt(plan) => {
                let mut victims: Vec<VictimRef> = Vec::new();
                for (at, &unit) in plan.victims.iter().enumerate() {
                    let unit = loaded.snapshot.unit(unit);
                    let reason = plan.grounds.get(at).map(|ground| format!("{ground:?}"));
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
}

/// A pod that runs already, and only grows, is not nominated.
fn nominated(loaded: &Loaded, placement: &Placement) -> BTreeMap<String, String> {
    let pending = placement.iter().filter(|(pod, _)| loaded.snapshot.home(*pod).is_none());
    let names = |&(pod, node): &_| (loaded.names.pod(pod).to_string(), loaded.names.node(node).to_owned());
    pending.map(names).collect()
}

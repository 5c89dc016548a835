//! Groups evictions by decision: an arrow of the timeline is what one decision did to one job.

use std::collections::BTreeMap;

use reprieve_simulator::run::Run;

/// The evictions of one job by one decision.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrow<'r> {
    /// The time of the first eviction, in microseconds.
    pub at: i64,
    /// The job of the preemptor, if it is known.
    pub from: Option<&'r str>,
    /// The job of the victims.
    pub to: &'r str,
    /// The number of evicted pods.
    pub pods: usize,
    /// Whether the preemptor had been evicted before.
    pub second_order: bool,
    /// The index of the decision in the preemptions of the run.
    pub decision: Option<usize>,
}

/// The arrows of a run, in the order of time.
pub fn arrows(run: &Run) -> Vec<Arrow<'_>> {
    let mut decisions_of: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (index, preemption) in run.preemptions.iter().enumerate() {
        for victim in &preemption.victims {
            decisions_of.entry((&preemption.unit, victim.to_string())).or_default().push(index);
        }
    }
    let mut arrows: Vec<Arrow<'_>> = Vec::new();
    let mut index_of: BTreeMap<(Option<usize>, &str, &str), usize> = BTreeMap::new();
    for eviction in &run.evictions {
        let decisions = decisions_of.get(&(eviction.preemptor.as_str(), eviction.pod.clone()));
        let before = |index: &&usize| run.preemptions[**index].at.0 <= eviction.at;
        let decision = decisions.and_then(|decisions| decisions.iter().rev().find(before)).copied();
        let key = (decision, eviction.preemptor.as_str(), eviction.job.as_str());
        match index_of.get(&key).filter(|_| decision.is_some()) {
            Some(&index) => arrows[index].pods += 1,
            None => {
                index_of.insert(key, arrows.len());
                arrows.push(Arrow {
                    at: eviction.at,
                    from: eviction.preemptor_job.as_deref(),
                    to: &eviction.job,
                    pods: 1,
                    second_order: eviction.second_order,
                    decision,
                });
            }
        }
    }
    arrows
}

#[cfg(test)]
mod tests {
    use reprieve_api::meta::NamespacedName;
    use reprieve_engine::Timestamp;
    use reprieve_simulator::run::{Eviction, Preemption};

    use super::*;

    fn eviction(at: i64, pod: &str, job: &str) -> Eviction {
        Eviction {
            at,
            pod: format!("ns/{pod}"),
            job: format!("ns/{job}"),
            preemptor: "Pod ns/urgent".to_owned(),
            preemptor_job: Some("ns/urgent-job".to_owned()),
            second_order: false,
            foreseen: false,
        }
    }

    fn preemption(at: i64, victims: &[&str]) -> Preemption {
        Preemption {
            at: Timestamp(at),
            unit: "Pod ns/urgent".to_owned(),
            victims: victims.iter().map(|pod| NamespacedName::new("ns", pod)).collect(),
            placement: Vec::new(),
        }
    }

    #[test]
    fn evictions_of_one_job_by_one_decision_are_one_arrow() {
        let run = Run {
            preemptions: vec![preemption(1, &["a-0", "a-1", "b-0"]), preemption(9, &["a-0"])],
            evictions: vec![
                eviction(2, "a-0", "a"),
                eviction(3, "b-0", "b"),
                eviction(4, "a-1", "a"),
                eviction(5, "c-0", "c"),
            ],
            ..Run::default()
        };
        let arrows: Vec<(i64, &str, usize, Option<usize>)> =
            arrows(&run).iter().map(|arrow| (arrow.at, arrow.to, arrow.pods, arrow.decision)).collect();
        assert_eq!(arrows, [(2, "ns/a", 2, Some(0)), (3, "ns/b", 1, Some(0)), (5, "ns/c", 1, None)]);
    }
}

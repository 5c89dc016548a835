//! What whoever drives the scheduler asks of it, besides steps.

use reprieve_engine::Timestamp;
use reprieve_objects::answer::Answer;
use reprieve_objects::load::time;
use reprieve_objects::object::Object;
use reprieve_objects::question::Question;
use reprieve_objects::record::record;
use reprieve_objects::test_file::{PreemptorRef, Profile, TestSpec};
use reprieve_report::answer::answer;

use super::{Scheduler, Settling};
use crate::action::Action;
use crate::pending::State;
use crate::unit::UnitName;

/// How long a unit steps aside whose decision failed by a fault.
const FAULT_SECONDS: i64 = 60;

/// A decision as a PreemptionTest file.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// When and about whom, fit for a file's name.
    pub name: String,
    /// The file.
    pub text: String,
}

impl Scheduler {
    /// The same, which records every decision; the profile says how its policy is written.
    pub fn recording(mut self, profile: Profile) -> Self {
        self.recorded_as = Some(profile);
        self
    }

    /// Whether everything it decides on is known.
    pub fn is_ready(&self) -> bool {
        self.unlisted.is_empty() && self.settling == Settling::Settled
    }

    /// Whether everything that it asked for is done and seen, but for what is only said.
    pub fn is_quiet(&self) -> bool {
        self.assumed.is_empty()
            && self.unsettled.is_empty()
            && self.in_flight.values().all(|flight| is_only_said(&flight.action) || flight.action.changes().is_none())
    }

    /// For each unit that waits: its queue, or nothing, and why it waits, in one word: the law of the last decision about it, or what it
    /// waits for otherwise.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.pending.iter().map(|(unit, waiting)| {
            let reason = match waiting.state {
                State::Active => "Active",
                State::Change { .. } | State::Landing { .. } | State::Alike(_) => {
                    self.pending.law(waiting).unwrap_or("Active")
                }
                State::Backoff { .. } => "Backoff",
                State::Aside { .. } => "Fault",
                State::Busy(_) => "Underway",
            };
            (self.queue_of(unit).unwrap_or_default(), reason)
        })
    }

    fn queue_of(&self, unit: &UnitName) -> Option<String> {
        let loaded = self.live.loaded();
        match unit {
            UnitName::Pod(_) | UnitName::Group(_) | UnitName::Job(_) => {
                let pod = self.members(unit).first().and_then(|pod| loaded.names.pod_id(pod))?;
                loaded.snapshot.pod(pod).queue.map(|queue| loaded.names.queue(queue).to_owned())
            }
            UnitName::Workload(_) => match self.live.get(&unit.key())? {
                Object::KueueWorkload(workload) => Some(workload.spec.queue_name.clone()),
                _ => None,
            },
            UnitName::BatchJob(_) => None,
        }
    }

    /// A step failed by a fault: the unit that was being decided steps aside for a while, and the tables are made anew. `None` where
    /// nobody was being decided, so that it is not known what is wrong.
    pub fn recover(&mut self, now: Timestamp) -> Option<UnitName> {
        let unit = self.deciding.take()?;
        self.live.distrust();
        let aside = State::Aside { until: now.plus_seconds(FAULT_SECONDS) };
        let why = self.pending.why(&aside).to_owned();
        self.pending.set(&unit, aside);
        self.say_why(&unit, "Fault", &why, now);
        self.record(unit.key(), None, "DecisionFailed", why, now);
        self.set_timer(now);
        Some(unit)
    }

    /// The question and its answer as they stand, before anything comes of it.
    pub(super) fn recorded(&mut self, unit: &UnitName, question: &Question) -> Option<Recorded> {
        let profile = self.recorded_as.clone()?;
        let at = time(question.now)?;
        let key = unit.key();
        let kind = match unit {
            UnitName::Pod(_) => "Pod",
            UnitName::Group(_) => "PodGroup",
            UnitName::Workload(_) => "Workload",
            UnitName::Job(_) | UnitName::BatchJob(_) => return None,
        };
        let preemptor =
            PreemptorRef { kind: kind.to_owned(), namespace: key.name.namespace.clone(), name: key.name.name.clone() };
        let spec = TestSpec { now: Some(at.to_string()), profile, preemptor, expect: None };
        let answer: Answer = answer(question, self.live.loaded_mut());
        let text =
            record(&self.live.everything(), |pod| self.live.loaded().names.pod_id(pod).is_some(), &spec, &answer, &[])
                .ok()?;
        let moment = at.strftime("%Y%m%dT%H%M%S.%6fZ");
        Some(Recorded { name: format!("{moment}-{}-{}", key.name.namespace, key.name.name), text })
    }
}

fn is_only_said(action: &Action) -> bool {
    matches!(action, Action::Condition { .. })
}

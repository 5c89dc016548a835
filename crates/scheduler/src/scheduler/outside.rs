//! What whoever drives the scheduler asks of it, besides steps.

use reprieve_api::record::record;
use reprieve_api::test_file::{PreemptorRef, Profile, TestSpec};
use reprieve_engine::Outcome;
use reprieve_engine::Timestamp;
use reprieve_loader::question::Question;
use reprieve_loader::time::time;
use reprieve_report::answer::named;
use reprieve_report::unit_name::UnitName;

use super::Scheduler;
use crate::action::Action;
use crate::queue::State;
use crate::step::Recorded;
use crate::wait_reason::WaitReason;

/// How long a unit steps aside whose decision failed by a fault.
const FAULT_SECONDS: i64 = 60;

impl Scheduler {
    /// The same, which records every decision; the profile says how its policy is written.
    pub fn recording(mut self, profile: Profile) -> Self {
        self.recorded_as = Some(profile);
        self
    }

    /// Whether everything it decides on is known.
    pub fn is_ready(&self) -> bool {
        self.view.sync.is_synced()
    }

    /// Whether everything that it asked for is done and seen, but for what is only said.
    pub fn is_quiet(&self) -> bool {
        let is_only_said = |action: &Action| matches!(action, Action::Condition { .. });
        self.view.is_quiet()
            && self.actions.in_flight().all(|action| is_only_said(action) || action.changes().is_none())
    }

    /// For each unit that waits: its queue, or nothing, and why it waits.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (String, WaitReason)> {
        self.queue.iter().map(|(unit, waiting)| {
            let reason = match waiting.state {
                State::Active => WaitReason::Active,
                State::Change { .. } | State::Landing { .. } | State::Alike(_) => {
                    self.queue.reason(waiting).unwrap_or(WaitReason::Active)
                }
                State::Backoff { .. } => WaitReason::Backoff,
                State::Aside { .. } => WaitReason::Fault,
                State::Busy(_) => WaitReason::Underway,
            };
            (self.view.queue_of(unit).unwrap_or_default(), reason)
        })
    }

    /// A step failed by a fault: the unit that was being decided steps aside for a while, and the tables are made anew. `None` where
    /// nobody was being decided, so that it is not known what is wrong.
    pub fn recover(&mut self, now: Timestamp) -> Option<UnitName> {
        let unit = self.deciding.take()?;
        self.view.live.distrust();
        let aside = State::Aside { until: now.plus_seconds(FAULT_SECONDS) };
        let why = self.queue.why(&aside).to_owned();
        self.queue.set(&unit, aside);
        self.say_why(&unit, WaitReason::Fault, &why, now);
        self.record(unit.key(), None, "DecisionFailed", why, now);
        self.set_timer(now);
        Some(unit)
    }

    /// The question and its answer as they stand, before anything comes of it.
    pub(super) fn recorded(&self, unit: &UnitName, question: &Question, outcome: &Outcome) -> Option<Recorded> {
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
        let answer = named(self.view.loaded(), &question.ask(self.view.loaded()).members, outcome);
        let is_known = |pod: &_| self.view.loaded().names.pod_id(pod).is_some();
        let text = record(&self.view.live.everything(), is_known, &spec, &answer, &[]).ok()?;
        let moment = at.strftime("%Y%m%dT%H%M%S.%6fZ");
        Some(Recorded { name: format!("{moment}-{}-{}", key.name.namespace, key.name.name), text })
    }
}

//! What whoever drives the scheduler asks of it, besides steps.

use reprieve_api::record::record;
use reprieve_api::test_file::{PreemptorRef, Profile, TestSpec};
use reprieve_engine::Outcome;
use reprieve_engine::Timestamp;
use reprieve_loader::policy::Question;
use reprieve_loader::time::time;
use reprieve_report::answer::named;
use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::action::Action;
use crate::queue::WaitState;
use crate::step::RecordedDecision;
use crate::wait_reason::WaitReason;

/// How long a unit steps aside whose decision failed by a fault.
const PANIC_BACKOFF_SECONDS: i64 = 60;

impl Scheduler {
    /// The same, which records every decision; the profile says how its policy is written.
    pub fn recording(mut self, profile: Profile) -> Self {
        self.recorded_profile = Some(profile);
        self
    }

    /// Whether everything it decides on is known.
    pub fn is_ready(&self) -> bool {
        self.view.sync.is_synced()
    }

    /// Whether everything that it asked for is done and seen, but for what is only said.
    pub fn is_quiet(&self) -> bool {
        let is_only_said = |action: &Action| matches!(action, Action::SetCondition { .. });
        self.view.is_quiet()
            && self.actions.in_flight().all(|action| is_only_said(action) || action.changes().is_none())
    }

    /// For each unit that waits: its queue, or nothing, and why it waits.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (String, WaitReason)> {
        self.queue.iter().map(|(unit, waiting)| {
            let reason = match waiting.state {
                WaitState::Ready => WaitReason::Queued,
                WaitState::ForChange { .. } | WaitState::ForVictims { .. } | WaitState::InClass(_) => {
                    self.queue.reason(waiting).unwrap_or(WaitReason::Queued)
                }
                WaitState::Backoff { .. } => WaitReason::Backoff,
                WaitState::AfterError { .. } => WaitReason::InternalError,
                WaitState::ForActions(_) => WaitReason::ActionInFlight,
            };
            (self.view.queue_of(unit).unwrap_or_default(), reason)
        })
    }

    /// A step failed by a fault: the unit that was being decided steps aside for a while, and the tables are made anew. `None` where
    /// nobody was being decided, so that it is not known what is wrong.
    pub fn recover(&mut self, now: Timestamp) -> Option<UnitRef> {
        let unit = self.deciding.take()?;
        self.view.live.mark_stale();
        let aside = WaitState::AfterError { until: now.plus_seconds(PANIC_BACKOFF_SECONDS) };
        let why = self.queue.why(&aside).to_owned();
        self.queue.set(&unit, aside);
        self.report_waiting(&unit, WaitReason::InternalError, &why, now);
        self.record(unit.key(), None, "DecisionFailed", why, now);
        self.set_timer(now);
        Some(unit)
    }

    /// The question and its answer as they stand, before anything comes of it.
    pub(super) fn record_decision(&self, unit: &UnitRef, question: &Question, outcome: &Outcome) -> Option<RecordedDecision> {
        let profile = self.recorded_profile.clone()?;
        let at = time(question.now)?;
        let key = unit.key();
        let kind = match unit {
            UnitRef::Pod(_) => "Pod",
            UnitRef::Group(_) => "PodGroup",
            UnitRef::Workload(_) => "Workload",
            UnitRef::Job(_) | UnitRef::BatchJob(_) => return None,
        };
        let preemptor =
            PreemptorRef { kind: kind.to_owned(), namespace: key.name.namespace.clone(), name: key.name.name.clone() };
        let spec = TestSpec { now: Some(at.to_string()), profile, preemptor, expect: None };
        let answer = named(self.view.loaded(), &question.ask(self.view.loaded()).members, outcome);
        let is_known = |pod: &_| self.view.loaded().names.pod_id(pod).is_some();
        let text = record(&self.view.live.all_objects(), is_known, &spec, &answer, &[]).ok()?;
        let moment = at.strftime("%Y%m%dT%H%M%S.%6fZ");
        Some(RecordedDecision { name: format!("{moment}-{}-{}", key.name.namespace, key.name.name), text })
    }
}

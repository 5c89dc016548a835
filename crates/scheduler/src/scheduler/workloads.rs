//! Policy Kueue: advances Jobs and their workloads, and runs the admission cycle.

use reprieve_api::{Object, ObjectKey};
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::{Timestamp, WorkloadId};
use reprieve_loader::Question;
use reprieve_report::decision::DecisionReport;
use reprieve_report::report::report_decision;
use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::admission::{HeadResult, decide};
use crate::queue::WaitState;
use crate::step::{RecordedDecision, Step};
use crate::test_bugs::{Bug, FATAL};

/// A workload that took part in an admission cycle.
struct CycleHead {
    unit: UnitRef,
    head: HeadResult,
    report: Option<Box<DecisionReport>>,
    record: Option<RecordedDecision>,
}

impl Scheduler {
    pub(super) fn workload_or_job_upserted(&mut self, object: &Object) {
        self.view.seen(object);
        self.update_workload_or_job(&object.key());
    }

    /// Updates the view of a workload or Job, after an event or after an action on it.
    pub(super) fn update_workload_or_job(&mut self, key: &ObjectKey) {
        let update = self.view.update_object(key, self.bugs);
        if self.view.is_kueue() {
            self.admission.object_changed(key, &update, &mut self.queue);
        }
    }

    /// Sends the next action for each Job that changed.
    pub(super) fn sync_jobs(&mut self, now: Timestamp) {
        let jobs = self.queue.ready().filter(|unit| matches!(unit, UnitRef::BatchJob(_)));
        for unit in jobs.cloned().collect::<Vec<_>>() {
            match self.admission.next_for(&unit, &self.view) {
                Some(request) => self.send(request, now),
                None => {
                    self.queue.remove(&unit);
                }
            }
        }
    }

    /// The next step of an admission cycle; runs a new cycle if all steps of the last one were taken.
    pub(super) fn cycle(&mut self, now: Timestamp) -> Option<Step> {
        if self.admission.steps.is_empty() {
            self.run_cycle(now);
        }
        self.admission.steps.pop_front().or_else(|| self.take_housekeeping())
    }

    fn run_cycle(&mut self, now: Timestamp) {
        // 1. The workloads that take part.
        let Some(entrants) = self.admission.entrants(&self.view, &mut self.queue, now) else { return };
        // 2. The decisions. A panic is attributed to the workload that is being decided.
        let (deciding, fails) = (&mut self.deciding, self.bugs.has(Bug::Panic));
        let heads = decide(&self.view, &entrants.ids, now, |unit| {
            let is_fatal = fails && unit.key().name.name == FATAL;
            *deciding = Some(unit);
            assert!(!is_fatal, "deliberate panic");
        });
        // 3. The other workloads wait.
        self.admission.park(&entrants, &mut self.queue);
        // 4. Reports and recordings, before an action changes the snapshot.
        let considered: Vec<_> = heads.into_iter().map(|(id, unit, head)| self.explain(id, unit, head, now)).collect();
        // 5. The steps.
        for entry in considered {
            self.queue_step(entry, now);
        }
        self.deciding = None;
        let refusals = self.admission.report_invalid(&entrants, &self.view);
        self.send_all(refusals, now);
    }

    fn explain(&mut self, id: WorkloadId, unit: UnitRef, head: HeadResult, now: Timestamp) -> CycleHead {
        self.deciding = Some(unit.clone());
        let explains = self.explains && matches!(head, HeadResult::Preempt { .. });
        if !explains && self.recorded_profile.is_none() {
            return CycleHead { unit, head, report: None, record: None };
        }
        // The cycle decides for all heads together. A report and a recording are about this workload alone, so that `reprieve plan` and
        // `reprieve test` can repeat the decision.
        let question = Question { policy: *self.view.policy(), now, preemptor: PreemptorId::Workload(id) };
        let (decision, explanation) = question.decide_and_explain(self.view.live.loaded_mut());
        let loaded = self.view.live.loaded_mut();
        let report = explains.then(|| Box::new(report_decision(&question, loaded, &decision, &explanation)));
        let record = self.record_decision(&question, &decision.outcome);
        CycleHead { unit, head, report, record }
    }

    fn queue_step(&mut self, considered: CycleHead, now: Timestamp) {
        let CycleHead { unit, head, report, record } = considered;
        let state = self.queue.get(&unit).map(|pending| &pending.state);
        if !matches!(state, Some(WaitState::ForChange { .. })) {
            return;
        }
        self.deciding = Some(unit.clone());
        let (outcome, requests) = self.admission.act_on_head(&unit, head, &self.view, &mut self.queue);
        self.send_all(requests, now);
        let actions = self.actions.take_outbox();
        if !actions.is_empty() {
            let step = Step { unit: Some(unit), actions, report, record, ..outcome.into() };
            self.admission.steps.push_back(step);
        }
    }
}

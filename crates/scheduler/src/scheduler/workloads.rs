//! Policy Kueue: keeps Jobs and their workloads in step, and runs the admission cycle.

use reprieve_api::kinds::{Object, ObjectKey};
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::{Timestamp, WorkloadId};
use reprieve_loader::policy::Question;
use reprieve_report::decision::DecisionReport;
use reprieve_report::report::explained;
use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::admission::{HeadResult, decide};
use crate::queue::WaitState;
use crate::step::{RecordedDecision, Step};
use crate::test_bugs::{Bug, FATAL};

/// A workload that took part in a cycle, what came of it, and why.
struct Considered {
    unit: UnitRef,
    head: HeadResult,
    report: Option<Box<DecisionReport>>,
    record: Option<RecordedDecision>,
}

impl Scheduler {
    /// A workload or a Job was seen.
    pub(super) fn workload_or_job_upserted(&mut self, object: &Object, now: Timestamp) {
        self.view.seen(object);
        self.admission.seen(object);
        self.update_workload_or_job(&object.key(), now);
    }

    /// A workload or a Job is gone.
    pub(super) fn workload_or_job_deleted(&mut self, key: &ObjectKey, gone: Option<&Object>, now: Timestamp) {
        self.admission.gone(key, gone);
        self.update_workload_or_job(key, now);
    }

    /// A workload or a Job, or what is assumed of it, changed.
    pub(super) fn update_workload_or_job(&mut self, key: &ObjectKey, now: Timestamp) {
        let update = self.view.update_object(key, self.bugs);
        if let Some(error) = &update.refused {
            self.record(key.clone(), None, "Refused", error.to_string(), now);
        }
        if self.view.is_kueue() {
            self.admission.object_changed(key, &update, &mut self.queue);
        }
    }

    /// Does what is to be done for every Job about which something changed.
    pub(super) fn sync_jobs(&mut self, now: Timestamp) {
        let jobs = self.queue.active().filter(|unit| matches!(unit, UnitRef::BatchJob(_)));
        for unit in jobs.cloned().collect::<Vec<_>>() {
            match self.admission.next_for(&unit, &self.view) {
                Some(requests) => self.send_all(requests, now),
                None => {
                    self.queue.remove(&unit);
                }
            }
        }
    }

    /// The next step of a cycle; a new one is run if the turn of a workload has come.
    pub(super) fn cycle(&mut self, now: Timestamp) -> Option<Step> {
        if self.admission.steps.is_empty() {
            self.run_cycle(now);
        }
        self.admission.steps.pop_front().or_else(|| self.take_housekeeping())
    }

    fn run_cycle(&mut self, now: Timestamp) {
        // 1. Who takes part.
        let Some(entrants) = self.admission.entrants(&self.view, &mut self.queue, now) else { return };
        // 2. What comes of it. A panic is attributed to the workload that is being decided.
        let (deciding, fails) = (&mut self.deciding, self.bugs.has(Bug::Panic));
        let heads = decide(&self.view, &entrants.ids, now, |unit| {
            let is_fatal = fails && unit.key().name.name == FATAL;
            *deciding = Some(unit);
            assert!(!is_fatal, "a fault that is there on purpose");
        });
        // 3. What those wait for that got no turn.
        self.admission.park(&entrants, &mut self.queue);
        // 4. Why: an action changes the snapshot, so whatever reads it comes first.
        let considered: Vec<_> = heads.into_iter().map(|(id, unit, head)| self.explain(id, unit, head, now)).collect();
        // 5. The steps.
        for one in considered {
            self.queue_step(one, now);
        }
        self.deciding = None;
        self.send_all(self.admission.report_invalid(&entrants, &self.view), now);
    }

    fn explain(&mut self, id: WorkloadId, unit: UnitRef, head: HeadResult, now: Timestamp) -> Considered {
        self.deciding = Some(unit.clone());
        let explains = self.explains && matches!(head, HeadResult::Preempt { .. });
        if !explains && self.recorded_profile.is_none() {
            return Considered { unit, head, report: None, record: None };
        }
        // The cycle decided about all heads together. A report and a record are about this workload alone, so that anybody can ask the
        // same question again.
        let question = Question { policy: *self.view.policy(), now, preemptor: PreemptorId::Workload(id) };
        let (decision, explanation) = question.decide_and_explain(self.view.live.loaded_mut());
        let report = || Box::new(explained(&question, self.view.loaded(), &decision, &explanation));
        let report = explains.then(report);
        let record = self.record_decision(&unit, &question, &decision.outcome);
        Considered { unit, head, report, record }
    }

    fn queue_step(&mut self, considered: Considered, now: Timestamp) {
        let Considered { unit, head, report, record } = considered;
        let is_free = self.queue.get(&unit).is_some_and(|one| matches!(one.state, WaitState::ForChange { .. }));
        if !is_free {
            return;
        }
        self.deciding = Some(unit.clone());
        let (outcome, requests) = self.admission.carry_out(&unit, head, &self.view, &mut self.queue);
        self.send_all(requests, now);
        let actions = self.actions.take_outbox();
        if !actions.is_empty() {
            let step = Step { unit: Some(unit), outcome, actions, report, record, violations: 0 };
            self.admission.steps.push_back(step);
        }
    }
}

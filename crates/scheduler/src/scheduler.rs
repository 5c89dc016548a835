//! The scheduler passes events to its parts and makes one decision per step.
//!
//! ```text
//! observe(event) ──▶ view (cluster state) ──▶ queue (pending units) ──▶ step() ──▶ decision ──▶ actions
//! ```
//!
//! Its caller is the event loop of the live adapter, or the simulator's virtual cluster.

mod metrics;
mod observe;
mod problems;
mod recording;
mod workloads;

use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Profile};
use reprieve_engine::between_decisions::{fits_without_equal_or_lower_priorities, next_toleration_end};
use reprieve_engine::choose::Plan;
use reprieve_engine::laws::Law;
use reprieve_engine::{Outcome, Policy, Timestamp, UnitId};
use reprieve_loader::cache::SnapshotCache;
use reprieve_loader::{Loaded, Question, QueueSettings};
use reprieve_report::budget_report::pods_against_budgets;
use reprieve_report::decision::DecisionReport;
use reprieve_report::planned_actions::{bound, planned_actions, victims};
use reprieve_report::report::report_decision;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, EventReason};
use crate::action_log::{ActionLog, Request};
use crate::admission::Admission;
use crate::preemption::{Preemption, PreemptionPhase, Preemptions};
use crate::queue::{ParkedFor, PendingQueue, WaitState};
use crate::status::StatusUpdates;
use crate::step::{ForeseenEviction, Step, StepOutcome};
use crate::test_bugs::{Bug, Bugs, FATAL};
use crate::view::ClusterView;
use crate::wait_reason::WaitReason;
use problems::ReportedProblems;

/// How long a unit waits after the decision about it panicked.
const PANIC_BACKOFF_SECONDS: i64 = 60;

/// A scheduler: it decides for the pods whose `schedulerName` is its name.
pub struct Scheduler {
    /// Whether each preemption comes with a report.
    explains: bool,
    /// The cluster as it will be when all actions in flight have succeeded.
    view: ClusterView,
    /// The units that wait for nodes or quota, in scheduling order.
    queue: PendingQueue,
    /// The marked victims of each preemptor.
    preemptions: Preemptions,
    /// The conditions that are still to be written.
    status: StatusUpdates,
    /// The workloads that wait for quota, and their Jobs (policy Kueue).
    admission: Admission,
    /// The problems of objects that were reported.
    problems: ReportedProblems,
    /// The actions without a result.
    actions: ActionLog,
    /// The unit that is being decided: [`Self::recover`] attributes a panic to it.
    deciding: Option<UnitRef>,
    /// The object that is being read: [`Self::recover_observe`] attributes a panic to it.
    observing: Option<ObjectKey>,
    /// The profile to write into the recorded decisions; `None` if decisions are not recorded.
    recorded_profile: Option<Profile>,
    bugs: Bugs,
}

impl Scheduler {
    /// A scheduler with this `schedulerName`, before its first event.
    pub fn new(name: &str, policy: Policy) -> Self {
        Self {
            explains: false,
            view: ClusterView::new(name, policy),
            queue: PendingQueue::default(),
            preemptions: Preemptions::default(),
            status: StatusUpdates::default(),
            admission: Admission::default(),
            problems: ReportedProblems::default(),
            actions: ActionLog::default(),
            deciding: None,
            observing: None,
            recorded_profile: None,
            bugs: Bugs::default(),
        }
    }

    /// Sets where the queues are and who may use them.
    pub fn with_queues(mut self, queues: QueueSettings) -> Self {
        self.view.live.set_queues(queues);
        self
    }

    /// Adds a report to each preemption.
    pub fn explaining(mut self) -> Self {
        self.explains = true;
        self
    }

    /// Sets whether victims in other namespaces show the name of their preemptor instead of its uid. By default only policy Koordinator's do.
    pub fn naming_preemptors(mut self, names: bool) -> Self {
        self.view.names_preemptors = names;
        self
    }

    /// The uid of a unit's object.
    pub fn uid(&self, unit: &UnitRef) -> Option<String> {
        self.view.uid(unit)
    }

    /// Enables a deliberate bug.
    #[cfg(feature = "deliberate-bugs")]
    pub fn with_bug(mut self, bug: Option<Bug>) -> Self {
        self.bugs = Bugs { bug };
        self.preemptions.bugs = self.bugs;
        self
    }

    /// The policy of all decisions.
    pub fn policy(&self) -> &Policy {
        self.view.policy()
    }

    /// The cluster as it will be when all actions in flight have succeeded.
    pub fn live(&self) -> &SnapshotCache {
        &self.view.live
    }

    /// A pod, PodGroup, Workload or Job as the API last reported it.
    pub fn observed(&self, kind: Kind, name: &NamespacedName) -> Option<Object> {
        self.view.observed_object(kind, name)
    }

    /// The next step; `None` if there is nothing to do until the next event.
    pub fn step(&mut self, now: Timestamp) -> Option<Step> {
        // 1. No decision before all kinds are listed.
        if !self.view.sync.is_synced() {
            self.synchronise(now);
            return self.take_housekeeping();
        }
        // 2. Rebuild a stale snapshot.
        self.refresh(now);
        for group in self.status.changed_groups() {
            self.queue.group_changed(group, &self.view);
        }
        // 3. Work without a decision.
        let conditions = self.status.update_groups(&self.view, now);
        self.send_all(conditions, now);
        self.unmark_released(now);
        self.queue.wake_due(now);
        self.sync_jobs(now);
        if let Some(step) = self.take_housekeeping() {
            return Some(step);
        }
        // 4. One decision: a step of the admission cycle, or the next unit.
        if let Some(step) = self.cycle(now) {
            self.set_timer(now);
            return Some(step);
        }
        self.decide_next(now)
    }

    fn synchronise(&mut self, now: Timestamp) {
        let changed: &[Kind] =
            if self.view.is_kueue() { &[Kind::Pod, Kind::KueueWorkload, Kind::Job] } else { &[Kind::Pod] };
        for action in self.view.sync.next(changed, now) {
            self.actions.send(Request::new(action));
        }
    }

    fn refresh(&mut self, now: Timestamp) {
        if self.bugs.has(Bug::BrokenObjectStopsRebuild) && !self.view.live.quarantined().is_empty() {
            return;
        }
        self.inject_rebuild_panic();
        self.view.live.refresh();
        self.report_problems(now);
    }

    fn decide_next(&mut self, now: Timestamp) -> Option<Step> {
        let (next, parked) = self.queue.next(&self.view, |unit| self.preemptions.has_victims(unit), now);
        for (unit, reason, why) in parked {
            self.report_waiting(&unit, reason, &why, now);
        }
        let Some(unit) = next else {
            self.set_timer(now);
            return self.take_housekeeping();
        };
        self.deciding = Some(unit.clone());
        let decided = self.decide(&unit, now);
        self.deciding = None;
        if let StepOutcome::Wait { reason, why } | StepOutcome::Unschedulable { reason, why } = &decided.outcome {
            self.report_waiting(&unit, *reason, why, now);
        }
        self.set_timer(now);
        Some(Step { unit: Some(unit), actions: self.actions.take_outbox(), ..decided })
    }

    /// Continues after a panic in [`Self::step`]: the unit that was being decided is retried later, and the snapshot is rebuilt. `None` if
    /// no unit was being decided, so that the cause of the panic is unknown.
    pub fn recover(&mut self, now: Timestamp) -> Option<UnitRef> {
        let unit = self.deciding.take()?;
        self.view.live.mark_stale();
        self.queue.set(&unit, WaitState::AfterError { until: now.plus_seconds(PANIC_BACKOFF_SECONDS) });
        let why = format!("the scheduler panicked while deciding, see its log; retried in {PANIC_BACKOFF_SECONDS} s");
        self.report_waiting(&unit, WaitReason::InternalError, &why, now);
        self.emit_event(unit.key(), EventReason::DecisionFailed, why, now);
        self.set_timer(now);
        Some(unit)
    }

    /// A step without a decision, if there are actions to carry out.
    pub fn take_housekeeping(&mut self) -> Option<Step> {
        let actions = self.actions.take_outbox();
        (!actions.is_empty()).then_some(Step { actions, ..StepOutcome::Housekeeping.into() })
    }

    /// Decides for a unit and puts the actions into the outbox.
    fn decide(&mut self, unit: &UnitRef, now: Timestamp) -> Step {
        if let Some(problem) = self.view.problem_of(unit) {
            return self.wait_for_change(unit, WaitReason::InvalidObject, problem).into();
        }
        let Some((preemptor, _)) = self.view.preemptor(unit) else {
            return self.wait_for_members(unit, now).into();
        };
        if self.view.members(unit).iter().any(|pod| self.view.is_unknown(pod)) {
            let why = "waiting for the API server to confirm earlier requests for its pods".to_owned();
            return self.wait_for_change(unit, WaitReason::AwaitingApiState, why).into();
        }
        self.inject_panic(unit);
        let question = Question { policy: *self.view.policy(), now, preemptor };
        let (outcome, report) = self.decide_question(&question);
        let record = self.record_decision(&question, &outcome);
        Step { record, ..self.act_on(unit, &question, outcome, report, now) }
    }

    /// Makes the decision, and the report of a preemption if this scheduler explains preemptions.
    fn decide_question(&mut self, question: &Question) -> (Outcome, Option<Box<DecisionReport>>) {
        let loaded = self.view.live.loaded_mut();
        if !self.explains {
            return (question.decide(loaded), None);
        }
        let (decision, explanation) = question.decide_and_explain(loaded);
        let is_preemption = matches!(decision.outcome, Outcome::Preempt(_));
        let report = is_preemption.then(|| Box::new(report_decision(question, loaded, &decision, &explanation)));
        (decision.outcome, report)
    }

    /// Turns an outcome into actions, or puts the unit to wait.
    fn act_on(
        &mut self,
        unit: &UnitRef,
        question: &Question,
        outcome: Outcome,
        report: Option<Box<DecisionReport>>,
        now: Timestamp,
    ) -> Step {
        match outcome {
            Outcome::Schedule(placement) => {
                let placement = self.view.named(&placement);
                self.bind(unit, &placement, now);
                StepOutcome::Bind { placement }.into()
            }
            Outcome::Preempt(plan) => {
                if self.is_in_progress(unit, question, now) {
                    self.evict_rest_of_broken_gangs(unit, now);
                    return self.wait_for_victims(unit).into();
                }
                let violations = pods_against_budgets(&self.view.loaded().snapshot, &plan.victims);
                let foreseen = self.foreseen(&plan);
                Step { report, violations, foreseen, ..self.preempt(unit, question, &plan, now).into() }
            }
            Outcome::Wait(law) => self.wait_by_law(unit, &law, now).into(),
            Outcome::Unschedulable(law) => self.refuse(unit, question, law.as_ref(), now).into(),
        }
    }

    /// What the victims of a plan are expected to evict when they return.
    fn foreseen(&self, plan: &Plan) -> Vec<ForeseenEviction> {
        let Loaded { snapshot, names, .. } = self.view.loaded();
        let pods = |unit: UnitId| snapshot.unit(unit).pods.iter().map(|&pod| names.pod(pod).clone());
        let evictions = plan.second_order.iter().flat_map(|second| &second.evictions);
        let pairs = evictions.flat_map(|eviction| {
            pods(eviction.returning).flat_map(move |returning| {
                pods(eviction.evicted).map(move |evicted| ForeseenEviction { returning: returning.clone(), evicted })
            })
        });
        pairs.collect()
    }

    /// Puts a unit to wait because of a law.
    fn wait_by_law(&mut self, unit: &UnitRef, law: &Law, now: Timestamp) -> StepOutcome {
        let words = self.view.law_shown_to(unit, law);
        let (reason, why) = (WaitReason::Law(words.name), words.text);
        self.evict_rest_of_broken_gangs(unit, now);
        match law {
            // The other members of the class are younger, so their delay ends later.
            Law::PreemptionDelay { until } => self.wait_with_class(unit, Some(*until), (reason, &why), now),
            Law::PreemptionInProgress { .. } => self.queue.wait_for_victims(unit, &self.view),
            _ => self.queue.wait(unit, WaitState::ForChange { until: None }),
        }
        StepOutcome::Wait { reason, why }
    }

    /// Puts a unit to wait that a law refuses or that no plan helps.
    fn refuse(&mut self, unit: &UnitRef, question: &Question, law: Option<&Law>, now: Timestamp) -> StepOutcome {
        // 1. The reason. Without a law it may be any filter, and another one on every node.
        let none = match self.view.policy() {
            Policy::Kueue(_) => "it does not fit on the nodes",
            _ => "it does not fit now, and no set of victims that the policy allows makes it fit",
        };
        let (reason, why) = law.map_or((WaitReason::NoFeasiblePlan, none.to_owned()), |law| {
            let words = self.view.law_shown_to(unit, law);
            (WaitReason::Law(words.name), words.text)
        });
        // 2. Whether younger units wait for this one. Room does not help a unit with an obstacle, so no room is kept for it.
        let is_obstacle = law.is_some_and(Law::is_obstacle);
        let preemptor = question.preemptor(self.view.loaded());
        let tolerated = self.next_toleration_end(question, now);
        let until = tolerated.into_iter().chain(self.queue.starvation_check_at(unit, now)).min();
        if is_obstacle {
            self.queue.set_fits_without_equal_or_lower(unit, false);
        } else if self.queue.should_check_starvation(unit, now) {
            let fits = fits_without_equal_or_lower_priorities(&mut self.view.live.loaded_mut().snapshot, &preemptor);
            self.queue.set_fits_without_equal_or_lower(unit, fits);
        }
        // 3. The unit gives up its nominations and victims.
        self.give_up_preemption(unit, now);
        self.wait_with_class(unit, until.filter(|_| !is_obstacle), (reason, &why), now);
        StepOutcome::Unschedulable { reason, why }
    }

    fn bind(&mut self, unit: &UnitRef, placement: &[(NamespacedName, String)], now: Timestamp) {
        self.preemptions.release(unit.clone());
        for (pod, node) in placement {
            let about = ObjectKey::new(Kind::Pod, pod.clone());
            let Some(target) = self.view.target(&about) else { continue };
            let bind = Request::of(unit, Action::Bind { pod: target, node: node.clone() });
            self.send(bind.then_event(about, None, EventReason::Scheduled, bound(node)), now);
        }
    }

    fn emit_event(&mut self, about: ObjectKey, reason: EventReason, message: String, now: Timestamp) {
        self.send(Request::event(about, None, reason, message), now);
    }

    /// Sends an action and assumes that it will succeed; the unit of the request waits for the result.
    fn send(&mut self, request: Request, now: Timestamp) {
        let (action, unit) = (request.action.clone(), request.unit.clone());
        let id = self.actions.send(request);
        if let Some((kind, target)) = action.changes() {
            self.view.assumed.add(id, &action, now);
            if !matches!(action, Action::SetCondition { .. }) {
                self.update_changed(&ObjectKey::new(kind, target.name.clone()));
            }
        }
        if let Some(unit) = unit {
            self.queue.add_action(&unit, id);
        }
    }

    fn send_all(&mut self, requests: Vec<Request>, now: Timestamp) {
        for request in requests {
            self.send(request, now);
        }
    }

    fn preemption<'a>(&'a self, unit: &'a UnitRef, now: Timestamp) -> Preemption<'a> {
        Preemption { preemptions: &self.preemptions, unit, view: &self.view, queue: &self.queue, now }
    }

    /// Whether the unit waits for earlier victims instead of taking new ones.
    fn is_in_progress(&mut self, unit: &UnitRef, question: &Question, now: Timestamp) -> bool {
        let preemptor = question.preemptor(self.view.loaded());
        let earlier = self.preemption(unit, now).terminating_victims(&preemptor);
        earlier.is_some_and(|victims| victims.make_room_for(&preemptor, &mut self.view.live.loaded_mut().snapshot))
    }

    /// Sends the actions of the next phase of a preemption.
    fn preempt(&mut self, unit: &UnitRef, question: &Question, plan: &Plan, now: Timestamp) -> StepOutcome {
        let (loaded, policy) = (self.view.loaded(), self.view.policy());
        let planned = planned_actions(loaded, policy, &question.preemptor(loaded), plan);
        let (placement, victims) = (self.view.named(&plan.placement), victims(&planned).cloned().collect());
        let (phase, requests) = self.preemption(unit, now).advance(&planned);
        self.send_all(requests, now);
        let (reason, why) = match phase {
            PreemptionPhase::Planned => {
                self.status.preempting(unit, &self.view);
                return StepOutcome::MarkVictims { placement, victims };
            }
            PreemptionPhase::Marked => return StepOutcome::Evict { placement, victims },
            PreemptionPhase::Evicting => return self.wait_for_victims(unit),
            PreemptionPhase::AwaitingApiState => (
                WaitReason::AwaitingApiState,
                "waiting for the API server to confirm earlier requests for its victims".to_owned(),
            ),
            PreemptionPhase::Contested(other) => {
                let until = self.next_toleration_end(question, now);
                self.queue.set(unit, WaitState::ForChange { until });
                let other = self.view.preemptor_shown_in(&unit.key().name.namespace, &other);
                let why = format!("its victims are marked for {other}, which is scheduled first");
                return StepOutcome::Wait { reason: WaitReason::PREEMPTION_IN_PROGRESS, why };
            }
        };
        self.wait_for_change(unit, reason, why)
    }

    /// When the preemptor may get a candidate that is protected until then.
    fn next_toleration_end(&self, question: &Question, now: Timestamp) -> Option<Timestamp> {
        let loaded = self.view.loaded();
        next_toleration_end(&loaded.snapshot, self.view.policy(), &question.preemptor(loaded), now)
    }

    fn wait_for_change(&mut self, unit: &UnitRef, reason: WaitReason, why: String) -> StepOutcome {
        self.queue.set(unit, WaitState::ForChange { until: None });
        StepOutcome::Wait { reason, why }
    }

    /// Puts an incomplete gang to wait. A group gives up its nominations and its preemption (docs/rules/kubernetes-groups.md#g26).
    fn wait_for_members(&mut self, unit: &UnitRef, now: Timestamp) -> StepOutcome {
        let why = match unit {
            UnitRef::Group(_) => {
                self.give_up_preemption(unit, now);
                "waiting for the rest of its pods"
            }
            _ => "waiting for the rest of its pods, or for pods of an earlier start to terminate",
        };
        self.queue.wait(unit, WaitState::ForChange { until: None });
        StepOutcome::Wait { reason: WaitReason::GangIncomplete, why: why.to_owned() }
    }

    fn give_up_preemption(&mut self, unit: &UnitRef, now: Timestamp) {
        self.send_all(self.preemption(unit, now).clear_nominations(), now);
        self.preemptions.release(unit.clone());
    }

    fn wait_for_victims(&mut self, unit: &UnitRef) -> StepOutcome {
        self.queue.wait_for_victims(unit, &self.view);
        let why = "its victims are terminating".to_owned();
        StepOutcome::Wait { reason: WaitReason::PREEMPTION_IN_PROGRESS, why }
    }

    fn evict_rest_of_broken_gangs(&mut self, unit: &UnitRef, now: Timestamp) {
        let evictions = self.preemption(unit, now).evict_rest_of_broken_gangs();
        self.send_all(evictions, now);
    }

    /// Removes the marks of the victims of units that no longer need them.
    fn unmark_released(&mut self, now: Timestamp) {
        for unit in self.preemptions.take_released(&self.queue) {
            let requests = self.preemption(&unit, now).unmark_all();
            self.send_all(requests, now);
        }
    }

    /// Reports why a unit waits. A wait for the API server is too short to be reported.
    fn report_waiting(&mut self, unit: &UnitRef, reason: WaitReason, why: &str, now: Timestamp) {
        self.queue.set_reason(unit, reason);
        if reason != WaitReason::AwaitingApiState {
            let requests = self.status.report_waiting(unit, (reason, why), &self.view, now);
            self.send_all(requests, now);
        }
    }

    /// The effect of [`Bug::Panic`].
    fn inject_panic(&mut self, unit: &UnitRef) {
        if self.bugs.has(Bug::Panic) && unit.key().name.name == FATAL {
            let Loaded { snapshot, names, .. } = self.view.live.loaded_mut();
            names.pod_ids().for_each(|pod| snapshot.remove_pod(pod));
            panic!("deliberate panic");
        }
    }

    fn set_timer(&mut self, now: Timestamp) {
        if let Some(at) = self.queue.next_timer() {
            self.actions.set_timer(at, now);
        }
    }

    /// Puts the equivalence class of a unit to wait, or the unit alone if its actions are in flight.
    fn wait_with_class(
        &mut self,
        unit: &UnitRef,
        until: Option<Timestamp>,
        (reason, why): (WaitReason, &str),
        now: Timestamp,
    ) {
        let parked = ParkedFor { until, reason, why: why.into(), for_older_unit: false };
        for member in self.queue.wait_with_class(unit, (parked, self.preemptions.has_victims(unit)), &self.view, now) {
            self.report_waiting(&member, reason, why, now);
        }
    }
}

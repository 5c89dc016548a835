//! The scheduler: it hands events to its parts, and takes one step at a time.

mod observe;
mod outside;
mod workloads;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::source::InputError;
use reprieve_api::test_file::Profile;
use reprieve_engine::between_decisions::{fits_above_lower_priorities, next_toleration_end};
use reprieve_engine::choose::Plan;
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::{Outcome, Timestamp};
use reprieve_loader::build::Loaded;
use reprieve_loader::cache::SnapshotCache;
use reprieve_loader::policy::Question;
use reprieve_report::budget_report::pods_against_budgets;
use reprieve_report::decision::DecisionReport;
use reprieve_report::planned_actions::{SCHEDULED, bound, planned_actions};
use reprieve_report::reasons;
use reprieve_report::report::explained;
use reprieve_report::unit_ref::UnitRef;

use crate::action::Action;
use crate::action_log::{ActionLog, Request};
use crate::admission::Admission;
use crate::preemption::{PreemptionPhase, Preemptions, nominate, victims};
use crate::queue::{ParkedFor, PendingQueue, WaitState};
use crate::status::{self, StatusUpdates};
use crate::step::{Step, StepOutcome};
use crate::test_bugs::{Bug, Bugs, FATAL};
use crate::view::ClusterView;
use crate::wait_reason::WaitReason;

/// The scheduler of the pods that name it.
pub struct Scheduler {
    /// Whether every preemption is explained.
    explains: bool,
    /// The cluster as it will be when all actions in flight have succeeded.
    view: ClusterView,
    /// Units that wait for a node or for quota, in scheduling order.
    queue: PendingQueue,
    /// The victims that are marked for each preemptor.
    preemptions: Preemptions,
    /// Conditions that are still to be written.
    status: StatusUpdates,
    /// Workloads that wait for quota, and their Jobs (policy Kueue).
    admission: Admission,
    /// Actions that were sent and not answered yet.
    actions: ActionLog,
    /// The unit that is being decided, so that a panic can be attributed to it.
    deciding: Option<UnitRef>,
    /// How the policy is written where every decision is recorded.
    recorded_as: Option<Profile>,
    bugs: Bugs,
}

impl Scheduler {
    /// A scheduler of the pods that name it, that knows of nothing yet.
    pub fn new(name: &str, policy: Policy) -> Self {
        Self {
            explains: false,
            view: ClusterView::new(name, policy),
            queue: PendingQueue::default(),
            preemptions: Preemptions::default(),
            status: StatusUpdates::default(),
            admission: Admission::default(),
            actions: ActionLog::default(),
            deciding: None,
            recorded_as: None,
            bugs: Bugs::default(),
        }
    }

    /// The same, with an explanation of every preemption.
    pub fn explaining(mut self) -> Self {
        self.explains = true;
        self
    }

    /// The same, with a bug.
    #[cfg(feature = "deliberate-bugs")]
    pub fn with_bug(mut self, bug: Option<Bug>) -> Self {
        self.bugs = Bugs { bug };
        self.preemptions.bugs = self.bugs;
        self
    }

    /// The policy it decides by.
    pub fn policy(&self) -> &Policy {
        self.view.policy()
    }

    /// The cluster as it will be if what is under way works.
    pub fn live(&self) -> &SnapshotCache {
        &self.view.live
    }

    /// An object that the scheduler changes, as the API has it.
    pub fn observed(&self, kind: Kind, name: &NamespacedName) -> Option<Object> {
        self.view.known(kind, name)
    }

    /// All units that wait, and what each waits for.
    pub fn waiting(&self) -> impl Iterator<Item = (&UnitRef, String)> {
        self.queue.iter().map(|(unit, waiting)| (unit, self.queue.why(&waiting.state).to_owned()))
    }

    /// The next step; `None` when there is nothing to do until the next event.
    pub fn step(&mut self, now: Timestamp) -> Option<Step> {
        // 1. Nothing is decided before everything was listed.
        if !self.view.sync.is_synced() {
            self.synchronise(now);
            return self.take_housekeeping();
        }
        // 2. The snapshot, if it is stale.
        self.refresh(now);
        // 3. What needs no decision.
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
        if let Err(error) = self.view.live.refresh() {
            let message = format!("{error}; what was in force before stays");
            self.record(self.object_of(&error), None, "Refused", message, now);
        }
        for (workload, fault) in self.view.live.take_quarantined() {
            self.record(workload, None, "Refused", format!("{fault}; it is left out"), now);
        }
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
        if let StepOutcome::Wait { reason, why } | StepOutcome::Unschedulable { reason, why } = &decided.verdict {
            self.report_waiting(&unit, *reason, why, now);
        }
        self.set_timer(now);
        Some(Step { unit: Some(unit), actions: self.actions.take_outbox(), ..decided })
    }

    /// The object that an error names; the namespace `default` stands for those that are not known.
    fn object_of(&self, error: &InputError) -> ObjectKey {
        let is_meant = |key: &&ObjectKey| error.object.as_ref().is_some_and(|object| object.refers_to(key));
        let known = self.view.live.all().map(|(key, _)| key).find(is_meant).cloned();
        known.unwrap_or_else(|| ObjectKey::new(Kind::Namespace, NamespacedName::new("", "default")))
    }

    /// What is to be done without deciding anything.
    pub fn take_housekeeping(&mut self) -> Option<Step> {
        let actions = self.actions.take_outbox();
        (!actions.is_empty()).then_some(Step { actions, ..StepOutcome::Housekeeping.into() })
    }

    /// What comes of a unit; its actions are in the outbox.
    fn decide(&mut self, unit: &UnitRef, now: Timestamp) -> Step {
        let Some((preemptor, _)) = self.view.preemptor(unit) else {
            let why = "waits for the rest of its pods, or for old ones to leave".to_owned();
            return self.wait_for_change(unit, WaitReason::GangIncomplete, why).into();
        };
        if self.view.members(unit).iter().any(|pod| self.view.is_unknown(pod)) {
            let why = "waits to know what became of its pods".to_owned();
            return self.wait_for_change(unit, WaitReason::AwaitingApiState, why).into();
        }
        self.inject_panic(unit);
        let question = Question { policy: *self.view.policy(), now, preemptor };
        let (outcome, report) = self.answered(&question);
        let record = self.recorded(unit, &question, &outcome);
        Step { record, ..self.act_on(unit, &question, outcome, report, now) }
    }

    /// Decides, once; with the report of a preemption where every preemption is explained.
    fn answered(&mut self, question: &Question) -> (Outcome, Option<Box<DecisionReport>>) {
        let loaded = self.view.live.loaded_mut();
        if !self.explains {
            return (question.decide(loaded), None);
        }
        let (decision, explanation) = question.decide_and_explain(loaded);
        let is_preemption = matches!(decision.outcome, Outcome::Preempt(_));
        let report = is_preemption.then(|| Box::new(explained(question, loaded, &decision, &explanation)));
        (decision.outcome, report)
    }

    /// Sees to it that what was decided is done.
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
                if self.preemptions.is_under_way(unit, question, &mut self.view) {
                    self.evict_rest_of_broken_gangs(unit, now);
                    return self.wait_for_victims(unit).into();
                }
                let violations = pods_against_budgets(&self.view.loaded().snapshot, &plan.victims);
                Step { report, violations, ..self.preempt(unit, question, &plan, now).into() }
            }
            Outcome::Wait(law) => self.wait_by_law(unit, &law, now).into(),
            Outcome::Unschedulable(law) => self.refuse(unit, question, law.as_ref(), now).into(),
        }
    }

    /// A law makes the unit wait.
    fn wait_by_law(&mut self, unit: &UnitRef, law: &Law, now: Timestamp) -> StepOutcome {
        let words = reasons::law(law, &self.view.loaded().names);
        let (reason, why) = (WaitReason::of_law(law, words.name), words.text);
        self.evict_rest_of_broken_gangs(unit, now);
        match law {
            // Those that are like it came later, and wait for longer.
            Law::PreemptionDelay { until } => self.wait_alike(unit, Some(*until), (reason, &why), now),
            Law::PreemptionInProgress { .. } => self.queue.wait_to_land(unit, &why, &self.view),
            _ => self.queue.wait(unit, WaitState::ForChange { until: None, why: why.as_str().into() }),
        }
        StepOutcome::Wait { reason, why }
    }

    /// The unit cannot be scheduled, by a law or because no plan was found.
    fn refuse(&mut self, unit: &UnitRef, question: &Question, law: Option<&Law>, now: Timestamp) -> StepOutcome {
        // 1. Why.
        let none =
            if self.view.is_kueue() { "no node has room for it" } else { "no lawful set of victims makes it fit" };
        let (reason, why) = law.map_or((WaitReason::NoFeasiblePlan, none.to_owned()), |law| {
            let words = reasons::law(law, &self.view.loaded().names);
            (WaitReason::of_law(law, words.name), words.text)
        });
        // 2. Whether it holds back others: no room helps a unit with an obstacle, so none is kept for it.
        let is_obstacle = law.is_some_and(Law::is_obstacle);
        let ask = question.ask(self.view.loaded());
        let tolerated = next_toleration_end(&self.view.loaded().snapshot, ask.priority, now);
        let until = tolerated.into_iter().chain(self.queue.starvation_check_at(unit, now)).min();
        if is_obstacle {
            self.queue.set_fits_above_lower(unit, false);
        } else if self.queue.should_check_starvation(unit, now) {
            let could_fit = fits_above_lower_priorities(&mut self.view.live.loaded_mut().snapshot, &ask);
            self.queue.set_fits_above_lower(unit, could_fit);
        }
        // 3. It needs neither nominations nor victims.
        self.send_all(nominate(unit, &[], &self.view), now);
        self.preemptions.release(unit.clone());
        self.wait_alike(unit, until.filter(|_| !is_obstacle), (reason, &why), now);
        StepOutcome::Unschedulable { reason, why }
    }

    fn bind(&mut self, unit: &UnitRef, placement: &[(NamespacedName, String)], now: Timestamp) {
        self.preemptions.release(unit.clone());
        for (pod, node) in placement {
            let about = ObjectKey::new(Kind::Pod, pod.clone());
            let Some(target) = self.view.target(&about) else { continue };
            let message = bound(node);
            self.send(Request::of(unit, Action::Bind { pod: target, node: node.clone() }), now);
            self.record(about, None, SCHEDULED, message, now);
        }
    }

    fn record(
        &mut self,
        about: ObjectKey,
        related: Option<ObjectKey>,
        reason: &'static str,
        message: String,
        now: Timestamp,
    ) {
        self.send(Request::record(about, related, reason, message), now);
    }

    /// Sends an action; a unit that waits for it is busy until its result comes.
    fn send(&mut self, request: Request, now: Timestamp) {
        let (action, unit) = (request.action.clone(), request.unit.clone());
        let id = self.actions.send(request);
        if let Some((kind, target)) = action.changes() {
            self.view.assumed.add(id, &action, now);
            if !matches!(action, Action::SetCondition { .. }) {
                self.reconsider_any(&ObjectKey::new(kind, target.name.clone()), now);
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

    /// Does what the phase of the preemption asks for.
    fn preempt(&mut self, unit: &UnitRef, question: &Question, plan: &Plan, now: Timestamp) -> StepOutcome {
        let (loaded, policy) = (self.view.loaded(), self.view.policy());
        let planned = planned_actions(loaded, policy, &question.ask(loaded), plan);
        let (placement, victims) = (self.view.named(&plan.placement), victims(&planned).cloned().collect());
        let (phase, requests) = self.preemptions.of(unit, &self.view, &self.queue, now).advance(&planned);
        self.send_all(requests, now);
        let (reason, why) = match phase {
            PreemptionPhase::Planned => return StepOutcome::MarkVictims { placement, victims },
            PreemptionPhase::Marked => return StepOutcome::Evict { placement, victims },
            PreemptionPhase::Evicting => return self.wait_for_victims(unit),
            PreemptionPhase::AwaitingApiState => {
                (WaitReason::AwaitingApiState, "waits to know what became of its victims".to_owned())
            }
            PreemptionPhase::Contested(other) => {
                (WaitReason::ActionInFlight, format!("its victims are to yield for {other} first"))
            }
        };
        self.wait_for_change(unit, reason, why)
    }

    fn wait_for_change(&mut self, unit: &UnitRef, reason: WaitReason, why: String) -> StepOutcome {
        self.queue.set(unit, WaitState::ForChange { until: None, why: why.as_str().into() });
        StepOutcome::Wait { reason, why }
    }

    fn wait_for_victims(&mut self, unit: &UnitRef) -> StepOutcome {
        let why = "its victims are leaving".to_owned();
        self.queue.wait_to_land(unit, &why, &self.view);
        StepOutcome::Wait { reason: WaitReason::ActionInFlight, why }
    }

    fn evict_rest_of_broken_gangs(&mut self, unit: &UnitRef, now: Timestamp) {
        let evictions = self.preemptions.of(unit, &self.view, &self.queue, now).finish_marked();
        self.send_all(evictions, now);
    }

    /// Takes back the marks for units that need their victims no longer.
    fn unmark_released(&mut self, now: Timestamp) {
        for unit in self.preemptions.take_released() {
            let requests = self.preemptions.of(&unit, &self.view, &self.queue, now).unmark_all();
            self.send_all(requests, now);
        }
    }

    /// Writes on a unit that it waits, and why. What is over in a moment is not written.
    fn report_waiting(&mut self, unit: &UnitRef, reason: WaitReason, why: &str, now: Timestamp) {
        self.queue.set_reason(unit, reason);
        if reason != WaitReason::AwaitingApiState {
            self.send_all(status::waits(unit, (reason, why), &self.view, now), now);
        }
    }

    /// What [`Bug::Panic`] does.
    fn inject_panic(&mut self, unit: &UnitRef) {
        if self.bugs.has(Bug::Panic) && unit.key().name.name == FATAL {
            let Loaded { snapshot, names, .. } = self.view.live.loaded_mut();
            names.pod_ids().for_each(|pod| snapshot.remove_pod(pod));
            panic!("a fault that is there on purpose");
        }
    }

    fn set_timer(&mut self, now: Timestamp) {
        if let Some(at) = self.queue.next_timer() {
            self.actions.set_timer(at, now);
        }
    }

    /// The unit waits with all that are like it, unless it waits for what it asked for already.
    fn wait_alike(
        &mut self,
        unit: &UnitRef,
        until: Option<Timestamp>,
        (reason, why): (WaitReason, &str),
        now: Timestamp,
    ) {
        let waits = ParkedFor { until, reason, why: why.into(), held_back: false };
        for other in self.queue.wait_alike(unit, (waits, self.preemptions.has_victims(unit)), &self.view, now) {
            self.report_waiting(&other, reason, why, now);
        }
    }
}

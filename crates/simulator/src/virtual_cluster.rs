//! The virtual cluster around the scheduler that also runs real clusters. Each part has one job, and time passes in [`World::pass`]:
//!
//! - `timeline`: the clock, and what will happen;
//! - `api`: the API server;
//! - `process`: the scheduler, and what is under way between it and the API server;
//! - `jobs`: the controller that makes pods; `kubelet.rs`: what becomes of them; `disruption_controller.rs`: the budgets;
//! - `faults`: what goes wrong;
//! - `statistics`: what is counted.

mod disruption_controller;
mod evictions;
mod job_controller;
mod kubelet;
mod process;
mod run_config;
mod sim_event;
mod statistics;

use reprieve_api::kinds::{Kind, Object};
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::source::Source;
use reprieve_engine::Timestamp;
use reprieve_report::decision::DecisionReport;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, StepOutcome};

use self::disruption_controller::count_budgets;
use self::job_controller::JobController;
use self::process::Process;
use self::sim_event::{LATENCY_MICROS, SimEvent};
use self::statistics::Statistics;
use crate::api::Api;
use crate::fault_injector::FaultInjector;
use crate::faults::Fault;
use crate::job::Job;
use crate::run::{Gang, Preemption, Run};
use crate::timeline::Timeline;

pub use self::run_config::{RunConfig, SCHEDULER};

/// How often everything is listed anew where events may be lost.
const RELIST_MICROS: i64 = 60_000_000;
/// How long an answer is waited for that does not come.
const TIMEOUT_MICROS: i64 = 10_000_000;

/// The virtual cluster.
pub struct VirtualCluster {
    pub(crate) setup: RunConfig,
    timeline: Timeline<SimEvent>,
    pub(crate) api: Api,
    pub(crate) process: Process,
    jobs: JobController,
    has_budgets: bool,
    faults: FaultInjector,
    pub(crate) statistics: Statistics,
    stopwatch: Box<dyn Fn() -> u64>,
}

impl VirtualCluster {
    /// A cluster at its beginning. The stopwatch tells nanoseconds; what it tells has no effect.
    pub fn new(setup: RunConfig, stopwatch: Box<dyn Fn() -> u64>) -> Self {
        let mut world = Self {
            timeline: Timeline::new(setup.start),
            api: Api::default(),
            process: Process::new(&setup),
            jobs: JobController::new(setup.policy),
            has_budgets: setup.objects.iter().any(|object| object.kind() == Kind::PodDisruptionBudget),
            faults: FaultInjector::new(setup.seed, setup.faults),
            statistics: Statistics::new(&setup),
            stopwatch,
            setup,
        };
        for object in world.setup.objects.clone() {
            world.api.create(object, world.setup.start);
        }
        world.api.take_changes();
        world.process.list_all(&mut world.timeline, &world.api);
        for (at, submission) in world.setup.submissions.iter().enumerate() {
            world.timeline.at(submission.at, SimEvent::Arrive(at));
        }
        if !world.setup.faults.is_none() {
            world.timeline.after(RELIST_MICROS, SimEvent::Relist);
        }
        if world.setup.sample_micros > 0 {
            world.timeline.after(0, SimEvent::Sample);
        }
        world
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.timeline.now()
    }

    /// The share of the time that has passed, in thousandths.
    pub fn progress(&self) -> u64 {
        let (now, start, end) = (self.now().0, self.setup.start.0, self.setup.end.0);
        u64::try_from((now - start).saturating_mul(1000) / (end - start).max(1)).unwrap_or(0)
    }

    /// Lets the next moment pass, and tells of every step of the scheduler in it; `false` when it is over.
    pub fn advance(&mut self, mut tell: impl FnMut(&Self, &Step)) -> bool {
        let Some(at) = self.timeline.next_at().filter(|at| *at <= self.setup.end) else {
            return false;
        };
        // 1. Everything happens that is due, and everybody hears of it.
        while self.timeline.next_at() == Some(at) {
            let happening = self.timeline.next().expect("it was just seen");
            self.statistics.run.counts.events += 1;
            self.handle(happening);
            self.deliver_changes();
        }
        // 2. The scheduler takes its steps.
        loop {
            let before = (self.stopwatch)();
            let Some(step) = self.process.scheduler.step(at) else { break };
            let counts = &mut self.statistics.run.counts;
            counts.decision_nanos += (self.stopwatch)() - before;
            counts.steps += 1;
            counts.decisions += u64::from(step.unit.is_some());
            tell(self, &step);
            let decided = self.faults.about(|| step.unit.as_ref().map(ToString::to_string).unwrap_or_default());
            self.execute_step(step);
            if self.faults.draw_fault(Fault::Restart, &decided).is_some() {
                self.statistics.run.counts.restarts += 1;
                self.process.restart(&self.setup, &mut self.timeline, &self.api);
                break;
            }
        }
        // 3. A node may vanish.
        if let Some(chance) = self.faults.draw_fault(Fault::LostNode, "") {
            self.lose_node(chance);
        }
        true
    }

    /// The scheduler that runs now.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.process.scheduler
    }

    /// All objects, as the API has them.
    pub(crate) fn objects(&self) -> ObjectSet {
        let source = Source { file: "the virtual cluster".into(), document: 1, item: None };
        let mut objects = ObjectSet::default();
        for object in self.api.all() {
            objects.push(object, &source);
        }
        objects
    }

    /// The gangs that are not done.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = (&Job, Gang)> {
        self.jobs.jobs.iter().filter(|job| !job.is_done()).filter_map(|job| Some((job, job.submission.gang?)))
    }

    /// The explanations since the last call, by the number of the preemption in the run.
    pub fn take_reports(&mut self) -> Vec<(usize, Box<DecisionReport>)> {
        std::mem::take(&mut self.statistics.reports)
    }

    /// What is left behind.
    pub fn finish(mut self) -> Run {
        // Where nothing happens any more, what runs and what waits goes on doing so.
        let over = self.jobs.jobs.iter().all(Job::is_done);
        let ended = if over { self.timeline.now().min(self.setup.end) } else { self.setup.end };
        self.statistics.run.counts.faults = self.faults.struck;
        self.statistics.finish(&self.jobs.jobs, ended)
    }

    fn handle(&mut self, happening: SimEvent) {
        let now = self.timeline.now();
        match happening {
            SimEvent::Arrive(at) => self.jobs.arrive(self.setup.submissions[at].clone(), &mut self.api, now),
            SimEvent::Deliver(life, event) => {
                self.process.undelivered -= 1;
                self.process.observe(life, event, now);
            }
            SimEvent::Wake(life) => self.process.observe(life, Event::TimerFired, now),
            SimEvent::Perform(life, id, action) => self.execute_action(life, id, &action),
            SimEvent::Relist => {
                self.process.list_all(&mut self.timeline, &self.api);
                self.timeline.after(RELIST_MICROS, SimEvent::Relist);
            }
            SimEvent::Start { pod, uid } => self.start(&pod, &uid),
            SimEvent::Stop { pod, uid } => self.stop(&pod, &uid),
            SimEvent::Finish { job, part, turn } => {
                self.jobs.finish_part(&mut self.api, &mut self.timeline, job, part, turn);
            }
            SimEvent::Renew { job, part } => self.jobs.make_pods(&mut self.api, job, part, now),
            SimEvent::EvictSoftly { pod, uid } => self.evict_softly(&pod, &uid),
            SimEvent::Sweep(pods) => self.jobs.sweep(&mut self.api, &pods),
            SimEvent::Sync(job) => self.jobs.sync(&mut self.api, job, now),
            SimEvent::Collect(job) => self.jobs.collect(&mut self.api, job),
            SimEvent::NodeBack(node) => {
                self.statistics.usage.capacity += self.statistics.usage.offered(&node);
                self.api.create(*node, now);
            }
            SimEvent::Sample => {
                self.statistics.run.samples.push(self.statistics.usage.sample(now));
                if self.timeline.next_at().is_some() {
                    self.timeline.after(self.setup.sample_micros, SimEvent::Sample);
                }
            }
        }
    }

    /// Kubelets, controllers and the scheduler hear of what changed; the scheduler later, and not always rightly.
    fn deliver_changes(&mut self) {
        loop {
            let changes = self.api.take_changes();
            if changes.is_empty() {
                return;
            }
            for event in changes {
                self.react(&event);
                self.tell_scheduler(event);
            }
        }
    }

    /// The kubelets and the controllers hear of a change.
    fn react(&mut self, event: &Event) {
        match event {
            Event::Upserted(Object::Job(job)) => {
                self.jobs.sync_later(&mut self.timeline, &NamespacedName::from_meta(&job.metadata))
            }
            Event::Upserted(Object::Pod(pod)) => {
                let name = NamespacedName::from_meta(&pod.metadata);
                self.jobs.sync_owner(&mut self.timeline, &name);
                let before = self.statistics.usage.put(pod);
                self.count_budgets(&name.namespace);
                self.follow_pod(pod, &before);
            }
            Event::Deleted { key, .. } if key.kind == Kind::Pod => {
                self.statistics.usage.remove(&key.name);
                self.jobs.sync_owner(&mut self.timeline, &key.name);
                self.jobs.pod_gone(&mut self.api, &mut self.timeline, &key.name);
                self.count_budgets(&key.name.namespace);
            }
            _ => {}
        }
    }

    fn count_budgets(&mut self, namespace: &str) {
        if self.has_budgets {
            count_budgets(&mut self.api, namespace);
        }
    }

    fn tell_scheduler(&mut self, event: Event) {
        let about = self.faults.about(|| match &event {
            Event::Upserted(object) => object.key().to_string(),
            Event::Deleted { key, .. } => key.to_string(),
            Event::Listed { .. } | Event::TimerFired | Event::ActionCompleted { .. } => String::new(),
        });
        if self.faults.draw_fault(Fault::LostEvent, &about).is_some() {
            self.process.lost = true;
            return;
        }
        let times = if self.faults.draw_fault(Fault::RepeatedEvent, &about).is_some() { 2 } else { 1 };
        for _ in 0..times {
            let late = self.faults.draw_fault(Fault::DelayedEvent, &about);
            let late = late.map_or(0, |mut chance| chance.range(0, 30_000_000));
            self.process.send(&mut self.timeline, LATENCY_MICROS + late, event.clone());
        }
    }

    /// Carries out what a step asks for.
    fn execute_step(&mut self, step: Step) {
        if let (Some(unit), StepOutcome::Evict { placement, victims }) = (&step.unit, &step.outcome) {
            let Statistics { run, reports, .. } = &mut self.statistics;
            reports.extend(step.report.map(|report| (run.preemptions.len(), report)));
            run.preemptions.push(Preemption {
                at: self.timeline.now(),
                unit: unit.to_string(),
                victims: victims.clone(),
                placement: placement.clone(),
            });
        }
        for (id, action) in step.actions {
            self.statistics.run.counts.actions += 1;
            let timeline = &mut self.timeline;
            match action {
                Action::WakeAt { at } => timeline.at(at, SimEvent::Wake(self.process.life)),
                Action::Relist { kind } => self.process.send(timeline, LATENCY_MICROS, self.api.list(kind)),
                Action::EmitEvent { .. } => {
                    let result = ActionResult::Ok { version: 0 };
                    self.process.send(timeline, LATENCY_MICROS, Event::ActionCompleted { action: id, result });
                }
                action => {
                    let request = SimEvent::Perform(self.process.life, id, action);
                    self.process.put_under_way(timeline, LATENCY_MICROS, request);
                }
            }
        }
    }

    /// A request reaches the API server, or is lost on its way; then its answer is under way.
    fn execute_action(&mut self, life: u64, id: ActionId, action: &Action) {
        self.process.undelivered -= 1;
        let about = self.faults.about(|| about(action));
        let result = match self.refusal(&about) {
            Some(refusal) => refusal,
            None => self.carry_out(life, action, &about),
        };
        let late = if matches!(result, ActionResult::Unknown) { TIMEOUT_MICROS } else { LATENCY_MICROS };
        let answer = SimEvent::Deliver(life, Event::ActionCompleted { action: id, result });
        self.process.put_under_way(&mut self.timeline, late, answer);
    }

    /// How a request fails by a fault before it has changed anything, if it does.
    fn refusal(&mut self, about: &str) -> Option<ActionResult> {
        let refusals = [
            (Fault::LostRequest, ActionResult::Unknown),
            (Fault::Conflict, ActionResult::Conflict),
            (Fault::Failure, ActionResult::Forbidden("it is not your day".to_owned())),
        ];
        refusals.into_iter().find_map(|(fault, refusal)| self.faults.draw_fault(fault, about).map(|_| refusal))
    }

    /// Carries out a request; its answer may be lost.
    fn carry_out(&mut self, life: u64, action: &Action, about: &str) -> ActionResult {
        let result = self.api.carry_out(action, self.timeline.now());
        let worked = matches!(result, ActionResult::Ok { .. });
        if worked {
            self.count_evictions(action);
        }
        if self.faults.draw_fault(Fault::LostAnswer, about).is_some() {
            return ActionResult::Unknown;
        }
        let evicted = match action {
            Action::Evict { pod } | Action::SoftEvict { pod, .. } => Some(pod.uid.clone()),
            Action::EvictWorkload { workload, .. } => Some(self.process.turn_of(&workload.uid)),
            _ => None,
        };
        if let Some(evicted) = evicted.filter(|_| worked) {
            self.process.known_evicted.insert((life, evicted));
        }
        result
    }
}

/// What a fault may befall when this is requested.
fn about(action: &Action) -> String {
    match action {
        Action::GetObject { key } => format!("read {key}"),
        Action::CreateWorkload { workload } => NamespacedName::from_meta(&workload.metadata).to_string(),
        Action::SetCondition { kind, object, .. } => format!("condition of {kind:?} {}", object.name),
        _ => action.changes().map_or_else(String::new, |(kind, target)| format!("{kind:?} {}", target.name)),
    }
}

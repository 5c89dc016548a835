//! The virtual cluster around the scheduler. [`VirtualCluster::advance`] processes the next events in virtual time:
//!
//! - `timeline`: the clock and the future events;
//! - `api`: the API server;
//! - `process`: the scheduler process, and the messages between it and the API server;
//! - `job_controller`, `kubelet`, `disruption_controller`: create pods, start and stop them, and update budgets;
//! - `faults`: the injected faults;
//! - `tenants`: the objects of a hostile tenant, and mistakes of the others;
//! - `statistics`: the results of the run.

mod disruption_controller;
mod evictions;
mod job_controller;
mod kubelet;
mod process;
mod run_config;
mod sim_event;
mod statistics;
mod tenants;

use reprieve_api::{Kind, NamespacedName, Object, ObjectSet, Source};
use reprieve_engine::Timestamp;
use reprieve_report::decision::DecisionReport;
use reprieve_scheduler::{Action, ActionId, ActionResult, Event, Scheduler, Step, StepOutcome};

use self::disruption_controller::count_budgets;
use self::job_controller::JobController;
use self::process::Process;
use self::sim_event::{LATENCY_MICROS, SimEvent};
use self::statistics::Statistics;
use crate::api::Api;
use crate::fault_injector::FaultInjector;
use crate::faults::Fault;
use crate::hostile::{Hostile, is_of_tenant};
use crate::job::Job;
use crate::run::{Gang, Preemption, Run};
use crate::timeline::Timeline;

pub use self::run_config::{RunConfig, SCHEDULER};

/// The time between two lists of all kinds, in runs where events may be lost.
const RELIST_MICROS: i64 = 60_000_000;
/// The time after which a request without a response fails.
const TIMEOUT_MICROS: i64 = 10_000_000;

/// A cluster in virtual time.
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
    /// A cluster at the start of a run. The stopwatch returns nanoseconds; it only measures decisions and has no effect on them.
    pub fn new(setup: RunConfig, stopwatch: Box<dyn Fn() -> u64>) -> Self {
        let mut cluster = Self {
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
        for object in cluster.setup.objects.clone() {
            cluster.api.create(object, cluster.setup.start);
        }
        if cluster.setup.faults.hostile_objects > 0 {
            cluster.api.create(Hostile::node(), cluster.setup.start);
        }
        cluster.api.take_changes();
        cluster.process.list_all(&mut cluster.timeline, &cluster.api);
        for (index, submission) in cluster.setup.submissions.iter().enumerate() {
            cluster.timeline.add_at(submission.at, SimEvent::Arrive(index));
        }
        if !cluster.setup.faults.is_none() {
            cluster.timeline.add_after(RELIST_MICROS, SimEvent::Relist);
        }
        if cluster.setup.sample_micros > 0 {
            cluster.timeline.add_after(0, SimEvent::Sample);
        }
        cluster
    }

    /// The virtual time.
    pub fn now(&self) -> Timestamp {
        self.timeline.now()
    }

    /// The part of the run that is over, in thousandths.
    pub fn progress(&self) -> u64 {
        let (now, start, end) = (self.now().0, self.setup.start.0, self.setup.end.0);
        u64::try_from((now - start).saturating_mul(1000) / (end - start).max(1)).unwrap_or(0)
    }

    /// Processes all events of the next point in time, and calls `on_step` for each step of the scheduler; `false` when the run is over.
    pub fn advance(&mut self, mut on_step: impl FnMut(&Self, &Step)) -> bool {
        let Some(at) = self.timeline.next_at().filter(|at| *at <= self.setup.end) else {
            return false;
        };
        // 1. Process the events that are due, and deliver their changes.
        while self.timeline.next_at() == Some(at) {
            let event = self.timeline.next().expect("next_at returned a time");
            self.statistics.run.counts.events += 1;
            self.handle(event);
            self.deliver_changes();
        }
        // 2. Let the scheduler take its steps.
        loop {
            let before = (self.stopwatch)();
            let Some(step) = self.process.scheduler.step(at) else { break };
            let counts = &mut self.statistics.run.counts;
            counts.decision_nanos += (self.stopwatch)() - before;
            counts.steps += 1;
            counts.decisions += u64::from(step.unit.is_some());
            on_step(self, &step);
            let decided = self.faults.about(|| step.unit.as_ref().map(ToString::to_string).unwrap_or_default());
            self.execute_step(step);
            if self.faults.draw_fault(Fault::Restart, &decided).is_some() {
                self.statistics.run.counts.restarts += 1;
                self.process.restart(&self.setup, &mut self.timeline, &self.api);
                break;
            }
        }
        // 3. Remove a node, if that fault is drawn.
        if let Some(rng) = self.faults.draw_fault(Fault::LostNode, "") {
            self.lose_node(rng);
        }
        // 4. Let tenants change their objects, if those faults are drawn.
        if let Some(rng) = self.faults.draw_fault(Fault::HostileObject, "") {
            self.act_as_hostile_tenant(rng);
        }
        if let Some(rng) = self.faults.draw_fault(Fault::RelabelledPod, "") {
            self.relabel_pod(rng);
        }
        true
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.process.scheduler
    }

    /// The objects of the API server without those of the hostile tenant, on which no invariant depends.
    pub(crate) fn objects(&self) -> ObjectSet {
        without_tenant(self.api.all())
    }

    /// The objects in the view of the scheduler without those of the hostile tenant.
    pub(crate) fn known_objects(&self) -> ObjectSet {
        without_tenant(&self.scheduler().live().all_objects().iter().collect::<Vec<_>>())
    }

    /// The gangs that are not finished.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = (&Job, Gang)> {
        self.jobs.jobs.iter().filter(|job| !job.is_done()).filter_map(|job| Some((job, job.submission.gang?)))
    }

    /// The reports since the last call, each with the index of its preemption in the run.
    pub fn take_reports(&mut self) -> Vec<(usize, Box<DecisionReport>)> {
        std::mem::take(&mut self.statistics.reports)
    }

    /// Ends the run.
    pub fn finish(mut self) -> Run {
        // If jobs are unfinished, they run or wait until the configured end.
        let all_done = self.jobs.jobs.iter().all(Job::is_done);
        let ended = if all_done { self.timeline.now().min(self.setup.end) } else { self.setup.end };
        self.statistics.run.counts.faults = self.faults.count;
        self.statistics.finish(&self.jobs.jobs, ended)
    }

    fn handle(&mut self, event: SimEvent) {
        let now = self.timeline.now();
        match event {
            SimEvent::Arrive(index) => self.jobs.submit(self.setup.submissions[index].clone(), &mut self.api, now),
            SimEvent::Deliver(incarnation, event) => {
                self.process.undelivered -= 1;
                self.process.observe(incarnation, event, now);
            }
            SimEvent::Wake(incarnation) => self.process.observe(incarnation, Event::TimerFired, now),
            SimEvent::Perform(incarnation, id, action) => self.execute_action(incarnation, id, &action),
            SimEvent::Relist => {
                self.process.list_all(&mut self.timeline, &self.api);
                self.timeline.add_after(RELIST_MICROS, SimEvent::Relist);
            }
            SimEvent::Start { pod, uid } => self.start(&pod, &uid),
            SimEvent::Stop { pod, uid } => self.stop(&pod, &uid),
            SimEvent::Finish { job, part, generation } => {
                self.jobs.finish_part(&mut self.api, &mut self.timeline, job, part, generation);
            }
            SimEvent::RecreatePods { job, part } => self.jobs.create_pods(&mut self.api, job, part, now),
            SimEvent::SoftEvict { pod, uid } => self.delete_soft_evicted(&pod, &uid),
            SimEvent::Sweep(pods) => self.jobs.sweep(&mut self.api, &pods),
            SimEvent::Sync(job) => self.jobs.sync(&mut self.api, job, now),
            SimEvent::Collect(job) => self.jobs.collect(&mut self.api, job),
            SimEvent::NodeBack(node) => {
                self.statistics.usage.capacity += self.statistics.usage.capacity_of(&node);
                self.api.create(*node, now);
            }
            SimEvent::Sample => {
                let uncreated = self.jobs.jobs.iter().map(Job::n_uncreated).sum();
                self.statistics.run.samples.push(self.statistics.usage.sample(now, uncreated));
                if self.timeline.next_at().is_some() {
                    self.timeline.add_after(self.setup.sample_micros, SimEvent::Sample);
                }
            }
        }
    }

    /// Delivers changes to kubelets and controllers at once, and to the scheduler later, with injected faults.
    fn deliver_changes(&mut self) {
        loop {
            let changes = self.api.take_changes();
            if changes.is_empty() {
                return;
            }
            for event in changes {
                self.notify_controllers(&event);
                self.notify_scheduler(event);
            }
        }
    }

    fn notify_controllers(&mut self, event: &Event) {
        match event {
            Event::Upserted(Object::Job(job)) => {
                self.jobs.sync_later(&mut self.timeline, &NamespacedName::from_meta(&job.metadata))
            }
            Event::Upserted(Object::Pod(pod)) => {
                let name = NamespacedName::from_meta(&pod.metadata);
                self.jobs.sync_owner(&mut self.timeline, &name);
                let before = self.statistics.usage.put(pod);
                let holds = pod.node_name.is_some() && pod.metadata.deletion_timestamp.is_none() && !pod.is_finished();
                self.note_gang_pod(&name, holds);
                self.count_budgets(&name.namespace);
                self.follow_pod(pod, &before);
            }
            Event::Deleted { key, .. } if key.kind == Kind::Pod => {
                self.statistics.usage.remove(&key.name);
                self.note_gang_pod(&key.name, false);
                self.jobs.sync_owner(&mut self.timeline, &key.name);
                self.jobs.pod_deleted(&mut self.api, &mut self.timeline, &key.name);
                self.count_budgets(&key.name.namespace);
            }
            _ => {}
        }
    }

    /// Notes whether a pod holds a node, if it is one of a gang.
    fn note_gang_pod(&mut self, pod: &NamespacedName, holds: bool) {
        if let Some((job, gang)) = self.jobs.gang_of(pod) {
            self.statistics.gangs.update(job, gang.min, pod, holds, self.timeline.now());
        }
    }

    fn count_budgets(&mut self, namespace: &str) {
        if self.has_budgets {
            count_budgets(&mut self.api, namespace);
        }
    }

    fn notify_scheduler(&mut self, event: Event) {
        let about = self.faults.about(|| match &event {
            Event::Upserted(object) => object.key().to_string(),
            Event::Deleted { key, .. } => key.to_string(),
            Event::Unreadable { object, .. } => object.object.to_string(),
            Event::Listed { .. } | Event::TimerFired | Event::ActionCompleted { .. } => String::new(),
        });
        if self.faults.draw_fault(Fault::LostEvent, &about).is_some() {
            self.process.has_lost_event = true;
            return;
        }
        let times = if self.faults.draw_fault(Fault::RepeatedEvent, &about).is_some() { 2 } else { 1 };
        for _ in 0..times {
            let delay = self.faults.draw_fault(Fault::DelayedEvent, &about);
            let delay = delay.map_or(0, |mut rng| rng.range(0, 30_000_000));
            self.process.send(&mut self.timeline, LATENCY_MICROS + delay, event.clone());
        }
    }

    /// Sends the actions of a step to the API server.
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
            self.record_foreseen(victims, &step.foreseen);
        }
        for (id, action) in step.actions {
            self.statistics.run.counts.actions += 1;
            let timeline = &mut self.timeline;
            match action {
                Action::WakeAt { at } => timeline.add_at(at, SimEvent::Wake(self.process.incarnation)),
                Action::Relist { kind } => self.process.send(timeline, LATENCY_MICROS, self.api.list(kind)),
                Action::EmitEvent { .. } => {
                    let result = ActionResult::Ok { version: 0 };
                    self.process.send(timeline, LATENCY_MICROS, Event::ActionCompleted { action: id, result });
                }
                action => {
                    let request = SimEvent::Perform(self.process.incarnation, id, action);
                    self.process.enqueue(timeline, LATENCY_MICROS, request);
                }
            }
        }
    }

    /// Executes a request at the API server, unless a fault is drawn, and sends the response.
    fn execute_action(&mut self, incarnation: u64, id: ActionId, action: &Action) {
        self.process.undelivered -= 1;
        let about = self.faults.about(|| about(action));
        let result = match self.refusal(&about) {
            Some(refusal) => refusal,
            None => self.send_to_api(incarnation, action, &about),
        };
        let delay = if matches!(result, ActionResult::Unknown) { TIMEOUT_MICROS } else { LATENCY_MICROS };
        let response = SimEvent::Deliver(incarnation, Event::ActionCompleted { action: id, result });
        self.process.enqueue(&mut self.timeline, delay, response);
    }

    /// The failure of a request that changes nothing, if such a fault is drawn.
    fn refusal(&mut self, about: &str) -> Option<ActionResult> {
        let refusals = [
            (Fault::LostRequest, ActionResult::Unknown),
            (Fault::Conflict, ActionResult::Conflict),
            (Fault::Failure, ActionResult::Forbidden("injected failure".to_owned())),
        ];
        refusals.into_iter().find_map(|(fault, refusal)| self.faults.draw_fault(fault, about).map(|_| refusal))
    }

    /// Executes a request; the response may be lost.
    fn send_to_api(&mut self, incarnation: u64, action: &Action, about: &str) -> ActionResult {
        let result = self.api.apply(action, self.timeline.now());
        let succeeded = matches!(result, ActionResult::Ok { .. });
        if succeeded {
            self.record_action(action);
        }
        if self.faults.draw_fault(Fault::LostAnswer, about).is_some() {
            return ActionResult::Unknown;
        }
        let evicted = match action {
            Action::Evict { pod } | Action::SoftEvict { pod, .. } => Some(pod.uid.clone()),
            Action::EvictWorkload { workload, .. } => Some(self.process.admission_id(&workload.uid)),
            _ => None,
        };
        if let Some(evicted) = evicted.filter(|_| succeeded) {
            self.process.known_evicted.insert((incarnation, evicted));
        }
        result
    }
}

fn without_tenant<'o>(objects: impl IntoIterator<Item = &'o Object>) -> ObjectSet {
    let source = Source { file: "the virtual cluster".into(), document: 1, item: None };
    let mut set = ObjectSet::default();
    for object in objects.into_iter().filter(|object| !is_of_tenant(object)) {
        set.push(object, &source);
    }
    set
}

/// The subject of a request in the draw of faults.
fn about(action: &Action) -> String {
    match action {
        Action::GetObject { key } => format!("read {key}"),
        Action::CreateWorkload { workload } => NamespacedName::from_meta(&workload.metadata).to_string(),
        Action::SetCondition { kind, object, .. } => format!("condition of {kind:?} {}", object.name),
        _ => action.changes().map_or_else(String::new, |(kind, target)| format!("{kind:?} {}", target.name)),
    }
}

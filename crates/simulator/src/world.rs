//! The virtual cluster: the API, the kubelets, the controllers that make pods anew, arrivals and faults, around the scheduler that
//! also runs real clusters.

mod budgets;
mod cluster;
mod jobs;

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_objects::object::{Kind, Object};
use reprieve_objects::objects::{FullName, Objects};
use reprieve_objects::report::Report;
use reprieve_objects::source::Source;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::{ActionResult, Event};
use reprieve_scheduler::{Scheduler, Step, Verdict};

use crate::api::Api;
use crate::chance::Chance;
use crate::faults::{Fault, Faults};
use crate::job::Job;
use crate::luck::Luck;
use crate::run::{Preemption, Run, Sample};
use crate::submission::Submission;
use crate::timeline::Timeline;
use crate::usage::Usage;

/// By what name pods ask for the scheduler.
pub const SCHEDULER: &str = "reprieve";
/// How long a request, its answer, or the news of a change is under way.
const LATENCY_MICROS: i64 = 2_000;
/// How often everything is listed anew where events may be lost.
const RELIST_MICROS: i64 = 60_000_000;
/// How long a controller takes to make a pod anew.
const RESTART_MICROS: i64 = 1_000_000;

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The policy.
    pub policy: Policy,
    /// Nodes, classes, queues, budgets.
    pub objects: Vec<Object>,
    /// What is submitted, and when.
    pub submissions: Vec<Submission>,
    /// When it begins.
    pub start: Timestamp,
    /// When it ends, whatever is still running.
    pub end: Timestamp,
    /// What goes wrong.
    pub faults: Faults,
    /// How long another operator takes to delete a pod that was labelled for it.
    pub soft_eviction_micros: i64,
    /// How far apart samples are taken; 0 is never.
    pub sample_micros: i64,
    /// Whether every preemption is explained.
    pub explains: bool,
    /// Where chance comes from.
    pub seed: u64,
    /// A bug of the scheduler.
    #[cfg(feature = "deliberate-bugs")]
    pub bug: Option<reprieve_scheduler::Bug>,
}

/// What will happen.
enum Happening {
    Arrive(usize),
    /// News for the scheduler that was started so many times.
    Deliver(u64, Event),
    Wake(u64),
    Perform(u64, ActionId, Action),
    Relist,
    Start {
        pod: FullName,
        uid: String,
    },
    Stop {
        pod: FullName,
        uid: String,
    },
    Finish {
        job: usize,
        part: usize,
        turn: u32,
    },
    Renew {
        job: usize,
        part: usize,
    },
    EvictSoftly {
        pod: FullName,
        uid: String,
    },
    Sweep(Vec<FullName>),
    /// The controller of Jobs looks at one.
    Sync(usize),
    /// A Job that is over is cleared away.
    Collect(usize),
    NodeBack(Box<Object>),
    Sample,
}

/// The virtual cluster.
pub struct World {
    setup: Setup,
    timeline: Timeline<Happening>,
    pub(crate) api: Api,
    pub(crate) scheduler: Scheduler,
    /// How often the scheduler was started.
    life: u64,
    jobs: Vec<Job>,
    /// By pod: its job, and the part of it.
    owners: BTreeMap<FullName, (usize, usize)>,
    /// By name.
    job_names: BTreeMap<FullName, usize>,
    /// Those that their controller is about to look at.
    syncing: BTreeSet<usize>,
    /// By the uid of a workload: how often it was admitted.
    admissions: BTreeMap<String, u32>,
    pub(crate) usage: Usage,
    luck: Luck,
    run: Run,
    /// Why, by the number of the preemption, until somebody takes it: of a large cluster it is large.
    reports: Vec<(usize, Box<Report>)>,
    stopwatch: Box<dyn Fn() -> u64>,
    /// News that is on its way to the scheduler.
    undelivered: u64,
    has_budgets: bool,
    /// Whether news was lost since the last list.
    lost: bool,
    last_restart: Timestamp,
    /// By uid: who was evicted.
    evicted: BTreeSet<String>,
    /// By life and uid: evictions that the scheduler was told had worked.
    known_evicted: BTreeSet<(u64, String)>,
}

impl World {
    /// A cluster at its beginning. The stopwatch tells nanoseconds; what it tells has no effect.
    pub fn new(setup: Setup, stopwatch: Box<dyn Fn() -> u64>) -> Self {
        let mut world = Self {
            timeline: Timeline::new(setup.start),
            api: Api::default(),
            scheduler: scheduler(&setup),
            life: 0,
            jobs: Vec::new(),
            owners: BTreeMap::new(),
            job_names: BTreeMap::new(),
            syncing: BTreeSet::new(),
            admissions: BTreeMap::new(),
            usage: Usage::new(&setup.objects),
            luck: Luck::new(setup.seed, setup.faults),
            run: Run { began: setup.start.0, ..Run::default() },
            reports: Vec::new(),
            stopwatch,
            undelivered: 0,
            has_budgets: setup.objects.iter().any(|object| object.kind() == Kind::Budget),
            lost: false,
            last_restart: setup.start,
            evicted: BTreeSet::new(),
            known_evicted: BTreeSet::new(),
            setup,
        };
        for object in world.setup.objects.clone() {
            world.api.create(object, world.setup.start);
        }
        world.api.take_changes();
        world.list_all();
        for at in 0..world.setup.submissions.len() {
            let when = world.setup.submissions[at].at;
            world.timeline.at(when, Happening::Arrive(at));
        }
        if !world.setup.faults.is_none() {
            world.timeline.after(RELIST_MICROS, Happening::Relist);
        }
        if world.setup.sample_micros > 0 {
            world.timeline.after(0, Happening::Sample);
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

    /// The setup.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Lets the next moment pass, and tells of every step of the scheduler in it; `false` when it is over.
    pub fn pass(&mut self, mut tell: impl FnMut(&Self, &Step)) -> bool {
        let Some(at) = self.timeline.next_at().filter(|at| *at <= self.setup.end) else {
            return false;
        };
        while self.timeline.next_at() == Some(at) {
            let happening = self.timeline.next().expect("it was just seen");
            self.run.counts.events += 1;
            self.happen(happening);
            self.spread_news();
        }
        loop {
            let before = (self.stopwatch)();
            let Some(step) = self.scheduler.step(at) else { break };
            self.run.counts.decision_nanos += (self.stopwatch)() - before;
            self.run.counts.steps += 1;
            self.run.counts.decisions += u64::from(step.unit.is_some());
            tell(self, &step);
            let decided = self.if_faulty(|| step.unit.as_ref().map(ToString::to_string).unwrap_or_default());
            self.follow(step);
            if self.fault(Fault::Restart, &decided).is_some() {
                self.restart();
                break;
            }
        }
        if let Some(chance) = self.fault(Fault::LostNode, "") {
            self.lose_node(chance);
        }
        true
    }

    /// All objects, as the API has them.
    pub(crate) fn objects(&self) -> Objects {
        let source = Source { file: "the virtual cluster".into(), document: 1, item: None };
        let mut objects = Objects::default();
        for object in self.api.all() {
            objects.push(object, &source);
        }
        objects
    }

    /// All objects, as the scheduler takes them to be.
    pub(crate) fn seen_by_scheduler(&self) -> Objects {
        self.scheduler.live().everything()
    }

    /// How often the scheduler was started before.
    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    /// When the scheduler was last started.
    pub(crate) fn last_restart(&self) -> Timestamp {
        self.last_restart
    }

    /// Whether the scheduler that lives now has had the answer that this pod was evicted.
    pub(crate) fn knows_evicted(&self, uid: &str) -> bool {
        self.known_evicted.contains(&(self.life, uid.to_owned()))
    }

    /// What tells an admission of a workload from those before.
    pub(crate) fn turn_of(&self, workload: &str) -> String {
        format!("{workload} {}", self.admissions.get(workload).copied().unwrap_or(0))
    }

    /// How many pods were evicted.
    pub(crate) fn evictions(&self) -> usize {
        self.run.evictions.len()
    }

    /// Whether nothing is under way between the scheduler and the API.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.undelivered == 0 && !self.lost
    }

    /// Why somebody had to yield, by the number of the preemption in the run: what was explained since this was last asked.
    pub fn take_reports(&mut self) -> Vec<(usize, Box<Report>)> {
        std::mem::take(&mut self.reports)
    }

    /// What is left behind.
    pub fn finish(mut self) -> Run {
        // Where nothing happens any more, what runs and what waits goes on doing so.
        let over = self.jobs.iter().all(Job::is_done);
        self.run.ended = if over { self.timeline.now().0.min(self.setup.end.0) } else { self.setup.end.0 };
        self.run.jobs = self.jobs.iter().map(|job| self.usage.record(job)).collect();
        self.run.resource = self.usage.resource().to_owned();
        self.run.capacity = self.usage.capacity();
        self.run
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(at) => self.arrive(at),
            Happening::Deliver(life, event) => {
                self.undelivered -= 1;
                if life == self.life {
                    self.scheduler.observe(event, self.timeline.now());
                }
            }
            Happening::Wake(life) => {
                if life == self.life {
                    self.scheduler.observe(Event::Timer, self.timeline.now());
                }
            }
            Happening::Perform(life, id, action) => self.perform(life, id, &action),
            Happening::Relist => {
                self.list_all();
                self.timeline.after(RELIST_MICROS, Happening::Relist);
            }
            Happening::Start { pod, uid } => self.start(&pod, &uid),
            Happening::Stop { pod, uid } => self.stop(&pod, &uid),
            Happening::Finish { job, part, turn } => self.finish_part(job, part, turn),
            Happening::Renew { job, part } => self.make_pods(job, part),
            Happening::EvictSoftly { pod, uid } => self.evict_softly(&pod, &uid),
            Happening::Sweep(pods) => self.sweep(&pods),
            Happening::Sync(job) => self.sync(job),
            Happening::Collect(job) => self.collect(job),
            Happening::NodeBack(node) => {
                self.usage.node_back(&node);
                self.api.create(*node, self.timeline.now());
            }
            Happening::Sample => {
                let (used, running, pending, by_queue) = self.usage.sample();
                let at = self.timeline.now().0;
                self.run.samples.push(Sample { at, used, running, pending, by_queue });
                let more = self.timeline.next_at().is_some();
                if more {
                    self.timeline.after(self.setup.sample_micros, Happening::Sample);
                }
            }
        }
    }

    /// What a fault may befall; nothing where there are none.
    fn if_faulty(&self, about: impl FnOnce() -> String) -> String {
        if self.setup.faults.is_none() { String::new() } else { about() }
    }

    fn fault(&mut self, fault: Fault, about: &str) -> Option<Chance> {
        let strikes = self.luck.strikes(fault, about);
        self.run.counts.faults += u64::from(strikes.is_some());
        strikes
    }

    /// Kubelets, controllers and the scheduler hear of what changed; the scheduler later, and not always rightly.
    fn spread_news(&mut self) {
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

    fn tell_scheduler(&mut self, event: Event) {
        let about = self.if_faulty(|| match &event {
            Event::Changed(object) => object.key().to_string(),
            Event::Gone { key, .. } => key.to_string(),
            Event::Listed { .. } | Event::Timer | Event::Done { .. } => String::new(),
        });
        if self.fault(Fault::LostEvent, &about).is_some() {
            self.lost = true;
            return;
        }
        let times = if self.fault(Fault::RepeatedEvent, &about).is_some() { 2 } else { 1 };
        for _ in 0..times {
            let late = self.fault(Fault::DelayedEvent, &about).map_or(0, |mut chance| chance.within(0, 30_000_000));
            self.deliver(LATENCY_MICROS + late, event.clone());
        }
    }

    fn deliver(&mut self, micros: i64, event: Event) {
        self.undelivered += 1;
        self.timeline.after(micros, Happening::Deliver(self.life, event));
    }

    fn list_all(&mut self) {
        self.lost = false;
        for &kind in Kind::ALL {
            let list = self.api.list(kind);
            self.deliver(LATENCY_MICROS, list);
        }
    }

    fn restart(&mut self) {
        self.run.counts.restarts += 1;
        self.life += 1;
        self.last_restart = self.timeline.now();
        self.scheduler = scheduler(&self.setup);
        self.list_all();
    }

    /// Carries out what a step asks for.
    fn follow(&mut self, step: Step) {
        if let (Some(unit), Verdict::Preempt { placement, victims }) = (&step.unit, &step.verdict) {
            self.reports.extend(step.report.map(|report| (self.run.preemptions.len(), report)));
            self.run.preemptions.push(Preemption {
                at: self.timeline.now(),
                unit: unit.to_string(),
                job: self.part_of(unit).map(|(job, _)| self.jobs[job].submission.name.to_string()),
                victims: victims.clone(),
                placement: placement.clone(),
            });
        }
        for (id, action) in step.actions {
            self.run.counts.actions += 1;
            match action {
                Action::Timer { at } => self.timeline.at(at, Happening::Wake(self.life)),
                Action::List { kind } => {
                    let list = self.api.list(kind);
                    self.deliver(LATENCY_MICROS, list);
                }
                Action::Record { .. } => {
                    let result = ActionResult::Ok { version: 0 };
                    self.deliver(LATENCY_MICROS, Event::Done { action: id, result });
                }
                action => {
                    self.undelivered += 1;
                    self.timeline.after(LATENCY_MICROS, Happening::Perform(self.life, id, action));
                }
            }
        }
    }

    fn perform(&mut self, life: u64, id: ActionId, action: &Action) {
        self.undelivered -= 1;
        let about = self.if_faulty(|| match action {
            Action::Read { key } => format!("read {key}"),
            Action::CreateWorkload { workload } => FullName::of(&workload.metadata).to_string(),
            Action::Condition { kind, object, .. } => format!("condition of {kind:?} {}", object.name),
            _ => action.changes().map_or_else(String::new, |(kind, target)| format!("{kind:?} {}", target.name)),
        });
        let now = self.timeline.now();
        let result = if self.fault(Fault::LostRequest, &about).is_some() {
            ActionResult::TimedOut
        } else if self.fault(Fault::Conflict, &about).is_some() {
            ActionResult::Conflict
        } else if self.fault(Fault::Failure, &about).is_some() {
            ActionResult::Forbidden("it is not your day".to_owned())
        } else {
            let evicts = matches!(action, Action::Evict { .. } | Action::SoftEvict { .. });
            let result = self.api.carry_out(action, now);
            let worked = matches!(result, ActionResult::Ok { .. });
            if let Some(pod) = action.pod().filter(|_| evicts && worked) {
                self.evicted(&pod.name, &pod.uid);
            }
            if worked {
                self.workload_changed(action);
            }
            if self.fault(Fault::LostAnswer, &about).is_some() {
                ActionResult::TimedOut
            } else {
                if let Some(pod) = action.pod().filter(|_| evicts && worked) {
                    self.known_evicted.insert((life, pod.uid.clone()));
                }
                if let (Action::EvictWorkload { workload, .. }, true) = (action, worked) {
                    self.known_evicted.insert((life, self.turn_of(&workload.uid)));
                }
                result
            }
        };
        let late = if matches!(result, ActionResult::TimedOut) { 10_000_000 } else { LATENCY_MICROS };
        self.undelivered += 1;
        self.timeline.after(late, Happening::Deliver(life, Event::Done { action: id, result }));
    }
}

fn scheduler(setup: &Setup) -> Scheduler {
    let scheduler = Scheduler::new(SCHEDULER, setup.policy);
    #[cfg(feature = "deliberate-bugs")]
    let scheduler = scheduler.with_bug(setup.bug);
    if setup.explains { scheduler.explaining() } else { scheduler }
}

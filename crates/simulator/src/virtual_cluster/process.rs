//! The scheduler as a process beside the API server: what reaches it, and how often it was started.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::Kind;
use reprieve_engine::Timestamp;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::event::Event;

use super::run_config::RunConfig;
use super::sim_event::{LATENCY_MICROS, SimEvent};
use crate::api::Api;
use crate::timeline::Timeline;

/// The scheduler that runs now, and what is under way between it and the API server.
pub(crate) struct Process {
    pub scheduler: Scheduler,
    /// How often it was started before.
    pub life: u64,
    /// When it was last started.
    pub started: Timestamp,
    /// How many events, requests and answers are under way.
    pub undelivered: u64,
    /// Whether an event was lost since the last list.
    pub lost: bool,
    /// By life and uid: evictions that the scheduler was told had worked.
    pub known_evicted: BTreeSet<(u64, String)>,
    /// By the uid of a workload: how often it was admitted.
    pub admissions: BTreeMap<String, u32>,
}

impl Process {
    pub fn new(setup: &RunConfig) -> Self {
        Self {
            scheduler: setup.scheduler(),
            life: 0,
            started: setup.start,
            undelivered: 0,
            lost: false,
            known_evicted: BTreeSet::new(),
            admissions: BTreeMap::new(),
        }
    }

    /// Kills the scheduler, and starts one that knows nothing.
    pub fn restart(&mut self, setup: &RunConfig, timeline: &mut Timeline<SimEvent>, api: &Api) {
        self.life += 1;
        self.started = timeline.now();
        self.scheduler = setup.scheduler();
        self.list_all(timeline, api);
    }

    /// Sends a list of every kind.
    pub fn list_all(&mut self, timeline: &mut Timeline<SimEvent>, api: &Api) {
        self.lost = false;
        for &kind in Kind::ALL {
            self.send(timeline, LATENCY_MICROS, api.list(kind));
        }
    }

    /// Sends an event to the scheduler that runs now.
    pub fn send(&mut self, timeline: &mut Timeline<SimEvent>, micros: i64, event: Event) {
        self.put_under_way(timeline, micros, SimEvent::Deliver(self.life, event));
    }

    /// Puts an event, a request or an answer under way.
    pub fn put_under_way(&mut self, timeline: &mut Timeline<SimEvent>, micros: i64, what: SimEvent) {
        self.undelivered += 1;
        timeline.after(micros, what);
    }

    /// The scheduler of this life observes something; one that was killed does not.
    pub fn observe(&mut self, life: u64, event: Event, now: Timestamp) {
        if life == self.life {
            self.scheduler.observe(event, now);
        }
    }

    /// Whether nothing is under way, and nothing was lost.
    pub fn is_at_rest(&self) -> bool {
        self.undelivered == 0 && !self.lost
    }

    /// What tells an admission of a workload from those before.
    pub fn turn_of(&self, workload: &str) -> String {
        format!("{workload} {}", self.admissions.get(workload).copied().unwrap_or(0))
    }

    /// Whether the scheduler that runs now has the answer that a pod, or a turn of a workload, was evicted.
    pub fn knows_evicted(&self, uid: &str) -> bool {
        self.known_evicted.contains(&(self.life, uid.to_owned()))
    }
}

//! The scheduler process: the messages between it and the API server, and its restarts.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::Kind;
use reprieve_engine::Timestamp;
use reprieve_scheduler::{Event, Scheduler};

use super::run_config::RunConfig;
use super::sim_event::{LATENCY_MICROS, SimEvent};
use crate::api::Api;
use crate::timeline::Timeline;

pub(crate) struct Process {
    pub scheduler: Scheduler,
    /// The number of restarts.
    pub incarnation: u64,
    /// The time of the last start.
    pub started: Timestamp,
    /// The number of events, requests and responses in flight.
    pub undelivered: u64,
    /// Whether an event was lost since the last list.
    pub has_lost_event: bool,
    /// The evictions whose success the scheduler received: its incarnation, and the uid of the pod or the admission of the workload.
    pub known_evicted: BTreeSet<(u64, String)>,
    /// The number of admissions of each workload, by uid.
    pub admissions: BTreeMap<String, u32>,
}

impl Process {
    pub fn new(setup: &RunConfig) -> Self {
        Self {
            scheduler: setup.scheduler(),
            incarnation: 0,
            started: setup.start,
            undelivered: 0,
            has_lost_event: false,
            known_evicted: BTreeSet::new(),
            admissions: BTreeMap::new(),
        }
    }

    /// Replaces the scheduler by a new one without state.
    pub fn restart(&mut self, setup: &RunConfig, timeline: &mut Timeline<SimEvent>, api: &Api) {
        self.incarnation += 1;
        self.started = timeline.now();
        self.scheduler = setup.scheduler();
        self.list_all(timeline, api);
    }

    /// Sends a list of every kind.
    pub fn list_all(&mut self, timeline: &mut Timeline<SimEvent>, api: &Api) {
        self.has_lost_event = false;
        // The virtual cluster has no DaemonSets, so their list, which is empty, needs no message.
        self.scheduler.observe(api.list(Kind::DaemonSet), timeline.now());
        for &kind in Kind::ALL.iter().filter(|kind| **kind != Kind::DaemonSet) {
            self.send(timeline, LATENCY_MICROS, api.list(kind));
        }
    }

    /// Sends an event to the current scheduler.
    pub fn send(&mut self, timeline: &mut Timeline<SimEvent>, micros: i64, event: Event) {
        self.enqueue(timeline, micros, SimEvent::Deliver(self.incarnation, event));
    }

    /// Schedules the arrival of an event, a request or a response.
    pub fn enqueue(&mut self, timeline: &mut Timeline<SimEvent>, micros: i64, message: SimEvent) {
        self.undelivered += 1;
        timeline.add_after(micros, message);
    }

    /// Passes an event to the scheduler, unless it was restarted since the event was sent.
    pub fn observe(&mut self, incarnation: u64, event: Event, now: Timestamp) {
        if incarnation == self.incarnation {
            self.scheduler.observe(event, now);
        }
    }

    /// Whether no message is in flight and no event was lost.
    pub fn is_at_rest(&self) -> bool {
        self.undelivered == 0 && !self.has_lost_event
    }

    /// Identifies the current admission of a workload.
    pub fn admission_id(&self, workload: &str) -> String {
        format!("{workload} {}", self.admissions.get(workload).copied().unwrap_or(0))
    }

    /// Whether the current scheduler knows of the eviction of a pod (by uid) or of an admission of a workload.
    pub fn scheduler_knows_evicted(&self, uid: &str) -> bool {
        self.known_evicted.contains(&(self.incarnation, uid.to_owned()))
    }
}

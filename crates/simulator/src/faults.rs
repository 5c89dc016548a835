//! What goes wrong, and how often: in so many of a million cases.

use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Faults {
    /// An event is lost; only the next list shows it.
    pub lost_events: u32,
    /// An event comes twice.
    pub repeated_events: u32,
    /// An event comes up to half a minute late, after others that were after it.
    pub delayed_events: u32,
    /// A request finds that the object has changed.
    pub conflicts: u32,
    /// A request fails for want of a right.
    pub failures: u32,
    /// A request works, but its answer never comes.
    pub lost_answers: u32,
    /// A request is lost, and so is its answer.
    pub lost_requests: u32,
    /// A victim takes minutes to go.
    pub slow_victims: u32,
    /// By step: a node vanishes, and comes back after some minutes.
    pub lost_nodes: u32,
    /// By step: the scheduler is killed and started anew.
    pub restarts: u32,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// See [`Faults::lost_events`].
    LostEvent,
    /// See [`Faults::repeated_events`].
    RepeatedEvent,
    /// See [`Faults::delayed_events`].
    DelayedEvent,
    /// See [`Faults::conflicts`].
    Conflict,
    /// See [`Faults::failures`].
    Failure,
    /// See [`Faults::lost_answers`].
    LostAnswer,
    /// See [`Faults::lost_requests`].
    LostRequest,
    /// See [`Faults::slow_victims`].
    SlowVictim,
    /// See [`Faults::lost_nodes`].
    LostNode,
    /// See [`Faults::restarts`].
    Restart,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::LostEvent,
        Self::RepeatedEvent,
        Self::DelayedEvent,
        Self::Conflict,
        Self::Failure,
        Self::LostAnswer,
        Self::LostRequest,
        Self::SlowVictim,
        Self::LostNode,
        Self::Restart,
    ];
}

impl Faults {
    /// In how many of a million cases this kind happens.
    pub fn rate(&mut self, kind: Fault) -> &mut u32 {
        match kind {
            Fault::LostEvent => &mut self.lost_events,
            Fault::RepeatedEvent => &mut self.repeated_events,
            Fault::DelayedEvent => &mut self.delayed_events,
            Fault::Conflict => &mut self.conflicts,
            Fault::Failure => &mut self.failures,
            Fault::LostAnswer => &mut self.lost_answers,
            Fault::LostRequest => &mut self.lost_requests,
            Fault::SlowVictim => &mut self.slow_victims,
            Fault::LostNode => &mut self.lost_nodes,
            Fault::Restart => &mut self.restarts,
        }
    }

    /// A bit of everything.
    pub const SOME: Self = Self {
        lost_events: 10_000,
        repeated_events: 20_000,
        delayed_events: 20_000,
        conflicts: 20_000,
        failures: 5_000,
        lost_answers: 20_000,
        lost_requests: 10_000,
        slow_victims: 100_000,
        lost_nodes: 500,
        restarts: 5_000,
    };

    /// Whether nothing goes wrong.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

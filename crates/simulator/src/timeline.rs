//! The virtual clock of a simulation and its future events (`T` is `SimEvent`). `VirtualCluster` adds events and handles them one by one.
//! Events at the same time occur in the order in which they were added.

use std::collections::BTreeMap;

use reprieve_engine::Timestamp;

/// A clock with a queue of future events.
pub struct Timeline<T> {
    now: Timestamp,
    /// How many events were added so far.
    added: u64,
    /// The events by time, then by the order of addition.
    events: BTreeMap<(Timestamp, u64), T>,
}

impl<T> Timeline<T> {
    /// An empty timeline whose clock shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now, added: 0, events: BTreeMap::new() }
    }

    /// The virtual time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Adds an event at a time; an event in the past occurs now.
    pub fn add_at(&mut self, time: Timestamp, event: T) {
        self.events.insert((time.max(self.now), self.added), event);
        self.added += 1;
    }

    /// Adds an event that occurs after a delay in virtual time.
    pub fn add_after(&mut self, micros: i64, event: T) {
        self.add_at(self.now.plus_micros(micros), event);
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.events.first_key_value().map(|((time, _), _)| *time)
    }

    /// Advances the clock to the next event and returns it.
    pub fn next(&mut self) -> Option<T> {
        let ((time, _), event) = self.events.pop_first()?;
        self.now = time;
        Some(event)
    }
}

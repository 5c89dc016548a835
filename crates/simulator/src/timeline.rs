//! Virtual time: what will happen, in order. Of two things at one moment, the one that was arranged first comes first.

use std::collections::BTreeMap;

use reprieve_engine::Timestamp;

/// What will happen, and when it is.
pub struct Timeline<T> {
    now: Timestamp,
    arranged: u64,
    /// By time, then by the number of the arrangement.
    coming: BTreeMap<(Timestamp, u64), T>,
}

impl<T> Timeline<T> {
    /// Time begins.
    pub fn new(now: Timestamp) -> Self {
        Self { now, arranged: 0, coming: BTreeMap::new() }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Arranges for something at a time; what lies in the past happens now.
    pub fn at(&mut self, at: Timestamp, what: T) {
        self.coming.insert((at.max(self.now), self.arranged), what);
        self.arranged += 1;
    }

    /// Arranges for something after so many microseconds.
    pub fn after(&mut self, micros: i64, what: T) {
        self.at(self.now.plus_micros(micros), what);
    }

    /// The time of what comes next.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.coming.first_key_value().map(|((at, _), _)| *at)
    }

    /// Time passes until the next thing happens.
    pub fn next(&mut self) -> Option<T> {
        let ((at, _), what) = self.coming.pop_first()?;
        self.now = at;
        Some(what)
    }
}

//! Virtual time: what will happen, in order. Of two things at one moment, the one that was arranged first comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reprieve_engine::Timestamp;

/// What will happen, and when it is.
pub struct Timeline<T> {
    now: Timestamp,
    arranged: u64,
    coming: BinaryHeap<Reverse<Coming<T>>>,
}

struct Coming<T> {
    at: Timestamp,
    number: u64,
    what: T,
}

impl<T> Timeline<T> {
    /// Time begins.
    pub fn new(now: Timestamp) -> Self {
        Self { now, arranged: 0, coming: BinaryHeap::new() }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Arranges for something at a time; what lies in the past happens now.
    pub fn at(&mut self, at: Timestamp, what: T) {
        let (at, number) = (at.max(self.now), self.arranged);
        self.arranged += 1;
        self.coming.push(Reverse(Coming { at, number, what }));
    }

    /// Arranges for something after so many microseconds.
    pub fn after(&mut self, micros: i64, what: T) {
        self.at(self.now.plus_micros(micros), what);
    }

    /// The time of what comes next.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.coming.peek().map(|Reverse(coming)| coming.at)
    }

    /// Time passes until the next thing happens.
    pub fn next(&mut self) -> Option<T> {
        let Reverse(coming) = self.coming.pop()?;
        self.now = coming.at;
        Some(coming.what)
    }
}

impl<T> Ord for Coming<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<T> PartialOrd for Coming<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Coming<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Coming<T> {}

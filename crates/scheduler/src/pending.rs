//! Who waits, for what, and who is next.
//!
//! A unit is active, or waits for a moment, for the world to change, or for what it asked for to be done. Units are tried in the order of
//! priority, then age, then name; one that cannot be scheduled steps aside. So that a large unit is not overtaken for ever, one that
//! has waited for [`PATIENCE_SECONDS`], and would fit were nobody there but those above it, holds back those behind it for as long
//! again; then it gives way for as long, and so on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use reprieve_engine::{Priority, Timestamp};

use crate::action::ActionId;
use crate::unit::UnitName;

/// How long a unit of several pods is overtaken before it holds back others, and how long it does so.
pub const PATIENCE_SECONDS: i64 = 300;

/// Where a unit stands among others.
type Place = (Reverse<Priority>, Timestamp, UnitName);

/// All units that wait.
#[derive(Default)]
pub(crate) struct Pending {
    units: BTreeMap<UnitName, Waiting>,
    active: BTreeSet<Place>,
    /// Units of several pods.
    large: BTreeSet<Place>,
    /// Times at which somebody is to be woken.
    timers: BTreeSet<(Timestamp, UnitName)>,
}

/// A unit that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub priority: Priority,
    /// Since when.
    pub since: Timestamp,
    /// How many pods it has.
    pub size: usize,
    pub state: State,
    /// How often in a row what it asked for failed.
    pub failures: u32,
    /// Whether it would fit, were nobody there but those above it; `None` while that was not asked.
    pub could_fit: Option<bool>,
}

/// What a unit waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its turn.
    Active,
    /// The world to change, or a moment, whichever is first.
    Change { until: Option<Timestamp>, why: String },
    /// A moment.
    Backoff { until: Timestamp },
    /// A moment, because its decision failed by a fault: nothing else wakes it.
    Aside { until: Timestamp },
    /// The results of what it asked for.
    Busy(BTreeSet<ActionId>),
}

impl Pending {
    /// A unit that is there, or has changed. A new one is active.
    pub fn put(&mut self, unit: &UnitName, priority: Priority, since: Timestamp, size: usize) {
        let known = self.units.get(unit).map(|waiting| (waiting.state.clone(), waiting.failures));
        let (state, failures) = known.unwrap_or((State::Active, 0));
        self.remove(unit);
        let waiting = Waiting { priority, since, size, state: State::Active, failures, could_fit: None };
        if size > 1 {
            self.large.insert(waiting.place(unit));
        }
        self.units.insert(unit.clone(), waiting);
        self.set(unit, state);
    }

    pub fn remove(&mut self, unit: &UnitName) {
        if let Some(waiting) = self.units.remove(unit) {
            let place = waiting.place(unit);
            self.active.remove(&place);
            self.large.remove(&place);
            if let Some(until) = waiting.state.until() {
                self.timers.remove(&(until, unit.clone()));
            }
        }
    }

    pub fn get(&self, unit: &UnitName) -> Option<&Waiting> {
        self.units.get(unit)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&UnitName, &Waiting)> {
        self.units.iter()
    }

    /// What the unit waits for from now on.
    pub fn set(&mut self, unit: &UnitName, state: State) {
        let Some(waiting) = self.units.get_mut(unit) else { return };
        if let Some(until) = waiting.state.until() {
            self.timers.remove(&(until, unit.clone()));
        }
        if let Some(until) = state.until() {
            self.timers.insert((until, unit.clone()));
        }
        let place = waiting.place(unit);
        match &state {
            State::Active => self.active.insert(place),
            State::Change { .. } | State::Backoff { .. } | State::Aside { .. } | State::Busy(_) => {
                self.active.remove(&place)
            }
        };
        waiting.state = state;
    }

    /// The world changed: whoever waits for that is active.
    pub fn wake_all(&mut self) {
        self.wake_those(|_| true);
    }

    /// Nodes have more or less room: whoever needs a node is active.
    pub fn wake_pods(&mut self) {
        self.wake_those(|unit| !matches!(unit, UnitName::Workload(_)));
    }

    /// Quota is used or free: whoever needs quota is active.
    pub fn wake_workloads(&mut self) {
        self.wake_those(|unit| matches!(unit, UnitName::Workload(_)));
    }

    fn wake_those(&mut self, is_meant: impl Fn(&UnitName) -> bool) {
        let wakes =
            |(unit, waiting): &(&UnitName, &Waiting)| matches!(waiting.state, State::Change { .. }) && is_meant(unit);
        let units: Vec<UnitName> = self.units.iter().filter(wakes).map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            self.set(&unit, State::Active);
        }
    }

    /// One unit's own state changed.
    pub fn wake(&mut self, unit: &UnitName) {
        if self.units.get(unit).is_some_and(|waiting| matches!(waiting.state, State::Change { .. })) {
            self.set(unit, State::Active);
        }
    }

    /// The moments that have come.
    pub fn wake_due(&mut self, now: Timestamp) {
        while let Some((_, unit)) = self.timers.first().filter(|(until, _)| *until <= now).cloned() {
            self.set(&unit, State::Active);
        }
    }

    /// The next moment at which somebody is to be woken.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(until, _)| *until)
    }

    /// Counts a failure, and backs off: a second, then twice as long each time, up to a minute.
    pub fn back_off(&mut self, unit: &UnitName, now: Timestamp) {
        if let Some(waiting) = self.units.get_mut(unit) {
            let seconds = 1 << waiting.failures.min(6);
            waiting.failures += 1;
            self.set(unit, State::Backoff { until: now.plus_seconds(seconds.min(60)) });
        }
    }

    /// What it asked for worked.
    pub fn succeeded(&mut self, unit: &UnitName) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.failures = 0;
        }
    }

    /// All who are active, the next first.
    pub fn active(&self) -> impl Iterator<Item = &UnitName> {
        self.active.iter().map(|(_, _, unit)| unit)
    }

    /// Whether a unit waits, and its turn is before another's.
    pub fn is_before(&self, unit: &UnitName, other: &UnitName) -> bool {
        let place = |unit: &UnitName| Some(self.units.get(unit)?.place(unit));
        place(unit).is_some_and(|first| place(other).is_none_or(|second| first < second))
    }

    /// The unit that holds this one back, and until when.
    pub fn held_back(&self, unit: &UnitName, now: Timestamp) -> Option<(&UnitName, Timestamp)> {
        let waiting = self.units.get(unit)?;
        let place = waiting.place(unit);
        self.large.range(..place).find_map(|(_, _, other)| {
            let holder = self.units.get(other)?;
            let waits = matches!(holder.state, State::Change { .. }) && holder.could_fit == Some(true);
            Some((other, holder.holds_until(now).filter(|_| waits)?))
        })
    }

    /// Whether it is time to ask if a unit of several pods could fit at all.
    pub fn is_impatient(&self, unit: &UnitName, now: Timestamp) -> bool {
        self.units.get(unit).is_some_and(|waiting| {
            let waited = now.0.saturating_sub(waiting.since.0);
            waiting.size > 1 && waiting.could_fit.is_none() && waited >= PATIENCE_SECONDS * 1_000_000
        })
    }

    /// It would fit, were nobody there but those above it, or it would not.
    pub fn set_could_fit(&mut self, unit: &UnitName, could_fit: bool) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.could_fit = Some(could_fit);
        }
    }
}

impl State {
    /// The moment at which it ends at the latest, if there is one.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Active | Self::Busy(_) => None,
            Self::Change { until, .. } => *until,
            Self::Backoff { until } | Self::Aside { until } => Some(*until),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("its turn is near"),
            Self::Change { why, .. } => f.write_str(why),
            Self::Backoff { .. } => f.write_str("what it asked for failed; it will ask again"),
            Self::Aside { .. } => f.write_str("the decision failed by a fault of the scheduler; its log says more"),
            Self::Busy(_) => f.write_str("what it asked for is being done"),
        }
    }
}

impl Waiting {
    fn place(&self, unit: &UnitName) -> Place {
        (Reverse(self.priority), self.since, unit.clone())
    }

    /// Until when it holds back others, if it does now.
    fn holds_until(&self, now: Timestamp) -> Option<Timestamp> {
        let patience = PATIENCE_SECONDS * 1_000_000;
        let phase = now.0.saturating_sub(self.since.0) / patience;
        (phase % 2 == 1).then(|| self.since.plus_micros((phase + 1) * patience))
    }
}

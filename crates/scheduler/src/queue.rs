//! Who waits, for what, and who is next.
//!
//! A unit is active, or waits for a moment, for the world to change, or for what it asked for to be done. Units are tried in the order of
//! priority, then age, then name; one that cannot be scheduled steps aside. So that a large unit is not overtaken for ever, one that
//! has waited for [`PATIENCE_SECONDS`], and would fit were nobody there but those above it, holds back those behind it for as long
//! again; then it gives way for as long, and so on.
//!
//! Units that are alike stand in a crowd once one of them was refused: the first speaks for all.

mod crowds;
mod fair_order;
mod footing;
mod likeness;
mod next;
mod roll;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_engine::{Priority, Timestamp};
use reprieve_report::unit_name::UnitName;

use crate::action::ActionId;
use crate::wait_reason::WaitReason;
pub(crate) use crowds::Waits;
use crowds::{CrowdId, Crowds};
use fair_order::FairOrder;
use footing::Footing;
use likeness::{Likeness, Looks};
pub(crate) use roll::Needy;
use roll::Roll;

/// How long a unit of several pods is overtaken before it holds back others, and how long it does so.
pub const PATIENCE_SECONDS: i64 = 300;

/// Where a unit stands among others.
type Place = (Reverse<Priority>, Timestamp, UnitName);

/// All units that wait.
#[derive(Default)]
pub(crate) struct PendingQueue {
    units: BTreeMap<UnitName, Waiting>,
    active: BTreeSet<Place>,
    /// Those that wait for a change, each for itself, and where they are to land, if that is known; workloads do not.
    alone: BTreeMap<UnitName, Option<Arc<Footing>>>,
    /// Whether quota is used or free since workloads were last looked at.
    quota_news: bool,
    crowds: Crowds,
    /// Units of several pods that would fit, were nobody there but those above them.
    holders: BTreeSet<Place>,
    /// Times at which somebody is to be woken.
    timers: BTreeSet<(Timestamp, UnitName)>,
    /// The pods of units of several that need a place.
    roll: Roll,
    looks: Looks,
    fair_order: FairOrder,
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
    /// Why it waits, as of the last decision about it; `None` before the first.
    pub reason: Option<WaitReason>,
}

/// What a unit waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its turn.
    Active,
    /// The world to change, or a moment, whichever is first.
    Change { until: Option<Timestamp>, why: Arc<str> },
    /// Others to leave from where it is to land.
    Landing { footing: Arc<Footing>, why: Arc<str> },
    /// The same as others that are like it.
    Alike(CrowdId),
    /// A moment.
    Backoff { until: Timestamp },
    /// A moment, because its decision failed by a fault: nothing else wakes it.
    Aside { until: Timestamp },
    /// The results of what it asked for.
    Busy(BTreeSet<ActionId>),
}

impl PendingQueue {
    /// A unit that is there, or has changed. A new one is active.
    pub fn put(&mut self, unit: &UnitName, needy: Needy) {
        let Needy { priority, since, count } = needy;
        if let Some(known) = self.units.get_mut(unit).filter(|known| (known.priority, known.since) == (priority, since))
        {
            known.size = count;
            if known.could_fit.take().is_some() {
                self.holders.remove(&known.place(unit));
            }
            if matches!(known.state, State::Alike(_)) {
                self.set(unit, State::Active);
            }
            return;
        }
        let (state, failures, reason) = match self.remove(unit) {
            Some(Waiting { state: State::Alike(_), failures, reason, .. }) => (State::Active, failures, reason),
            Some(Waiting { state, failures, reason, .. }) => (state, failures, reason),
            None => (State::Active, 0, None),
        };
        let waiting = Waiting { priority, since, size: count, state: State::Active, failures, could_fit: None, reason };
        self.units.insert(unit.clone(), waiting);
        self.set(unit, state);
    }

    pub fn remove(&mut self, unit: &UnitName) -> Option<Waiting> {
        let waiting = self.units.remove(unit)?;
        let place = waiting.place(unit);
        self.leave(unit, &waiting.state, &place);
        self.holders.remove(&place);
        Some(waiting)
    }

    pub fn get(&self, unit: &UnitName) -> Option<&Waiting> {
        self.units.get(unit)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&UnitName, &Waiting)> {
        self.units.iter()
    }

    /// What whoever is in this state waits for.
    pub fn why<'a>(&'a self, state: &'a State) -> &'a str {
        match state {
            State::Active => "its turn is near",
            State::Change { why, .. } | State::Landing { why, .. } => why,
            State::Alike(crowd) => self.crowds.waits(*crowd).map_or("its turn is near", |waits| &waits.why),
            State::Backoff { .. } => "what it asked for failed; it will ask again",
            State::Aside { .. } => "the decision failed by a fault of the scheduler; its log says more",
            State::Busy(_) => "what it asked for is being done",
        }
    }

    /// Whether the unit waits for what it asked for to be done.
    pub fn is_busy(&self, unit: &UnitName) -> bool {
        self.units.get(unit).is_some_and(|waiting| matches!(waiting.state, State::Busy(_)))
    }

    /// The unit waits for this to be done, besides what it waits for so already.
    pub fn busy(&mut self, unit: &UnitName, action: ActionId) {
        match self.units.get_mut(unit).map(|waiting| &mut waiting.state) {
            Some(State::Busy(actions)) => {
                actions.insert(action);
            }
            _ => self.set(unit, State::Busy(BTreeSet::from([action]))),
        }
    }

    /// This is done; for how much else the unit waits. `None` where it waits for nothing to be done.
    pub fn done(&mut self, unit: &UnitName, action: ActionId) -> Option<usize> {
        let State::Busy(actions) = &mut self.units.get_mut(unit)?.state else { return None };
        actions.remove(&action);
        Some(actions.len())
    }

    /// What the unit waits for from now on.
    pub fn set(&mut self, unit: &UnitName, state: State) {
        let Some(waiting) = self.units.get_mut(unit) else { return };
        let place = waiting.place(unit);
        let before = std::mem::replace(&mut waiting.state, state.clone());
        if before != state {
            self.leave(unit, &before, &place);
        }
        if let Some(until) = state.until() {
            self.timers.insert((until, unit.clone()));
        }
        match state {
            State::Active => {
                self.active.insert(place);
            }
            State::Change { .. } if matches!(unit, UnitName::Workload(_)) => {}
            State::Change { .. } => {
                self.alone.insert(unit.clone(), None);
            }
            State::Landing { footing, .. } => {
                self.alone.insert(unit.clone(), Some(footing));
            }
            State::Alike(crowd) => self.crowds.join(crowd, place),
            State::Backoff { .. } | State::Aside { .. } | State::Busy(_) => {}
        }
    }

    fn leave(&mut self, unit: &UnitName, state: &State, place: &Place) {
        if let Some(until) = state.until() {
            self.timers.remove(&(until, unit.clone()));
        }
        match state {
            State::Active => {
                self.active.remove(place);
            }
            State::Change { .. } | State::Landing { .. } => {
                self.alone.remove(unit);
            }
            State::Alike(crowd) => self.crowds.leave(*crowd, place),
            State::Backoff { .. } | State::Aside { .. } | State::Busy(_) => {}
        }
    }

    /// Whoever waits for a change waits with those that are like it, and for the same. Returns those who are to be told.
    fn wait_with(&mut self, unit: &UnitName, likeness: Likeness, waits: Waits, now: Timestamp) -> Vec<UnitName> {
        let crowd = self.crowds.of(likeness);
        let untold = self.crowds.park(crowd, waits, now);
        self.set(unit, State::Alike(crowd));
        untold
    }

    /// The reason for which others that are like it wait for a change; then it does so with them.
    fn waits_already(&mut self, unit: &UnitName, likeness: &Likeness) -> Option<(WaitReason, Arc<str>)> {
        let crowd = self.crowds.asleep(likeness)?;
        self.set(unit, State::Alike(crowd));
        self.crowds.waits(crowd).map(|waits| (waits.reason, Arc::clone(&waits.why)))
    }

    /// What made units alike, or showed them where to land, may no longer do so: they are active, each for itself.
    fn part(&mut self) {
        self.wake_alone(|footing| footing.is_some());
        for unit in self.crowds.all() {
            self.set(&unit, State::Active);
        }
    }

    /// The world changed: whoever waits for that is active.
    pub fn wake_all(&mut self) {
        self.wake_alone(|_| true);
        self.crowds.wake(|_, _| true);
        self.quota_news = true;
    }

    /// Nodes have more or less room: whoever needs a node is active, except for crowds that this is no help to, and those who do not mind
    /// while they wait for others to leave.
    fn wake_pods(&mut self, helps: impl Fn(&Likeness) -> bool, touches: impl Fn(&Footing) -> bool) {
        self.wake_alone(|footing| footing.is_none_or(&touches));
        self.crowds.wake(|likeness, waits| waits.held_back || helps(likeness));
    }

    /// Quota is used or free: workloads are looked at.
    pub fn wake_workloads(&mut self) {
        self.quota_news = true;
    }

    /// Whether workloads are to be looked at; then they are.
    pub fn take_quota_news(&mut self) -> bool {
        std::mem::take(&mut self.quota_news)
    }

    fn wake_alone(&mut self, is_meant: impl Fn(Option<&Footing>) -> bool) {
        let meant = self.alone.iter().filter(|(_, footing)| is_meant(footing.as_deref()));
        let units: Vec<UnitName> = meant.map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            self.set(&unit, State::Active);
        }
    }

    /// One unit's own state changed.
    pub fn wake(&mut self, unit: &UnitName) {
        let waits = |state: &State| matches!(state, State::Change { .. } | State::Landing { .. } | State::Alike(_));
        if self.units.get(unit).is_some_and(|waiting| waits(&waiting.state)) {
            self.set(unit, State::Active);
        }
    }

    /// The moments that have come.
    pub fn wake_due(&mut self, now: Timestamp) {
        while let Some((_, unit)) = self.timers.first().filter(|(until, _)| *until <= now).cloned() {
            self.set(&unit, State::Active);
        }
        self.crowds.wake_due(now);
    }

    /// The next moment at which somebody is to be woken.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let first = self.timers.first().map(|(until, _)| *until);
        first.into_iter().chain(self.crowds.next_timer()).min()
    }

    /// Counts a failure, and backs off: a second, then twice as long each time, up to a minute.
    pub fn back_off(&mut self, unit: &UnitName, now: Timestamp) {
        if let Some(waiting) = self.units.get_mut(unit) {
            let seconds = 1 << waiting.failures.min(6);
            waiting.failures += 1;
            self.set(unit, State::Backoff { until: now.plus_seconds(seconds.min(60)) });
        }
    }

    /// Why a unit waits; `None` before the first decision about it.
    pub fn reason(&self, waiting: &Waiting) -> Option<WaitReason> {
        match waiting.state {
            State::Alike(crowd) => self.crowds.waits(crowd).map(|waits| waits.reason),
            _ => waiting.reason,
        }
    }

    /// Why a unit waits from now on.
    pub fn set_reason(&mut self, unit: &UnitName, reason: WaitReason) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.reason = Some(reason);
        }
    }

    /// What it asked for worked.
    pub fn succeeded(&mut self, unit: &UnitName) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.failures = 0;
        }
    }

    /// All who are active each for itself, the next first.
    pub fn active(&self) -> impl Iterator<Item = &UnitName> {
        self.active.iter().map(|(_, _, unit)| unit)
    }

    /// Whether a unit waits, and its turn is before another's.
    pub fn is_before(&self, unit: &UnitName, other: &UnitName) -> bool {
        let place = |unit: &UnitName| Some(self.units.get(unit)?.place(unit));
        place(unit).is_some_and(|first| place(other).is_none_or(|second| first < second))
    }

    /// The unit whose turn it is: the first of those that are active each for itself, and of the crowds that are.
    fn first(&self) -> Option<(UnitName, Option<CrowdId>)> {
        let alone = self.active.first().map(|place| (place, None));
        let (place, crowd) = alone.into_iter().chain(self.crowds.heads().next()).min_by_key(|(place, _)| *place)?;
        Some((place.2.clone(), crowd))
    }

    /// The unit that holds this one back, and until when.
    fn held_back(&self, unit: &UnitName, now: Timestamp) -> Option<(&UnitName, Timestamp)> {
        let waiting = self.units.get(unit)?;
        let place = waiting.place(unit);
        self.holders.range(..place).find_map(|(_, _, other)| {
            let holder = self.units.get(other)?;
            let waits = match holder.state {
                State::Change { .. } | State::Landing { .. } => true,
                State::Alike(crowd) => self.crowds.waits(crowd).is_some(),
                State::Active | State::Backoff { .. } | State::Aside { .. } | State::Busy(_) => false,
            };
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

    /// When that time will come.
    pub fn patience_ends(&self, unit: &UnitName, now: Timestamp) -> Option<Timestamp> {
        let waiting = self.units.get(unit).filter(|waiting| waiting.size > 1 && waiting.could_fit.is_none())?;
        Some(waiting.since.plus_seconds(PATIENCE_SECONDS)).filter(|at| *at > now)
    }

    /// It would fit, were nobody there but those above it, or it would not.
    pub fn set_could_fit(&mut self, unit: &UnitName, could_fit: bool) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.could_fit = Some(could_fit);
            let place = waiting.place(unit);
            match could_fit && waiting.size > 1 {
                true => self.holders.insert(place),
                false => self.holders.remove(&place),
            };
        }
    }
}

impl State {
    /// The moment at which it ends at the latest, if there is one of its own.
    fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Active | Self::Landing { .. } | Self::Alike(_) | Self::Busy(_) => None,
            Self::Change { until, .. } => *until,
            Self::Backoff { until } | Self::Aside { until } => Some(*until),
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

#[cfg(test)]
mod tests {
    use reprieve_api::meta::FullName;

    use super::*;

    fn unit(name: &str) -> UnitName {
        UnitName::Pod(FullName::new("default", name))
    }

    fn queue(units: &[(&str, i32, i64)]) -> PendingQueue {
        let mut queue = PendingQueue::default();
        for &(name, priority, since) in units {
            queue.put(&unit(name), Needy { priority: Priority(priority), since: Timestamp(since), count: 1 });
        }
        queue
    }

    fn first(queue: &PendingQueue) -> Option<UnitName> {
        queue.first().map(|(unit, _)| unit)
    }

    #[test]
    fn units_are_ordered_by_priority_then_age_then_name() {
        let mut queue = queue(&[("c", 1, 1), ("b", 1, 1), ("old", 1, 0), ("high", 2, 5)]);
        for name in ["high", "old", "b", "c"] {
            assert_eq!(first(&queue), Some(unit(name)));
            queue.remove(&unit(name));
        }
        assert_eq!(first(&queue), None);
    }

    #[test]
    fn a_unit_that_waits_for_a_change_is_woken_by_one_and_a_busy_one_is_not() {
        let mut queue = queue(&[("waits", 2, 0), ("busy", 1, 0)]);
        queue.set(&unit("waits"), State::Change { until: None, why: "it waits".into() });
        queue.busy(&unit("busy"), ActionId(1));
        assert_eq!(first(&queue), None);
        queue.wake_all();
        assert_eq!(first(&queue), Some(unit("waits")));
        queue.remove(&unit("waits"));
        assert_eq!(first(&queue), None);
        assert_eq!(queue.done(&unit("busy"), ActionId(1)), Some(0));
    }

    #[test]
    fn back_off_doubles_and_is_woken_by_its_timer() {
        let mut queue = queue(&[("a", 0, 0)]);
        for seconds in [1, 2, 4] {
            queue.back_off(&unit("a"), Timestamp(0));
            let until = Timestamp(0).plus_seconds(seconds);
            assert_eq!((first(&queue), queue.next_timer()), (None, Some(until)));
            queue.wake_due(until);
            assert_eq!(first(&queue), Some(unit("a")));
        }
    }
}

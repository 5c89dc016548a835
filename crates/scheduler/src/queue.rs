//! Who waits, for what, and who is next.
//!
//! A unit is active, or waits for a moment, for the world to change, or for what it asked for to be done. Units are tried in the order of
//! priority, then age, then name; one that cannot be scheduled steps aside. So that a large unit is not overtaken for ever, one that
//! has waited for [`PATIENCE_SECONDS`], and would fit were nobody there but those above it, holds back those behind it for as long
//! again; then it gives way for as long, and so on.
//!
//! Units that are alike stand in a class once one of them was refused: the first speaks for all.

mod class_key;
mod classes;
mod fair_order;
mod gang_members;
mod landing;
mod next;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_engine::{Priority, Timestamp};
use reprieve_report::unit_ref::UnitRef;

use crate::action::ActionId;
use crate::wait_reason::WaitReason;
use class_key::{ClassKey, ShapeClasses};
pub(crate) use classes::ParkedFor;
use classes::{ClassId, EquivalenceClasses};
use fair_order::FairOrder;
use gang_members::PendingMembers;
pub(crate) use gang_members::PendingSummary;
use landing::LandingNodes;

/// How long a unit of several pods is overtaken before it holds back others, and how long it does so.
pub const STARVATION_SECONDS: i64 = 300;

/// Where a unit stands among others.
type QueuePosition = (Reverse<Priority>, Timestamp, UnitRef);

/// All units that wait.
#[derive(Default)]
pub(crate) struct PendingQueue {
    units: BTreeMap<UnitRef, PendingUnit>,
    active: BTreeSet<QueuePosition>,
    /// Those that wait for a change, each for itself, and where they are to land, if that is known; workloads do not.
    ungrouped: BTreeMap<UnitRef, Option<Arc<LandingNodes>>>,
    /// Whether quota is used or free since workloads were last looked at.
    quota_changed: bool,
    classes: EquivalenceClasses,
    /// Units of several pods that would fit, were nobody there but those above them.
    starving: BTreeSet<QueuePosition>,
    /// Times at which somebody is to be woken.
    timers: BTreeSet<(Timestamp, UnitRef)>,
    /// The pods of units of several that need a position.
    pending_members: PendingMembers,
    shape_classes: ShapeClasses,
    fair_order: FairOrder,
}

/// A unit that waits.
#[derive(Clone, Debug)]
pub(crate) struct PendingUnit {
    pub priority: Priority,
    /// Since when.
    pub since: Timestamp,
    /// How many pods it has.
    pub size: usize,
    pub state: WaitState,
    /// How often in a row what it asked for failed.
    pub failures: u32,
    /// Whether it would fit, were nobody there but those above it; `None` while that was not asked.
    pub could_fit: Option<bool>,
    /// Why it waits, as of the last decision about it; `None` before the first.
    pub reason: Option<WaitReason>,
}

/// What a unit waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// Its turn.
    Ready,
    /// The world to change, or a moment, whichever is first.
    ForChange { until: Option<Timestamp>, why: Arc<str> },
    /// Others to leave from where it is to land.
    ForVictims { landing: Arc<LandingNodes>, why: Arc<str> },
    /// The same as others that are like it.
    InClass(ClassId),
    /// A moment.
    Backoff { until: Timestamp },
    /// A moment, because its decision failed by a fault: nothing else wakes it.
    AfterError { until: Timestamp },
    /// The results of what it asked for.
    ForActions(BTreeSet<ActionId>),
}

impl PendingQueue {
    /// A unit that is there, or has changed. A new one is active.
    pub fn upsert(&mut self, unit: &UnitRef, pending: PendingSummary) {
        let PendingSummary { priority, since, count } = pending;
        if let Some(known) = self.units.get_mut(unit).filter(|known| (known.priority, known.since) == (priority, since))
        {
            known.size = count;
            if known.could_fit.take().is_some() {
                self.starving.remove(&known.position(unit));
            }
            if matches!(known.state, WaitState::InClass(_)) {
                self.set(unit, WaitState::Ready);
            }
            return;
        }
        let (state, failures, reason) = match self.remove(unit) {
            Some(PendingUnit { state: WaitState::InClass(_), failures, reason, .. }) => {
                (WaitState::Ready, failures, reason)
            }
            Some(PendingUnit { state, failures, reason, .. }) => (state, failures, reason),
            None => (WaitState::Ready, 0, None),
        };
        let waiting =
            PendingUnit { priority, since, size: count, state: WaitState::Ready, failures, could_fit: None, reason };
        self.units.insert(unit.clone(), waiting);
        self.set(unit, state);
    }

    pub fn remove(&mut self, unit: &UnitRef) -> Option<PendingUnit> {
        let waiting = self.units.remove(unit)?;
        let position = waiting.position(unit);
        self.leave(unit, &waiting.state, &position);
        self.starving.remove(&position);
        Some(waiting)
    }

    pub fn get(&self, unit: &UnitRef) -> Option<&PendingUnit> {
        self.units.get(unit)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&UnitRef, &PendingUnit)> {
        self.units.iter()
    }

    /// What whoever is in this state waits for.
    pub fn why<'a>(&'a self, state: &'a WaitState) -> &'a str {
        match state {
            WaitState::Ready => "its turn is near",
            WaitState::ForChange { why, .. } | WaitState::ForVictims { why, .. } => why,
            WaitState::InClass(class) => self.classes.waits(*class).map_or("its turn is near", |waits| &waits.why),
            WaitState::Backoff { .. } => "what it asked for failed; it will ask again",
            WaitState::AfterError { .. } => "the decision failed by a fault of the scheduler; its log says more",
            WaitState::ForActions(_) => "what it asked for is being done",
        }
    }

    /// Whether the unit waits for what it asked for to be done.
    pub fn is_busy(&self, unit: &UnitRef) -> bool {
        self.units.get(unit).is_some_and(|waiting| matches!(waiting.state, WaitState::ForActions(_)))
    }

    /// The unit waits for this to be done, besides what it waits for so already.
    pub fn add_action(&mut self, unit: &UnitRef, action: ActionId) {
        match self.units.get_mut(unit).map(|waiting| &mut waiting.state) {
            Some(WaitState::ForActions(actions)) => {
                actions.insert(action);
            }
            _ => self.set(unit, WaitState::ForActions(BTreeSet::from([action]))),
        }
    }

    /// This is done; for how much else the unit waits. `None` where it waits for nothing to be done.
    pub fn done(&mut self, unit: &UnitRef, action: ActionId) -> Option<usize> {
        let WaitState::ForActions(actions) = &mut self.units.get_mut(unit)?.state else { return None };
        actions.remove(&action);
        Some(actions.len())
    }

    /// What the unit waits for from now on.
    pub fn set(&mut self, unit: &UnitRef, state: WaitState) {
        let Some(waiting) = self.units.get_mut(unit) else { return };
        let position = waiting.position(unit);
        let before = std::mem::replace(&mut waiting.state, state.clone());
        if before != state {
            self.leave(unit, &before, &position);
        }
        if let Some(until) = state.until() {
            self.timers.insert((until, unit.clone()));
        }
        match state {
            WaitState::Ready => {
                self.active.insert(position);
            }
            WaitState::ForChange { .. } if matches!(unit, UnitRef::Workload(_)) => {}
            WaitState::ForChange { .. } => {
                self.ungrouped.insert(unit.clone(), None);
            }
            WaitState::ForVictims { landing, .. } => {
                self.ungrouped.insert(unit.clone(), Some(landing));
            }
            WaitState::InClass(class) => self.classes.join(class, position),
            WaitState::Backoff { .. } | WaitState::AfterError { .. } | WaitState::ForActions(_) => {}
        }
    }

    fn leave(&mut self, unit: &UnitRef, state: &WaitState, position: &QueuePosition) {
        if let Some(until) = state.until() {
            self.timers.remove(&(until, unit.clone()));
        }
        match state {
            WaitState::Ready => {
                self.active.remove(position);
            }
            WaitState::ForChange { .. } | WaitState::ForVictims { .. } => {
                self.ungrouped.remove(unit);
            }
            WaitState::InClass(class) => self.classes.leave(*class, position),
            WaitState::Backoff { .. } | WaitState::AfterError { .. } | WaitState::ForActions(_) => {}
        }
    }

    /// Whoever waits for a change waits with those that are like it, and for the same. Returns those who are to be last_reported.
    fn park_with_class(
        &mut self,
        unit: &UnitRef,
        class_key: ClassKey,
        waits: ParkedFor,
        now: Timestamp,
    ) -> Vec<UnitRef> {
        let class = self.classes.of(class_key);
        let unreported = self.classes.park(class, waits, now);
        self.set(unit, WaitState::InClass(class));
        unreported
    }

    /// The reason for which others that are like it wait for a change; then it does so with them.
    fn join_parked_class(&mut self, unit: &UnitRef, class_key: &ClassKey) -> Option<(WaitReason, Arc<str>)> {
        let class = self.classes.find_parked(class_key)?;
        self.set(unit, WaitState::InClass(class));
        self.classes.waits(class).map(|waits| (waits.reason, Arc::clone(&waits.why)))
    }

    /// What made units alike, or showed them where to land, may no longer do so: they are active, each for itself.
    fn dissolve_classes(&mut self) {
        self.wake_ungrouped(|landing| landing.is_some());
        for unit in self.classes.members() {
            self.set(&unit, WaitState::Ready);
        }
    }

    /// The world changed: whoever waits for that is active.
    pub fn requeue_all(&mut self) {
        self.wake_ungrouped(|_| true);
        self.classes.wake(|_, _| true);
        self.quota_changed = true;
    }

    /// Nodes have more or less room: whoever needs a node is active, except for classes that this is no help to, and those who do not mind
    /// while they wait for others to leave.
    fn requeue_on_room_change(&mut self, helps: impl Fn(&ClassKey) -> bool, touches: impl Fn(&LandingNodes) -> bool) {
        self.wake_ungrouped(|landing| landing.is_none_or(&touches));
        self.classes.wake(|class_key, waits| waits.held_back || helps(class_key));
    }

    /// Quota is used or free: workloads are looked at.
    pub fn wake_workloads(&mut self) {
        self.quota_changed = true;
    }

    /// Whether workloads are to be looked at; then they are.
    pub fn take_quota_changed(&mut self) -> bool {
        std::mem::take(&mut self.quota_changed)
    }

    fn wake_ungrouped(&mut self, wakes: impl Fn(Option<&LandingNodes>) -> bool) {
        let meant = self.ungrouped.iter().filter(|(_, landing)| wakes(landing.as_deref()));
        let units: Vec<UnitRef> = meant.map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            self.set(&unit, WaitState::Ready);
        }
    }

    /// One unit's own state changed.
    pub fn wake(&mut self, unit: &UnitRef) {
        let waits = |state: &WaitState| {
            matches!(state, WaitState::ForChange { .. } | WaitState::ForVictims { .. } | WaitState::InClass(_))
        };
        if self.units.get(unit).is_some_and(|waiting| waits(&waiting.state)) {
            self.set(unit, WaitState::Ready);
        }
    }

    /// The moments that have come.
    pub fn wake_due(&mut self, now: Timestamp) {
        while let Some((_, unit)) = self.timers.first().filter(|(until, _)| *until <= now).cloned() {
            self.set(&unit, WaitState::Ready);
        }
        self.classes.wake_due(now);
    }

    /// The next moment at which somebody is to be woken.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let first = self.timers.first().map(|(until, _)| *until);
        first.into_iter().chain(self.classes.next_timer()).min()
    }

    /// Counts a failure, and backs off: a second, then twice as long each time, up to a minute.
    pub fn back_off(&mut self, unit: &UnitRef, now: Timestamp) {
        if let Some(waiting) = self.units.get_mut(unit) {
            let seconds = 1 << waiting.failures.min(6);
            waiting.failures += 1;
            self.set(unit, WaitState::Backoff { until: now.plus_seconds(seconds.min(60)) });
        }
    }

    /// Why a unit waits; `None` before the first decision about it.
    pub fn reason(&self, waiting: &PendingUnit) -> Option<WaitReason> {
        match waiting.state {
            WaitState::InClass(class) => self.classes.waits(class).map(|waits| waits.reason),
            _ => waiting.reason,
        }
    }

    /// Why a unit waits from now on.
    pub fn set_reason(&mut self, unit: &UnitRef, reason: WaitReason) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.reason = Some(reason);
        }
    }

    /// What it asked for worked.
    pub fn succeeded(&mut self, unit: &UnitRef) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.failures = 0;
        }
    }

    /// All who are active each for itself, the next first.
    pub fn active(&self) -> impl Iterator<Item = &UnitRef> {
        self.active.iter().map(|(_, _, unit)| unit)
    }

    /// Whether a unit waits, and its turn is before another's.
    pub fn is_before(&self, unit: &UnitRef, other: &UnitRef) -> bool {
        let position = |unit: &UnitRef| Some(self.units.get(unit)?.position(unit));
        position(unit).is_some_and(|first| position(other).is_none_or(|second| first < second))
    }

    /// The unit whose turn it is: the first of those that are active each for itself, and of the classes that are.
    fn first(&self) -> Option<(UnitRef, Option<ClassId>)> {
        let ungrouped = self.active.first().map(|position| (position, None));
        let (position, class) =
            ungrouped.into_iter().chain(self.classes.ready_heads().next()).min_by_key(|(position, _)| *position)?;
        Some((position.2.clone(), class))
    }

    /// The unit that holds this one back, and until when.
    fn blocked_by_older(&self, unit: &UnitRef, now: Timestamp) -> Option<(&UnitRef, Timestamp)> {
        let waiting = self.units.get(unit)?;
        let position = waiting.position(unit);
        self.starving.range(..position).find_map(|(_, _, other)| {
            let older = self.units.get(other)?;
            let waits = match older.state {
                WaitState::ForChange { .. } | WaitState::ForVictims { .. } => true,
                WaitState::InClass(class) => self.classes.waits(class).is_some(),
                WaitState::Ready
                | WaitState::Backoff { .. }
                | WaitState::AfterError { .. }
                | WaitState::ForActions(_) => false,
            };
            Some((other, older.holds_until(now).filter(|_| waits)?))
        })
    }

    /// Whether it is time to ask if a unit of several pods could fit at all.
    pub fn should_check_starvation(&self, unit: &UnitRef, now: Timestamp) -> bool {
        self.units.get(unit).is_some_and(|waiting| {
            let waited = now.0.saturating_sub(waiting.since.0);
            waiting.size > 1 && waiting.could_fit.is_none() && waited >= STARVATION_SECONDS * 1_000_000
        })
    }

    /// When that time will come.
    pub fn starvation_check_at(&self, unit: &UnitRef, now: Timestamp) -> Option<Timestamp> {
        let waiting = self.units.get(unit).filter(|waiting| waiting.size > 1 && waiting.could_fit.is_none())?;
        Some(waiting.since.plus_seconds(STARVATION_SECONDS)).filter(|at| *at > now)
    }

    /// It would fit, were nobody there but those above it, or it would not.
    pub fn set_fits_above_lower(&mut self, unit: &UnitRef, could_fit: bool) {
        if let Some(waiting) = self.units.get_mut(unit) {
            waiting.could_fit = Some(could_fit);
            let position = waiting.position(unit);
            match could_fit && waiting.size > 1 {
                true => self.starving.insert(position),
                false => self.starving.remove(&position),
            };
        }
    }
}

impl WaitState {
    /// The moment at which it ends at the latest, if there is one of its own.
    fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Ready | Self::ForVictims { .. } | Self::InClass(_) | Self::ForActions(_) => None,
            Self::ForChange { until, .. } => *until,
            Self::Backoff { until } | Self::AfterError { until } => Some(*until),
        }
    }
}

impl PendingUnit {
    fn position(&self, unit: &UnitRef) -> QueuePosition {
        (Reverse(self.priority), self.since, unit.clone())
    }

    /// Until when it holds back others, if it does now.
    fn holds_until(&self, now: Timestamp) -> Option<Timestamp> {
        let patience = STARVATION_SECONDS * 1_000_000;
        let phase = now.0.saturating_sub(self.since.0) / patience;
        (phase % 2 == 1).then(|| self.since.plus_micros((phase + 1) * patience))
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::meta::NamespacedName;

    use super::*;

    fn unit(name: &str) -> UnitRef {
        UnitRef::Pod(NamespacedName::new("default", name))
    }

    fn queue(units: &[(&str, i32, i64)]) -> PendingQueue {
        let mut queue = PendingQueue::default();
        for &(name, priority, since) in units {
            queue.upsert(
                &unit(name),
                PendingSummary { priority: Priority(priority), since: Timestamp(since), count: 1 },
            );
        }
        queue
    }

    fn first(queue: &PendingQueue) -> Option<UnitRef> {
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
        queue.set(&unit("waits"), WaitState::ForChange { until: None, why: "it waits".into() });
        queue.add_action(&unit("busy"), ActionId(1));
        assert_eq!(first(&queue), None);
        queue.requeue_all();
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

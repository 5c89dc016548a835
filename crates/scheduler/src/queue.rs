//! The pending units: what each waits for, and which is next.
//!
//! Units are tried by priority, then age, then name. A unit that is refused waits until a change of the cluster could help it. Pending units
//! that differ only in name and age form an equivalence class: if the oldest member is refused, the others are not tried.
//!
//! So that smaller units do not overtake a gang without end, a gang that has waited for [`STARVATION_SECONDS`], and that would fit if only
//! units of a higher priority ran, blocks the units behind it for as long again; then it lets them pass for as long, and so on.

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

/// How long younger units may overtake a gang before it blocks them, and how long it then blocks them.
pub const STARVATION_SECONDS: i64 = 300;

/// The scheduling order of units: by priority, age and name.
type QueuePosition = (Reverse<Priority>, Timestamp, UnitRef);

/// All pending units.
#[derive(Default)]
pub(crate) struct PendingQueue {
    units: BTreeMap<UnitRef, PendingUnit>,
    /// The units in [`WaitState::Ready`].
    ready: BTreeSet<QueuePosition>,
    /// The units that wait for a change or for victims outside of any class, with their landing nodes if known. Workloads are not in it.
    ungrouped: BTreeMap<UnitRef, Option<Arc<LandingNodes>>>,
    /// Whether the use of quota changed since the last admission cycle.
    quota_changed: bool,
    classes: EquivalenceClasses,
    /// The gangs that would fit if they could evict all units of lower priority.
    starving: BTreeSet<QueuePosition>,
    /// When to retry units that wait for a time.
    timers: BTreeSet<(Timestamp, UnitRef)>,
    pending_members: PendingMembers,
    shape_classes: ShapeClasses,
    fair_order: FairOrder,
}

/// A pending unit.
#[derive(Clone, Debug)]
pub(crate) struct PendingUnit {
    pub priority: Priority,
    /// The creation time of its oldest pending pod.
    pub since: Timestamp,
    /// The number of its pending pods.
    pub size: usize,
    pub state: WaitState,
    /// The number of consecutive failures of its actions.
    pub failures: u32,
    /// Whether it would fit if only units of a higher priority ran; `None` until that is checked.
    pub fits_without_equal_or_lower: Option<bool>,
    /// The reason of the last decision about it; `None` before the first.
    pub reason: Option<WaitReason>,
}

/// What a unit waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// The unit can be tried now.
    Ready,
    /// A change of the cluster, at the latest until a time.
    ForChange { until: Option<Timestamp> },
    /// Victims on the nodes that the unit is nominated to.
    ForVictims(Arc<LandingNodes>),
    /// The same as the other members of an equivalence class.
    InClass(ClassId),
    /// The retry of a failed action.
    Backoff { until: Timestamp },
    /// The retry of a decision that panicked; no change ends this wait early.
    AfterError { until: Timestamp },
    /// The results of its actions.
    ForActions(BTreeSet<ActionId>),
}

impl PendingQueue {
    /// Adds a unit, which is ready, or updates one.
    pub fn upsert(&mut self, unit: &UnitRef, pending: PendingSummary) {
        let PendingSummary { priority, since, count } = pending;
        if let Some(known) = self.units.get_mut(unit).filter(|known| (known.priority, known.since) == (priority, since))
        {
            known.size = count;
            if known.fits_without_equal_or_lower.take().is_some() {
                self.starving.remove(&known.position(unit));
            }
            if matches!(known.state, WaitState::InClass(_)) {
                self.set(unit, WaitState::Ready);
            }
            return;
        }
        let before = self.remove(unit);
        let (failures, reason) = before.as_ref().map_or((0, None), |before| (before.failures, before.reason));
        let state = before.map(|before| before.state).filter(|state| !matches!(state, WaitState::InClass(_)));
        let pending = PendingUnit {
            priority,
            since,
            size: count,
            state: WaitState::Ready,
            failures,
            fits_without_equal_or_lower: None,
            reason,
        };
        self.units.insert(unit.clone(), pending);
        self.set(unit, state.unwrap_or(WaitState::Ready));
    }

    pub fn remove(&mut self, unit: &UnitRef) -> Option<PendingUnit> {
        let pending = self.units.remove(unit)?;
        let position = pending.position(unit);
        self.leave(unit, &pending.state, &position);
        self.starving.remove(&position);
        Some(pending)
    }

    pub fn get(&self, unit: &UnitRef) -> Option<&PendingUnit> {
        self.units.get(unit)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&UnitRef, &PendingUnit)> {
        self.units.iter()
    }

    /// Whether the unit waits for the results of actions.
    pub fn is_busy(&self, unit: &UnitRef) -> bool {
        self.units.get(unit).is_some_and(|pending| matches!(pending.state, WaitState::ForActions(_)))
    }

    /// Makes the unit wait for the result of an action, besides those that it already waits for.
    pub fn add_action(&mut self, unit: &UnitRef, action: ActionId) {
        match self.units.get_mut(unit).map(|pending| &mut pending.state) {
            Some(WaitState::ForActions(actions)) => {
                actions.insert(action);
            }
            _ => self.set(unit, WaitState::ForActions(BTreeSet::from([action]))),
        }
    }

    /// Notes the result of an action and returns how many others the unit waits for; `None` if it does not wait for actions.
    pub fn action_completed(&mut self, unit: &UnitRef, action: ActionId) -> Option<usize> {
        let WaitState::ForActions(actions) = &mut self.units.get_mut(unit)?.state else { return None };
        actions.remove(&action);
        Some(actions.len())
    }

    pub fn set(&mut self, unit: &UnitRef, state: WaitState) {
        let Some(pending) = self.units.get_mut(unit) else { return };
        let position = pending.position(unit);
        let before = std::mem::replace(&mut pending.state, state.clone());
        if before != state {
            self.leave(unit, &before, &position);
        }
        if let Some(until) = state.until() {
            self.timers.insert((until, unit.clone()));
        }
        match state {
            WaitState::Ready => {
                self.ready.insert(position);
            }
            WaitState::ForChange { .. } if matches!(unit, UnitRef::Workload(_)) => {}
            WaitState::ForChange { .. } => {
                self.ungrouped.insert(unit.clone(), None);
            }
            WaitState::ForVictims(landing) => {
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
                self.ready.remove(position);
            }
            WaitState::ForChange { .. } | WaitState::ForVictims(_) => {
                self.ungrouped.remove(unit);
            }
            WaitState::InClass(class) => self.classes.leave(*class, position),
            WaitState::Backoff { .. } | WaitState::AfterError { .. } | WaitState::ForActions(_) => {}
        }
    }

    /// Puts an equivalence class to wait, with the unit as a member. Returns the members whose condition is to be rewritten.
    fn park_with_class(
        &mut self,
        unit: &UnitRef,
        class_key: ClassKey,
        parked: ParkedFor,
        now: Timestamp,
    ) -> Vec<UnitRef> {
        let class = self.classes.get_or_create(class_key);
        let unreported = self.classes.park(class, parked, now);
        self.set(unit, WaitState::InClass(class));
        unreported
    }

    /// Adds the unit to its equivalence class if that class waits, and returns the reason.
    fn join_parked_class(&mut self, unit: &UnitRef, class_key: &ClassKey) -> Option<(WaitReason, Arc<str>)> {
        let class = self.classes.find_parked(class_key)?;
        self.set(unit, WaitState::InClass(class));
        self.classes.parked(class).map(|parked| (parked.reason, Arc::clone(&parked.why)))
    }

    /// Makes all members of classes ready, because the class keys and landing nodes are no longer valid.
    fn dissolve_classes(&mut self) {
        self.wake_ungrouped(|landing| landing.is_some());
        for unit in self.classes.members() {
            self.set(&unit, WaitState::Ready);
        }
    }

    /// Makes all units ready that wait for a change.
    pub fn requeue_all(&mut self) {
        self.wake_ungrouped(|_| true);
        self.classes.wake(|_, _| true);
        self.quota_changed = true;
    }

    /// Makes units ready after a change of room on nodes, except for classes and preemptors that the change cannot help.
    fn requeue_on_room_change(&mut self, helps: impl Fn(&ClassKey) -> bool, touches: impl Fn(&LandingNodes) -> bool) {
        self.wake_ungrouped(|landing| landing.is_none_or(&touches));
        self.classes.wake(|class_key, parked| parked.for_older_unit || helps(class_key));
    }

    /// Requests an admission cycle.
    pub fn wake_workloads(&mut self) {
        self.quota_changed = true;
    }

    /// Whether an admission cycle was requested since the last call.
    pub fn take_quota_changed(&mut self) -> bool {
        std::mem::take(&mut self.quota_changed)
    }

    fn wake_ungrouped(&mut self, wakes: impl Fn(Option<&LandingNodes>) -> bool) {
        let woken = self.ungrouped.iter().filter(|(_, landing)| wakes(landing.as_deref()));
        let units: Vec<UnitRef> = woken.map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            self.set(&unit, WaitState::Ready);
        }
    }

    /// Makes a unit ready that waits for a change.
    pub fn wake(&mut self, unit: &UnitRef) {
        if let Some(WaitState::ForChange { .. } | WaitState::ForVictims(_) | WaitState::InClass(_)) =
            self.units.get(unit).map(|pending| &pending.state)
        {
            self.set(unit, WaitState::Ready);
        }
    }

    /// Makes the units and classes ready whose time has come.
    pub fn wake_due(&mut self, now: Timestamp) {
        while let Some((_, unit)) = self.timers.first().filter(|(until, _)| *until <= now).cloned() {
            self.set(&unit, WaitState::Ready);
        }
        self.classes.wake_due(now);
    }

    /// The time of the next call of [`Self::wake_due`].
    pub fn next_timer(&self) -> Option<Timestamp> {
        let first = self.timers.first().map(|(until, _)| *until);
        first.into_iter().chain(self.classes.next_timer()).min()
    }

    /// Counts a failure of an action and backs off: 1 s, then twice as long each time, up to 60 s.
    pub fn back_off(&mut self, unit: &UnitRef, now: Timestamp) {
        if let Some(pending) = self.units.get_mut(unit) {
            let seconds = 1 << pending.failures.min(6);
            pending.failures += 1;
            self.set(unit, WaitState::Backoff { until: now.plus_seconds(seconds.min(60)) });
        }
    }

    /// Why a unit waits; `None` before the first decision about it.
    pub fn reason(&self, pending: &PendingUnit) -> Option<WaitReason> {
        match pending.state {
            WaitState::InClass(class) => self.classes.parked(class).map(|parked| parked.reason),
            _ => pending.reason,
        }
    }

    pub fn set_reason(&mut self, unit: &UnitRef, reason: WaitReason) {
        if let Some(pending) = self.units.get_mut(unit) {
            pending.reason = Some(reason);
        }
    }

    /// Ends the back-off of a unit whose actions succeeded.
    pub fn succeeded(&mut self, unit: &UnitRef) {
        if let Some(pending) = self.units.get_mut(unit) {
            pending.failures = 0;
        }
    }

    /// The ready units outside of any class, in order.
    pub fn ready(&self) -> impl Iterator<Item = &UnitRef> {
        self.ready.iter().map(|(_, _, unit)| unit)
    }

    /// Whether a unit is pending and ordered before another.
    pub fn is_before(&self, unit: &UnitRef, other: &UnitRef) -> bool {
        let position = |unit: &UnitRef| Some(self.units.get(unit)?.position(unit));
        position(unit).is_some_and(|first| position(other).is_none_or(|second| first < second))
    }

    /// The first ready unit, and its class if it is in one.
    fn first(&self) -> Option<(UnitRef, Option<ClassId>)> {
        let ungrouped = self.ready.first().map(|position| (position, None));
        let (position, class) =
            ungrouped.into_iter().chain(self.classes.ready_heads().next()).min_by_key(|(position, _)| *position)?;
        Some((position.2.clone(), class))
    }

    /// The starving gang that this unit must wait for, and until when.
    fn blocked_by_older(&self, unit: &UnitRef, now: Timestamp) -> Option<(&UnitRef, Timestamp)> {
        let pending = self.units.get(unit)?;
        let position = pending.position(unit);
        self.starving.range(..position).find_map(|(_, _, other)| {
            let older = self.units.get(other)?;
            let is_parked = match older.state {
                WaitState::ForChange { .. } | WaitState::ForVictims(_) => true,
                WaitState::InClass(class) => self.classes.parked(class).is_some(),
                WaitState::Ready
                | WaitState::Backoff { .. }
                | WaitState::AfterError { .. }
                | WaitState::ForActions(_) => false,
            };
            Some((other, older.blocks_until(now).filter(|_| is_parked)?))
        })
    }

    /// Whether it is time to check if a gang would fit if only units of a higher priority ran.
    pub fn should_check_starvation(&self, unit: &UnitRef, now: Timestamp) -> bool {
        self.units.get(unit).is_some_and(|pending| {
            let waited = now.0.saturating_sub(pending.since.0);
            pending.size > 1
                && pending.fits_without_equal_or_lower.is_none()
                && waited >= STARVATION_SECONDS * 1_000_000
        })
    }

    /// When [`Self::should_check_starvation`] becomes true.
    pub fn starvation_check_at(&self, unit: &UnitRef, now: Timestamp) -> Option<Timestamp> {
        let pending =
            self.units.get(unit).filter(|pending| pending.size > 1 && pending.fits_without_equal_or_lower.is_none())?;
        Some(pending.since.plus_seconds(STARVATION_SECONDS)).filter(|at| *at > now)
    }

    /// Stores the result of that check.
    pub fn set_fits_without_equal_or_lower(&mut self, unit: &UnitRef, fits: bool) {
        if let Some(pending) = self.units.get_mut(unit) {
            pending.fits_without_equal_or_lower = Some(fits);
            let position = pending.position(unit);
            match fits && pending.size > 1 {
                true => self.starving.insert(position),
                false => self.starving.remove(&position),
            };
        }
    }
}

impl WaitState {
    /// The time at which the wait ends at the latest.
    fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Ready | Self::ForVictims(_) | Self::InClass(_) | Self::ForActions(_) => None,
            Self::ForChange { until, .. } => *until,
            Self::Backoff { until } | Self::AfterError { until } => Some(*until),
        }
    }
}

impl PendingUnit {
    fn position(&self, unit: &UnitRef) -> QueuePosition {
        (Reverse(self.priority), self.since, unit.clone())
    }

    /// Until when a starving gang blocks the units behind it, if it does now.
    fn blocks_until(&self, now: Timestamp) -> Option<Timestamp> {
        let period = STARVATION_SECONDS * 1_000_000;
        let periods = now.0.saturating_sub(self.since.0) / period;
        (periods % 2 == 1).then(|| self.since.plus_micros((periods + 1) * period))
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
    fn a_change_makes_parked_units_ready_but_not_units_that_wait_for_actions() {
        let mut queue = queue(&[("waits", 2, 0), ("busy", 1, 0)]);
        queue.set(&unit("waits"), WaitState::ForChange { until: None });
        queue.add_action(&unit("busy"), ActionId(1));
        assert_eq!(first(&queue), None);
        queue.requeue_all();
        assert_eq!(first(&queue), Some(unit("waits")));
        queue.remove(&unit("waits"));
        assert_eq!(first(&queue), None);
        assert_eq!(queue.action_completed(&unit("busy"), ActionId(1)), Some(0));
    }

    #[test]
    fn back_off_doubles_and_ends_with_its_timer() {
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

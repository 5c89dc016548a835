//! Which unit is next, and what units wait for, by what the view says of them.

use std::sync::Arc;

use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_report::unit_ref::UnitRef;

use super::class_key::{ClassKey, ShapeClasses};
use super::gang_members::PendingSummary;
use super::landing::LandingNodes;
use super::{ParkedFor, PendingQueue, WaitState};
use crate::view::{ClusterView, RoomChange, needs_place};
use crate::wait_reason::WaitReason;

/// A unit that waits, the reason, and the reason in words.
pub(crate) type Parked = (UnitRef, WaitReason, Arc<str>);

impl PendingQueue {
    /// The next unit whose turn it is, and those before it that wait: they are held back, or are like others that wait. A preemptor whose
    /// victims are marked is like no other.
    pub fn next(
        &mut self,
        view: &ClusterView,
        has_victims: impl Fn(&UnitRef) -> bool,
        now: Timestamp,
    ) -> (Option<UnitRef>, Vec<Parked>) {
        self.drop_stale_classes(view);
        let mut parked = Vec::new();
        loop {
            let next = match view.policy() {
                Policy::YuniKorn => self.next_by_queue(view),
                Policy::Kubernetes(_) | Policy::Koordinator(_) | Policy::Kueue(_) => self.first(),
            };
            let Some((unit, class)) = next else { return (None, parked) };
            let class_key = if has_victims(&unit) { None } else { self.class_key(&unit, view, now) };
            let speaks = class.is_some_and(|class| class_key.as_ref() == Some(self.classes.class_key(class)));
            if let Some((older, until)) = self.blocked_by_older(&unit, now) {
                let why: Arc<str> = format!("held back for {older}, which has waited longer").into();
                self.hold_back(&unit, class_key, until, &why, now);
                parked.push((unit, WaitReason::WaitingForOlderUnit, why));
                continue;
            }
            let others = class_key.filter(|_| !speaks);
            if let Some((reason, why)) = others.and_then(|class_key| self.join_parked_class(&unit, &class_key)) {
                parked.push((unit, reason, why));
                continue;
            }
            self.set(&unit, WaitState::Ready);
            return (Some(unit), parked);
        }
    }

    fn hold_back(
        &mut self,
        unit: &UnitRef,
        class_key: Option<ClassKey>,
        until: Timestamp,
        why: &Arc<str>,
        now: Timestamp,
    ) {
        let why = Arc::clone(why);
        match class_key {
            Some(class_key) if self.join_parked_class(unit, &class_key).is_some() => {}
            Some(class_key) => {
                let waits =
                    ParkedFor { until: Some(until), reason: WaitReason::WaitingForOlderUnit, why, held_back: true };
                self.park_with_class(unit, class_key, waits, now);
            }
            None => self.set(unit, WaitState::ForChange { until: Some(until), why }),
        }
    }

    /// What makes units alike is in the tables: with new ones, they part.
    fn drop_stale_classes(&mut self, view: &ClusterView) {
        if !self.shape_classes.are_of(&view.live) {
            self.shape_classes = ShapeClasses::new(&view.live);
            self.dissolve_classes();
        } else if view.loaded().snapshot.has_anti_affinity() {
            self.dissolve_classes();
        }
    }

    /// What tells a unit from others, where nothing but resources, nodes, priorities and queues matters.
    fn class_key(&mut self, unit: &UnitRef, view: &ClusterView, now: Timestamp) -> Option<ClassKey> {
        let (preemptor, pods) = view.preemptor(unit)?;
        ClassKey::of(&mut self.shape_classes, &view.loaded().snapshot, view.policy(), (preemptor, &pods), now)
    }

    /// The unit waits, unless it waits for what it asked for already.
    pub fn wait(&mut self, unit: &UnitRef, state: WaitState) {
        if !self.is_busy(unit) {
            self.set(unit, state);
        }
    }

    /// The unit waits with all that are like it, unless it waits for what it asked for already. Returns those who are to be told.
    pub fn wait_with_class(
        &mut self,
        unit: &UnitRef,
        (waits, has_victims): (ParkedFor, bool),
        view: &ClusterView,
        now: Timestamp,
    ) -> Vec<UnitRef> {
        let is_alone = self.is_busy(unit) || has_victims;
        let class_key = if is_alone { None } else { self.class_key(unit, view, now) };
        match class_key {
            Some(class_key) => self.park_with_class(unit, class_key, waits, now),
            None => {
                self.wait(unit, WaitState::ForChange { until: waits.until, why: waits.why });
                Vec::new()
            }
        }
    }

    /// The unit waits for others to leave from where it is to land, unless it waits for what it asked for already.
    pub fn wait_for_victims(&mut self, unit: &UnitRef, why: &str, view: &ClusterView) {
        let landing = match view.policy() {
            Policy::Kubernetes(_) if self.shape_classes.are_of(&view.live) => {
                view.preemptor(unit).and_then(|(preemptor, _)| LandingNodes::of(&view.loaded().snapshot, preemptor))
            }
            _ => None,
        };
        let why = why.into();
        let state = match landing {
            Some(landing) => WaitState::ForVictims { landing: Arc::new(landing), why },
            None => WaitState::ForChange { until: None, why },
        };
        self.wait(unit, state);
    }

    /// Wakes the units that a change of room could help.
    pub fn room_changed(&mut self, room: RoomChange, view: &ClusterView) {
        let is_known = self.shape_classes.are_of(&view.live) && !view.live.is_stale();
        let (snapshot, policy) = (&view.loaded().snapshot, view.policy());
        let shape_classes = std::mem::take(&mut self.shape_classes);
        self.requeue_on_room_change(
            |class_key| !is_known || class_key.is_helped(&shape_classes, snapshot, policy, room),
            |landing| !is_known || landing.is_affected_by(snapshot, room),
        );
        self.shape_classes = shape_classes;
    }

    /// A pod changed, and with it the unit that it is of. Returns the units that changed, and whether each still waits.
    pub fn pod_changed(
        &mut self,
        before: Option<&Pod>,
        after: Option<&Pod>,
        view: &ClusterView,
    ) -> Vec<(UnitRef, bool)> {
        let (left, joined) = (view.unit_of(before), view.unit_of(after));
        let needs = after.filter(|pod| needs_place(pod));
        if let (Some(unit), Some(pod)) = (&left, before.filter(|pod| needs_place(pod))) {
            self.pending_members.remove(unit, pod);
        }
        if let (Some(unit), Some(pod)) = (&joined, needs) {
            self.pending_members.add(unit, pod);
        }
        let left = left.filter(|left| joined.as_ref() != Some(left)).map(|unit| (self.pending_members.summary(&unit), unit));
        let joined = joined.map(|unit| match unit {
            UnitRef::Pod(_) => (needs.map(PendingSummary::one), unit),
            _ => (self.pending_members.summary(&unit), unit),
        });
        let changed = left.into_iter().chain(joined);
        changed.map(|(pending, unit)| (unit.clone(), self.unit_changed(&unit, pending))).collect()
    }

    /// A unit has these pods that need a place, or none. Whether it waits.
    fn unit_changed(&mut self, unit: &UnitRef, pending: Option<PendingSummary>) -> bool {
        match pending {
            Some(pending) => {
                self.upsert(unit, pending);
                self.wake(unit);
            }
            None => {
                self.remove(unit);
            }
        }
        pending.is_some()
    }
}

//! Which unit is next, and what units wait for, by what the view says of them.

use std::sync::Arc;

use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_report::unit_name::UnitName;

use super::footing::Footing;
use super::likeness::{Likeness, Looks};
use super::roll::Needy;
use super::{PendingQueue, State, Waits};
use crate::view::{ClusterView, Room, needs_place};
use crate::wait_reason::WaitReason;

/// A unit that waits, the reason, and the reason in words.
pub(crate) type Parked = (UnitName, WaitReason, Arc<str>);

impl PendingQueue {
    /// The next unit whose turn it is, and those before it that wait: they are held back, or are like others that wait. A preemptor whose
    /// victims are marked is like no other.
    pub fn next(
        &mut self,
        view: &ClusterView,
        has_victims: impl Fn(&UnitName) -> bool,
        now: Timestamp,
    ) -> (Option<UnitName>, Vec<Parked>) {
        self.look_again(view);
        let mut parked = Vec::new();
        loop {
            let next = match view.policy() {
                Policy::YuniKorn => self.next_by_queue(view),
                Policy::Kubernetes(_) | Policy::Koordinator(_) | Policy::Kueue(_) => self.first(),
            };
            let Some((unit, crowd)) = next else { return (None, parked) };
            let likeness = if has_victims(&unit) { None } else { self.likeness(&unit, view, now) };
            let speaks = crowd.is_some_and(|crowd| likeness.as_ref() == Some(self.crowds.likeness(crowd)));
            if let Some((holder, until)) = self.held_back(&unit, now) {
                let why: Arc<str> = format!("held back for {holder}, which has waited longer").into();
                self.hold_back(&unit, likeness, until, &why, now);
                parked.push((unit, WaitReason::HeldBack, why));
                continue;
            }
            let others = likeness.filter(|_| !speaks);
            if let Some((reason, why)) = others.and_then(|likeness| self.waits_already(&unit, &likeness)) {
                parked.push((unit, reason, why));
                continue;
            }
            self.set(&unit, State::Active);
            return (Some(unit), parked);
        }
    }

    fn hold_back(
        &mut self,
        unit: &UnitName,
        likeness: Option<Likeness>,
        until: Timestamp,
        why: &Arc<str>,
        now: Timestamp,
    ) {
        let why = Arc::clone(why);
        match likeness {
            Some(likeness) if self.waits_already(unit, &likeness).is_some() => {}
            Some(likeness) => {
                let waits = Waits { until: Some(until), reason: WaitReason::HeldBack, why, held_back: true };
                self.wait_with(unit, likeness, waits, now);
            }
            None => self.set(unit, State::Change { until: Some(until), why }),
        }
    }

    /// What makes units alike is in the tables: with new ones, they part.
    fn look_again(&mut self, view: &ClusterView) {
        if !self.looks.are_of(&view.live) {
            self.looks = Looks::new(&view.live);
            self.part();
        } else if view.loaded().snapshot.has_aversions() {
            self.part();
        }
    }

    /// What tells a unit from others, where nothing but resources, nodes, priorities and queues matters.
    fn likeness(&mut self, unit: &UnitName, view: &ClusterView, now: Timestamp) -> Option<Likeness> {
        let (preemptor, pods) = view.preemptor(unit)?;
        Likeness::of(&mut self.looks, &view.loaded().snapshot, view.policy(), (preemptor, &pods), now)
    }

    /// The unit waits, unless it waits for what it asked for already.
    pub fn wait(&mut self, unit: &UnitName, state: State) {
        if !self.is_busy(unit) {
            self.set(unit, state);
        }
    }

    /// The unit waits with all that are like it, unless it waits for what it asked for already. Returns those who are to be told.
    pub fn wait_alike(
        &mut self,
        unit: &UnitName,
        (waits, has_victims): (Waits, bool),
        view: &ClusterView,
        now: Timestamp,
    ) -> Vec<UnitName> {
        let is_alone = self.is_busy(unit) || has_victims;
        let likeness = if is_alone { None } else { self.likeness(unit, view, now) };
        match likeness {
            Some(likeness) => self.wait_with(unit, likeness, waits, now),
            None => {
                self.wait(unit, State::Change { until: waits.until, why: waits.why });
                Vec::new()
            }
        }
    }

    /// The unit waits for others to leave from where it is to land, unless it waits for what it asked for already.
    pub fn wait_to_land(&mut self, unit: &UnitName, why: &str, view: &ClusterView) {
        let footing = match view.policy() {
            Policy::Kubernetes(_) if self.looks.are_of(&view.live) => {
                view.preemptor(unit).and_then(|(preemptor, _)| Footing::of(&view.loaded().snapshot, preemptor))
            }
            _ => None,
        };
        let why = why.into();
        let state = match footing {
            Some(footing) => State::Landing { footing: Arc::new(footing), why },
            None => State::Change { until: None, why },
        };
        self.wait(unit, state);
    }

    /// Wakes the units that a change of room could help.
    pub fn room_changed(&mut self, room: Room, view: &ClusterView) {
        let is_known = self.looks.are_of(&view.live) && !view.live.is_stale();
        let (snapshot, policy) = (&view.loaded().snapshot, view.policy());
        let looks = std::mem::take(&mut self.looks);
        self.wake_pods(
            |likeness| !is_known || likeness.is_helped(&looks, snapshot, policy, room),
            |footing| !is_known || footing.is_touched(snapshot, room),
        );
        self.looks = looks;
    }

    /// A pod changed, and with it the unit that it is of. Returns the units that changed, and whether each still waits.
    pub fn pod_changed(
        &mut self,
        before: Option<&Pod>,
        after: Option<&Pod>,
        view: &ClusterView,
    ) -> Vec<(UnitName, bool)> {
        let (left, joined) = (view.unit_of(before), view.unit_of(after));
        let needs = after.filter(|pod| needs_place(pod));
        if let (Some(unit), Some(pod)) = (&left, before.filter(|pod| needs_place(pod))) {
            self.roll.leave(unit, pod);
        }
        if let (Some(unit), Some(pod)) = (&joined, needs) {
            self.roll.enter(unit, pod);
        }
        let left = left.filter(|left| joined.as_ref() != Some(left)).map(|unit| (self.roll.needy(&unit), unit));
        let joined = joined.map(|unit| match unit {
            UnitName::Pod(_) => (needs.map(Needy::one), unit),
            _ => (self.roll.needy(&unit), unit),
        });
        let changed = left.into_iter().chain(joined);
        changed.map(|(needy, unit)| (unit.clone(), self.unit_changed(&unit, needy))).collect()
    }

    /// A unit has these pods that need a place, or none. Whether it waits.
    fn unit_changed(&mut self, unit: &UnitName, needy: Option<Needy>) -> bool {
        match needy {
            Some(needy) => {
                self.put(unit, needy);
                self.wake(unit);
            }
            None => {
                self.remove(unit);
            }
        }
        needy.is_some()
    }
}

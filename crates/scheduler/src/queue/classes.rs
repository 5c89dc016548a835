//! Units that are alike, and wait for the same: what one of them is told is true of all. When the world changes it is the turn of the
//! first; if that is refused again, all wait on, and nobody has to go through them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_engine::Timestamp;
use reprieve_report::unit_ref::UnitRef;

use super::class_key::ClassKey;
use super::{QueuePosition, STARVATION_SECONDS};
use crate::wait_reason::WaitReason;

/// The number of a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(u64);

/// What a crowd waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParkedFor {
    /// The moment at which it ends at the latest.
    pub until: Option<Timestamp>,
    pub reason: WaitReason,
    pub why: Arc<str>,
    /// Whether it waits only for another unit to give way.
    pub held_back: bool,
}

#[derive(Default)]
pub(super) struct EquivalenceClasses {
    crowds: BTreeMap<ClassId, EquivalenceClass>,
    by_likeness: BTreeMap<ClassKey, ClassId>,
    /// The first members of crowds whose turn it is.
    heads: BTreeSet<(QueuePosition, ClassId)>,
    timers: BTreeSet<(Timestamp, ClassId)>,
    next: u64,
}

struct EquivalenceClass {
    likeness: ClassKey,
    members: BTreeSet<QueuePosition>,
    /// `None` where it is its turn.
    waits: Option<ParkedFor>,
    told: Option<LastReported>,
}

/// What the members of a crowd were told.
#[derive(Clone, Copy)]
struct LastReported {
    reason: WaitReason,
    /// When they may be told of another reason, and how long they wait for that: twice as long each time.
    again: Timestamp,
    pause: i64,
}

impl EquivalenceClasses {
    /// The crowd of those that are so.
    pub fn of(&mut self, likeness: ClassKey) -> ClassId {
        if let Some(&crowd) = self.by_likeness.get(&likeness) {
            return crowd;
        }
        let id = ClassId(self.next);
        self.next += 1;
        self.by_likeness.insert(likeness.clone(), id);
        self.crowds.insert(id, EquivalenceClass { likeness, members: BTreeSet::new(), waits: None, told: None });
        id
    }

    /// The crowd of those that are so, if it waits.
    pub fn find_parked(&self, likeness: &ClassKey) -> Option<ClassId> {
        let crowd = *self.by_likeness.get(likeness)?;
        self.crowds[&crowd].waits.is_some().then_some(crowd)
    }

    pub fn likeness(&self, crowd: ClassId) -> &ClassKey {
        &self.crowds[&crowd].likeness
    }

    /// What a crowd waits for; `None` where it is its turn.
    pub fn waits(&self, crowd: ClassId) -> Option<&ParkedFor> {
        self.crowds.get(&crowd)?.waits.as_ref()
    }

    pub fn join(&mut self, id: ClassId, place: QueuePosition) {
        let Some(crowd) = self.crowds.get_mut(&id) else { return };
        let first = crowd.members.first().cloned();
        crowd.members.insert(place);
        self.head_changed(id, first);
    }

    /// A crowd that nobody is in any more is no more.
    pub fn leave(&mut self, id: ClassId, place: &QueuePosition) {
        let Some(crowd) = self.crowds.get_mut(&id) else { return };
        let first = crowd.members.first().cloned();
        crowd.members.remove(place);
        self.head_changed(id, first);
        if self.crowds[&id].members.is_empty()
            && let Some(crowd) = self.crowds.remove(&id)
        {
            self.by_likeness.remove(&crowd.likeness);
            if let Some(until) = crowd.waits.and_then(|waits| waits.until) {
                self.timers.remove(&(until, id));
            }
        }
    }

    fn head_changed(&mut self, id: ClassId, before: Option<QueuePosition>) {
        let crowd = &self.crowds[&id];
        let now = crowd.members.first().filter(|_| crowd.waits.is_none());
        if let Some(before) = before {
            self.heads.remove(&(before, id));
        }
        if let Some(now) = now.cloned() {
            self.heads.insert((now, id));
        }
    }

    /// Parks a crowd. Returns the members whose condition must be rewritten: all of them when the reason changes, but not before the last
    /// pause is over, which doubles each time. A wait for another unit is short and is not reported to all members.
    pub fn park(&mut self, id: ClassId, waits: ParkedFor, now: Timestamp) -> Vec<UnitRef> {
        let (reason, held_back) = (waits.reason, waits.held_back);
        self.set(id, Some(waits));
        let Some(crowd) = self.crowds.get_mut(&id).filter(|_| !held_back) else { return Vec::new() };
        let pause = match crowd.told {
            None => STARVATION_SECONDS,
            Some(told) if told.reason != reason && told.again <= now => 2 * told.pause,
            Some(_) => return Vec::new(),
        };
        crowd.told = Some(LastReported { reason, again: now.plus_seconds(pause), pause });
        crowd.members.iter().map(|(_, _, unit)| unit.clone()).collect()
    }

    fn set(&mut self, id: ClassId, waits: Option<ParkedFor>) {
        let Some(crowd) = self.crowds.get_mut(&id) else { return };
        let before = std::mem::replace(&mut crowd.waits, waits);
        let until = crowd.waits.as_ref().and_then(|waits| waits.until);
        let head = crowd.members.first().cloned();
        if let Some(until) = before.and_then(|waits| waits.until) {
            self.timers.remove(&(until, id));
        }
        if let Some(until) = until {
            self.timers.insert((until, id));
        }
        self.head_changed(id, head);
    }

    /// Whoever of them this is meant for has its turn.
    pub fn wake(&mut self, is_meant: impl Fn(&ClassKey, &ParkedFor) -> bool) {
        let wakes =
            |crowd: &EquivalenceClass| crowd.waits.as_ref().is_some_and(|waits| is_meant(&crowd.likeness, waits));
        let woken: Vec<ClassId> = self.crowds.iter().filter(|(_, crowd)| wakes(crowd)).map(|(id, _)| *id).collect();
        for id in woken {
            self.set(id, None);
        }
    }

    pub fn wake_due(&mut self, now: Timestamp) {
        while let Some(&(_, id)) = self.timers.first().filter(|(until, _)| *until <= now) {
            self.set(id, None);
        }
    }

    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(until, _)| *until)
    }

    /// The first members of crowds whose turn it is, in order.
    pub fn ready_heads(&self) -> impl Iterator<Item = (&QueuePosition, Option<ClassId>)> {
        self.heads.iter().map(|(place, id)| (place, Some(*id)))
    }

    /// The members of a crowd, in order, if it is its turn.
    pub fn ready_members(&self, crowd: ClassId) -> impl Iterator<Item = &QueuePosition> {
        let crowd = self.crowds.get(&crowd).filter(|crowd| crowd.waits.is_none());
        crowd.into_iter().flat_map(|crowd| &crowd.members)
    }

    /// All who are in a crowd.
    pub fn members(&self) -> Vec<UnitRef> {
        self.crowds.values().flat_map(|crowd| &crowd.members).map(|(_, _, unit)| unit.clone()).collect()
    }
}

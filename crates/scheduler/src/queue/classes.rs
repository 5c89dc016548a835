//! Units that are alike, and wait for the same: what one of them is last_reported is true of all. When the world changes it is the turn of the
//! first; if that is refused again, all wait on, and nobody has to go through them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_engine::Timestamp;
use reprieve_report::unit_ref::UnitRef;

use super::class_key::ClassKey;
use super::{QueuePosition, STARVATION_SECONDS};
use crate::wait_reason::WaitReason;

/// The number of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(u64);

/// What a class waits for.
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
    classes: BTreeMap<ClassId, EquivalenceClass>,
    by_key: BTreeMap<ClassKey, ClassId>,
    /// The first members of classes whose turn it is.
    heads: BTreeSet<(QueuePosition, ClassId)>,
    timers: BTreeSet<(Timestamp, ClassId)>,
    next: u64,
}

struct EquivalenceClass {
    class_key: ClassKey,
    members: BTreeSet<QueuePosition>,
    /// `None` where it is its turn.
    waits: Option<ParkedFor>,
    last_reported: Option<LastReported>,
}

/// What the members of a class were last_reported.
#[derive(Clone, Copy)]
struct LastReported {
    reason: WaitReason,
    /// When they may be last_reported of another reason, and how long they wait for that: twice as long each time.
    again: Timestamp,
    pause: i64,
}

impl EquivalenceClasses {
    /// The class of those that are so.
    pub fn of(&mut self, class_key: ClassKey) -> ClassId {
        if let Some(&class) = self.by_key.get(&class_key) {
            return class;
        }
        let id = ClassId(self.next);
        self.next += 1;
        self.by_key.insert(class_key.clone(), id);
        self.classes.insert(id, EquivalenceClass { class_key, members: BTreeSet::new(), waits: None, last_reported: None });
        id
    }

    /// The class of those that are so, if it waits.
    pub fn find_parked(&self, class_key: &ClassKey) -> Option<ClassId> {
        let class = *self.by_key.get(class_key)?;
        self.classes[&class].waits.is_some().then_some(class)
    }

    pub fn class_key(&self, class: ClassId) -> &ClassKey {
        &self.classes[&class].class_key
    }

    /// What a class waits for; `None` where it is its turn.
    pub fn waits(&self, class: ClassId) -> Option<&ParkedFor> {
        self.classes.get(&class)?.waits.as_ref()
    }

    pub fn join(&mut self, id: ClassId, position: QueuePosition) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let first = class.members.first().cloned();
        class.members.insert(position);
        self.head_changed(id, first);
    }

    /// A class that nobody is in any more is no more.
    pub fn leave(&mut self, id: ClassId, position: &QueuePosition) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let first = class.members.first().cloned();
        class.members.remove(position);
        self.head_changed(id, first);
        if self.classes[&id].members.is_empty()
            && let Some(class) = self.classes.remove(&id)
        {
            self.by_key.remove(&class.class_key);
            if let Some(until) = class.waits.and_then(|waits| waits.until) {
                self.timers.remove(&(until, id));
            }
        }
    }

    fn head_changed(&mut self, id: ClassId, before: Option<QueuePosition>) {
        let class = &self.classes[&id];
        let now = class.members.first().filter(|_| class.waits.is_none());
        if let Some(before) = before {
            self.heads.remove(&(before, id));
        }
        if let Some(now) = now.cloned() {
            self.heads.insert((now, id));
        }
    }

    /// Parks a class. Returns the members whose condition must be rewritten: all of them when the reason changes, but not before the last
    /// pause is over, which doubles each time. A wait for another unit is short and is not reported to all members.
    pub fn park(&mut self, id: ClassId, waits: ParkedFor, now: Timestamp) -> Vec<UnitRef> {
        let (reason, held_back) = (waits.reason, waits.held_back);
        self.set(id, Some(waits));
        let Some(class) = self.classes.get_mut(&id).filter(|_| !held_back) else { return Vec::new() };
        let pause = match class.last_reported {
            None => STARVATION_SECONDS,
            Some(last_reported) if last_reported.reason != reason && last_reported.again <= now => 2 * last_reported.pause,
            Some(_) => return Vec::new(),
        };
        class.last_reported = Some(LastReported { reason, again: now.plus_seconds(pause), pause });
        class.members.iter().map(|(_, _, unit)| unit.clone()).collect()
    }

    fn set(&mut self, id: ClassId, waits: Option<ParkedFor>) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let before = std::mem::replace(&mut class.waits, waits);
        let until = class.waits.as_ref().and_then(|waits| waits.until);
        let head = class.members.first().cloned();
        if let Some(until) = before.and_then(|waits| waits.until) {
            self.timers.remove(&(until, id));
        }
        if let Some(until) = until {
            self.timers.insert((until, id));
        }
        self.head_changed(id, head);
    }

    /// Whoever of them this is meant for has its turn.
    pub fn wake(&mut self, wakes: impl Fn(&ClassKey, &ParkedFor) -> bool) {
        let wakes =
            |class: &EquivalenceClass| class.waits.as_ref().is_some_and(|waits| wakes(&class.class_key, waits));
        let woken: Vec<ClassId> = self.classes.iter().filter(|(_, class)| wakes(class)).map(|(id, _)| *id).collect();
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

    /// The first members of classes whose turn it is, in order.
    pub fn ready_heads(&self) -> impl Iterator<Item = (&QueuePosition, Option<ClassId>)> {
        self.heads.iter().map(|(position, id)| (position, Some(*id)))
    }

    /// The members of a class, in order, if it is its turn.
    pub fn ready_members(&self, class: ClassId) -> impl Iterator<Item = &QueuePosition> {
        let class = self.classes.get(&class).filter(|class| class.waits.is_none());
        class.into_iter().flat_map(|class| &class.members)
    }

    /// All who are in a class.
    pub fn members(&self) -> Vec<UnitRef> {
        self.classes.values().flat_map(|class| &class.members).map(|(_, _, unit)| unit.clone()).collect()
    }
}

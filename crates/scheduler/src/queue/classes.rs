//! Equivalence classes of pending units that wait for the same reason. A decision about one member holds for all. After a change of the
//! cluster only the oldest member is tried; if it is refused again, the class waits on, at no cost per member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_engine::Timestamp;
use reprieve_report::unit_ref::UnitRef;

use super::class_key::ClassKey;
use super::{QueuePosition, STARVATION_SECONDS};
use crate::wait_reason::WaitReason;

/// Identifies an equivalence class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(u64);

/// What a class waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParkedFor {
    /// When the wait ends at the latest.
    pub until: Option<Timestamp>,
    pub reason: WaitReason,
    /// The reason as a sentence.
    pub why: Arc<str>,
    /// Whether the class waits only because an older unit is scheduled first.
    pub for_older_unit: bool,
}

#[derive(Default)]
pub(super) struct EquivalenceClasses {
    classes: BTreeMap<ClassId, EquivalenceClass>,
    by_key: BTreeMap<ClassKey, ClassId>,
    /// Of each class that is ready, the first member.
    heads: BTreeSet<(QueuePosition, ClassId)>,
    timers: BTreeSet<(Timestamp, ClassId)>,
    /// The number of the next class.
    next: u64,
}

struct EquivalenceClass {
    key: ClassKey,
    members: BTreeSet<QueuePosition>,
    /// `None` if the class is ready.
    parked: Option<ParkedFor>,
    last_reported: Option<LastReported>,
}

/// The reason that was last written to the conditions of all members.
#[derive(Clone, Copy)]
struct LastReported {
    reason: WaitReason,
    /// The time from which another reason may be written.
    again: Timestamp,
    /// The seconds from this report to `again`, doubled with each report.
    pause: i64,
}

impl EquivalenceClasses {
    /// The class with this key, created if it does not exist.
    pub fn get_or_create(&mut self, key: ClassKey) -> ClassId {
        if let Some(&class) = self.by_key.get(&key) {
            return class;
        }
        let id = ClassId(self.next);
        self.next += 1;
        self.by_key.insert(key.clone(), id);
        self.classes.insert(id, EquivalenceClass { key, members: BTreeSet::new(), parked: None, last_reported: None });
        id
    }

    /// The class with this key, if it waits.
    pub fn find_parked(&self, key: &ClassKey) -> Option<ClassId> {
        let class = *self.by_key.get(key)?;
        self.classes[&class].parked.is_some().then_some(class)
    }

    pub fn key(&self, class: ClassId) -> &ClassKey {
        &self.classes[&class].key
    }

    /// What a class waits for; `None` if it is ready.
    pub fn parked(&self, class: ClassId) -> Option<&ParkedFor> {
        self.classes.get(&class)?.parked.as_ref()
    }

    pub fn join(&mut self, id: ClassId, position: QueuePosition) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let first = class.members.first().cloned();
        class.members.insert(position);
        self.head_changed(id, first);
    }

    /// Removes a member; an empty class is deleted.
    pub fn leave(&mut self, id: ClassId, position: &QueuePosition) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let first = class.members.first().cloned();
        class.members.remove(position);
        self.head_changed(id, first);
        if self.classes[&id].members.is_empty() {
            self.set(id, None);
            self.classes.remove(&id).map(|class| self.by_key.remove(&class.key));
        }
    }

    fn head_changed(&mut self, id: ClassId, before: Option<QueuePosition>) {
        let class = &self.classes[&id];
        let head = class.members.first().filter(|_| class.parked.is_none()).cloned();
        if let Some(before) = before {
            self.heads.remove(&(before, id));
        }
        self.heads.extend(head.map(|head| (head, id)));
    }

    /// Puts a class to wait. Returns the members whose condition must be rewritten: all of them when the reason changes, but not before the
    /// last pause is over, which doubles each time. A wait for an older unit is short and is not reported to all members.
    pub fn park(&mut self, id: ClassId, parked: ParkedFor, now: Timestamp) -> Vec<UnitRef> {
        let (reason, for_older_unit) = (parked.reason, parked.for_older_unit);
        self.set(id, Some(parked));
        let Some(class) = self.classes.get_mut(&id).filter(|_| !for_older_unit) else { return Vec::new() };
        let pause = match class.last_reported {
            None => STARVATION_SECONDS,
            Some(last) if last.reason != reason && last.again <= now => 2 * last.pause,
            Some(_) => return Vec::new(),
        };
        class.last_reported = Some(LastReported { reason, again: now.plus_seconds(pause), pause });
        class.members.iter().map(|(_, _, unit)| unit.clone()).collect()
    }

    fn set(&mut self, id: ClassId, parked: Option<ParkedFor>) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let until = parked.as_ref().and_then(|parked| parked.until);
        let before = std::mem::replace(&mut class.parked, parked);
        let head = class.members.first().cloned();
        if let Some(until) = before.and_then(|parked| parked.until) {
            self.timers.remove(&(until, id));
        }
        self.timers.extend(until.map(|until| (until, id)));
        self.head_changed(id, head);
    }

    /// Makes the waiting classes ready that the predicate selects.
    pub fn wake(&mut self, wakes: impl Fn(&ClassKey, &ParkedFor) -> bool) {
        let is_woken = |class: &EquivalenceClass| class.parked.as_ref().is_some_and(|parked| wakes(&class.key, parked));
        let woken: Vec<ClassId> = self.classes.iter().filter(|(_, class)| is_woken(class)).map(|(id, _)| *id).collect();
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

    /// The first member of each ready class, in order.
    pub fn ready_heads(&self) -> impl Iterator<Item = (&QueuePosition, Option<ClassId>)> {
        self.heads.iter().map(|(position, id)| (position, Some(*id)))
    }

    /// The members of a class in order; none if the class waits.
    pub fn ready_members(&self, class: ClassId) -> impl Iterator<Item = &QueuePosition> {
        let class = self.classes.get(&class).filter(|class| class.parked.is_none());
        class.into_iter().flat_map(|class| &class.members)
    }

    /// The members of all classes.
    pub fn members(&self) -> Vec<UnitRef> {
        self.classes.values().flat_map(|class| &class.members).map(|(_, _, unit)| unit.clone()).collect()
    }
}

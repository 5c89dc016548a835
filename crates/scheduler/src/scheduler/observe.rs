//! What the scheduler learns, and whom it wakes.

use std::collections::BTreeSet;
use std::sync::Arc;

use reprieve_engine::Timestamp;
use reprieve_engine::hold::yields_above;
use reprieve_objects::load::Loaded;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;

use super::say::{FAILED, says_otherwise};
use super::{Flight, Scheduler, Settling, Version};
use crate::action::{Action, ActionId, PREEMPTED_FOR};
use crate::assumed::unmark;
use crate::bug::Bug;
use crate::event::{ActionResult, Event};
use crate::likeness::Room;
use crate::pending::State;
use crate::roll::Needy;
use crate::unit::UnitName;

impl Scheduler {
    /// Takes in what happened.
    pub fn observe(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Changed(object) => self.changed(object, now),
            Event::Gone { key, version } => self.gone(&key, version, now),
            Event::Listed { kind, objects, version } => {
                self.listed(kind, objects, version, now);
                if let Settling::Listing(kinds) = &mut self.settling {
                    kinds.remove(&kind);
                    if kinds.is_empty() {
                        self.settling = Settling::Settled;
                    }
                }
            }
            Event::Timer => self.timer = None,
            Event::Done { action, result } => self.done(action, result, now),
        }
    }

    fn listed(&mut self, kind: Kind, objects: Vec<Object>, version: u64, now: Timestamp) {
        self.unlisted.remove(&kind);
        if self.listed.get(&kind).is_some_and(|last| *last > version) {
            return;
        }
        let there: BTreeSet<Key> = objects.iter().map(Object::key).collect();
        for object in objects {
            self.changed(object, now);
        }
        let known = self.versions.iter().filter(|(key, known)| key.kind == kind && !known.gone);
        let missing: Vec<Key> = known.filter(|(key, _)| !there.contains(key)).map(|(key, _)| key.clone()).collect();
        for key in missing {
            self.gone(&key, version, now);
        }
        // What is older than the list, and not in it, is gone: its end need not be remembered.
        self.listed.insert(kind, version);
        self.versions.retain(|key, known| key.kind != kind || !known.gone || known.version > version);
    }

    fn changed(&mut self, object: Object, now: Timestamp) {
        let key = object.key();
        let version = object.version();
        let last = self.versions.get(&key).map(|known| known.version).or_else(|| self.listed.get(&key.kind).copied());
        if last.is_some_and(|last| last >= version) {
            return;
        }
        self.versions.insert(key.clone(), Version { version, gone: false });
        match object {
            Object::ConfigMap(mut map) if self.has(Bug::IgnoredFence) => {
                for text in Arc::make_mut(&mut map).data.iter_mut().flat_map(|data| data.values_mut()) {
                    *text = text.replace("fence", "default");
                }
                self.put(Object::ConfigMap(map), now);
                self.world_changed();
            }
            Object::Pod(pod) => {
                self.assumed.seen(Kind::Pod, &key.name, pod.metadata.uid.as_deref().unwrap_or_default(), version);
                self.pods.insert(key.name.clone(), pod);
                self.reconsider(&key.name, now);
            }
            Object::KueueWorkload(_) | Object::Job(_) => self.work_seen(key, object, now),
            Object::PodGroup(group) => {
                self.assumed.seen(
                    Kind::PodGroup,
                    &key.name,
                    group.metadata.uid.as_deref().unwrap_or_default(),
                    version,
                );
                let is_same = matches!(self.live.get(&key), Some(Object::PodGroup(before))
                    if before.spec == group.spec && before.metadata.annotations == group.metadata.annotations);
                self.put(Object::PodGroup(group), now);
                if !is_same {
                    self.unjudged.insert(key.name);
                    self.world_changed();
                }
            }
            other => {
                self.put(other, now);
                self.judge_anew(key.kind);
                self.world_changed();
            }
        }
    }

    pub(super) fn put(&mut self, object: Object, now: Timestamp) {
        let about = object.key();
        if let Err(error) = self.live.put(object) {
            let message = error.to_string();
            self.record(about, None, "Refused", message, now);
        }
    }

    fn gone(&mut self, key: &Key, version: u64, now: Timestamp) {
        if self.versions.get(key).is_some_and(|known| known.version > version) {
            return;
        }
        self.versions.insert(key.clone(), Version { version, gone: true });
        if key.kind == Kind::Pod {
            self.assumed.gone(Kind::Pod, &key.name);
            self.pods.remove(&key.name);
            self.reconsider(&key.name, now);
        } else if matches!(key.kind, Kind::KueueWorkload | Kind::Job) {
            self.work_gone(key, now);
        } else {
            self.assumed.gone(key.kind, &key.name);
            self.live.remove(key);
            self.judge_anew(key.kind);
            self.world_changed();
        }
    }

    /// What the priority classes say changed: so may what groups ask for.
    fn judge_anew(&mut self, kind: Kind) {
        if kind == Kind::PriorityClass {
            let groups = self.live.all().filter(|(key, _)| key.kind == Kind::PodGroup);
            self.unjudged.extend(groups.map(|(key, _)| key.name.clone()));
        }
    }

    fn world_changed(&mut self) {
        self.generation += 1;
        self.pending.wake_all();
    }

    /// A pod, or what is assumed of it, changed.
    pub(super) fn reconsider(&mut self, name: &FullName, now: Timestamp) {
        let before = self.live.pod(name).cloned();
        let mut after = self.pods.get(name).map(|pod| self.assumed.apply(name, pod)).filter(|pod| !is_over(pod));
        if let Some(pod) = after.as_mut().filter(|pod| pod.metadata.deletion_timestamp.is_some())
            && self.has(Bug::SecondRound)
        {
            unmark(Arc::make_mut(pod));
        }
        if before == after {
            return;
        }
        if let Some(pod) = after.as_ref().filter(|after| says_otherwise(before.as_deref(), Some(after))) {
            self.live.renew(name, Arc::clone(pod));
            return;
        }
        let room = self.room(name, before.as_deref(), after.as_deref());
        match &after {
            Some(pod) => {
                if let Err(error) = self.live.put(Object::Pod(Arc::clone(pod))) {
                    let about = Key::new(Kind::Pod, name.clone());
                    let message = error.to_string();
                    self.record(about, None, "Refused", message, now);
                }
            }
            None => self.live.remove(&Key::new(Kind::Pod, name.clone())),
        }
        self.generation += 1;
        self.note_mark(name, before.as_deref(), after.as_deref());
        self.note_owner(name, before.as_deref(), after.as_deref());
        self.reconsider_units(before.as_deref(), after.as_deref());
        // A member of another scheduler counts once it is bound.
        for pod in [&before, &after].into_iter().flatten().filter(|pod| !self.places(pod)).collect::<Vec<_>>() {
            self.pending.wake(&UnitName::of(pod, &self.policy));
        }
        self.note_left_behind(after.as_deref());
        if let Some(room) = room {
            for unit in [&before, &after].into_iter().filter_map(|pod| preemptor_of(pod.as_deref())) {
                self.pending.wake(&unit);
            }
            self.wake_pods(room);
        }
    }

    /// How the room on nodes is about to change as a pod does; `None` where it is not.
    fn room(&self, name: &FullName, before: Option<&Pod>, after: Option<&Pod>) -> Option<Room> {
        let (before, after) = (takes_room(before), takes_room(after));
        if before == after {
            return None;
        }
        let Loaded { snapshot, names, .. } = self.live.loaded();
        Some(match (before, after) {
            (None, Some((on, meant, _))) => Room::Taken(on.or(meant).and_then(|node| names.node_id(node))),
            (Some((Some(on), _, false)), Some((Some(still_on), _, true))) if on == still_on => {
                Room::Taken(names.node_id(on))
            }
            (Some((None, Some(meant), _)), Some((Some(on), _, _))) if meant == on => Room::Taken(names.node_id(on)),
            (Some((Some(on), ..)), None) if let Some(node) = names.node_id(on) => {
                Room::Freed(node, names.pod_id(name).and_then(|pod| yields_above(snapshot, pod)))
            }
            _ => Room::Changed,
        })
    }

    /// Wakes whoever a change of room could help.
    fn wake_pods(&mut self, room: Room) {
        let Self { pending, looks, live, policy, .. } = self;
        let is_known = self.looks_of == live.times_made() && !live.is_stale();
        let snapshot = &live.loaded().snapshot;
        pending.wake_pods(
            |likeness| !is_known || likeness.is_helped(looks, snapshot, policy, room),
            |footing| !is_known || footing.is_touched(snapshot, room),
        );
    }

    /// An object that the scheduler changes, or what is assumed of it, changed.
    pub(super) fn reconsider_any(&mut self, kind: Kind, name: &FullName, now: Timestamp) {
        match kind {
            Kind::Pod => self.reconsider(name, now),
            _ => self.reconsider_work(&Key::new(kind, name.clone()), now),
        }
    }

    /// A pod that was told to yield for a unit that does not wait is looked at.
    fn note_left_behind(&mut self, pod: Option<&Pod>) {
        if let Some(unit) = preemptor_of(pod).filter(|unit| self.pending.get(unit).is_none()) {
            self.left_behind.insert(unit);
        }
    }

    /// Keeps track of who was told to yield, and for whom.
    fn note_mark(&mut self, name: &FullName, before: Option<&Pod>, after: Option<&Pod>) {
        let (before, after) = (preemptor_of(before), preemptor_of(after));
        if before == after {
            return;
        }
        if let Some(unit) = before
            && let Some(marked) = self.marks.get_mut(&unit)
        {
            marked.remove(name);
            if marked.is_empty() {
                self.marks.remove(&unit);
            }
            self.wake_pods(Room::Unmarked);
        }
        if let Some(unit) = after {
            self.marks.entry(unit).or_default().insert(name.clone());
        }
    }

    /// The unit of a pod that this scheduler is to place.
    pub(super) fn unit_of(&self, pod: Option<&Pod>) -> Option<UnitName> {
        let pod = pod?;
        self.places(pod).then(|| UnitName::of(pod, &self.policy))
    }

    /// Whether a pod names this scheduler.
    pub(super) fn places(&self, pod: &Pod) -> bool {
        pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_ref()) == Some(&self.name)
    }

    /// A pod changed, and with it the unit that it is of.
    fn reconsider_units(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        let (left, joined) = (self.unit_of(before), self.unit_of(after));
        let needs = after.filter(|pod| needs_place(pod));
        if let (Some(unit), Some(pod)) = (&left, before.filter(|pod| needs_place(pod))) {
            self.roll.leave(unit, pod);
        }
        if let (Some(unit), Some(pod)) = (&joined, needs) {
            self.roll.enter(unit, pod);
        }
        if let Some(unit) = left.filter(|left| joined.as_ref() != Some(left)) {
            self.reconsider_unit(&unit, self.roll.needy(&unit));
        }
        match joined {
            Some(unit @ UnitName::Pod(_)) => self.reconsider_unit(&unit, needs.map(Needy::one)),
            Some(unit) => self.reconsider_unit(&unit, self.roll.needy(&unit)),
            None => {}
        }
    }

    fn reconsider_unit(&mut self, unit: &UnitName, needy: Option<Needy>) {
        if let UnitName::Group(name) = unit {
            self.unjudged.insert(name.clone());
        }
        match needy {
            Some(needy) => {
                self.pending.put(unit, needy);
                self.pending.wake(unit);
            }
            None => {
                self.pending.remove(unit);
                self.left_behind.insert(unit.clone());
            }
        }
    }

    fn done(&mut self, id: ActionId, mut result: ActionResult, now: Timestamp) {
        let Some(Flight { action, unit, settles, preempts }) = self.in_flight.remove(&id) else {
            return;
        };
        if self.has(Bug::TrustedTimeout) && matches!((&action, &result), (Action::Evict { .. }, ActionResult::TimedOut))
        {
            result = ActionResult::Ok { version: u64::MAX };
        }
        let about = action.changes().map(|(kind, target)| (kind, target.name.clone()));
        if let (Action::Condition { said, .. }, Some((kind, name))) = (&action, about.as_ref()) {
            self.said(id, &Key::new(*kind, name.clone()), said, &result, now);
            return;
        }
        let mut failed = false;
        match (result, about) {
            (ActionResult::Ok { version }, Some((kind, name))) => {
                self.assumed.worked(id, kind, &name, version);
                if let Some(known) = self.known(kind, &name) {
                    self.assumed.seen(kind, &name, known.uid(), known.version());
                }
                self.reconsider_any(kind, &name, now);
                if let Some((preemptor, why)) = preempts {
                    self.record(Key::new(kind, name), Some(preemptor), "Preempted", why, now);
                } else if let Action::Refuse { message, .. } = &action {
                    self.record(Key::new(kind, name), None, FAILED, message.clone(), now);
                }
            }
            (ActionResult::Forbidden(_), Some((kind, name))) => {
                failed = true;
                self.assumed.failed(id, kind, &name);
                self.reconsider_any(kind, &name, now);
            }
            (ActionResult::Forbidden(_), None) if matches!(action, Action::CreateWorkload { .. }) => failed = true,
            (_, None) if let Action::CreateWorkload { workload } = &action => {
                self.find_out(Key::new(Kind::KueueWorkload, FullName::of(&workload.metadata)), None, unit.clone());
            }
            (ActionResult::Read(object), _) => self.changed(object, now),
            (ActionResult::NotFound, _) if let Action::Read { key } = &action => {
                let version = self.versions.get(key).map_or(0, |known| known.version);
                self.gone(key, version, now);
            }
            (ActionResult::Conflict | ActionResult::NotFound | ActionResult::TimedOut, Some((kind, name))) => {
                self.find_out(Key::new(kind, name), Some(id), unit.clone());
            }
            (ActionResult::TimedOut | ActionResult::Conflict | ActionResult::Forbidden(_), None)
                if let Action::Read { key } = &action =>
            {
                self.find_out(key.clone(), settles, unit.clone());
                self.finished(&unit, id, failed, now);
                return;
            }
            (_, None) => {}
        }
        if let Action::Read { key } = &action {
            self.settled(key, settles, now);
        }
        if matches!(action.changes(), Some((Kind::KueueWorkload, _))) {
            self.pending.wake_workloads();
        }
        if let (Action::Bind { .. }, Some(UnitName::Group(name))) = (&action, &unit) {
            self.unjudged.insert(name.clone());
        }
        self.finished(&unit, id, failed, now);
    }

    /// The object was read anew.
    fn settled(&mut self, key: &Key, settled: Option<ActionId>, now: Timestamp) {
        if let Some(settled) = settled {
            self.assumed.failed(settled, key.kind, &key.name);
        }
        if key.kind != Kind::Pod {
            self.work_settled(key, now);
            return;
        }
        self.unsettled.remove(&key.name);
        if settled.is_some() {
            self.reconsider(&key.name, now);
        }
        let after = self.live.pod(&key.name).cloned();
        self.note_left_behind(after.as_deref());
        self.pending.wake_all();
    }

    /// Reads an object anew: whether an action on it worked is not known.
    fn find_out(&mut self, key: Key, settles: Option<ActionId>, unit: Option<UnitName>) {
        let id = ActionId(self.next_action);
        self.next_action += 1;
        let action = Action::Read { key: key.clone() };
        if let Some(unit) = unit.as_ref().filter(|unit| self.pending.is_busy(unit)) {
            self.pending.busy(unit, id);
        }
        match key.kind {
            Kind::Pod => self.unsettled.insert(key.name),
            _ => self.work.unsettled.insert(key),
        };
        self.in_flight.insert(id, Flight { action: action.clone(), unit, settles, preempts: None });
        self.outbox.push((id, action));
    }

    /// An object that the scheduler changes, as the API has it.
    pub fn known(&self, kind: Kind, name: &FullName) -> Option<Object> {
        match kind {
            Kind::Pod => self.pods.get(name).map(|pod| Object::Pod(Arc::clone(pod))),
            Kind::PodGroup => self.live.get(&Key::new(kind, name.clone())).cloned(),
            _ => self.work.seen.get(&Key::new(kind, name.clone())).cloned(),
        }
    }

    /// One of the things that a unit waits for is done; after the last it is its turn again, or it backs off.
    fn finished(&mut self, unit: &Option<UnitName>, id: ActionId, failed: bool, now: Timestamp) {
        let Some(unit) = unit else { return };
        match self.pending.done(unit, id) {
            None => self.pending.wake(unit),
            Some(_) if failed => self.pending.back_off(unit, now),
            Some(0) => {
                self.pending.succeeded(unit);
                self.pending.set(unit, State::Active);
            }
            Some(_) => {}
        }
    }
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

pub(super) fn needs_place(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    let gated = gates.is_some_and(|gates| !gates.is_empty());
    pod.node_name.is_none() && !gated && pod.metadata.deletion_timestamp.is_none()
}

/// The room that a pod takes: where it is bound, or meant to be; and, for queues, whether it is leaving.
fn takes_room(pod: Option<&Pod>) -> Option<(Option<&String>, Option<&String>, bool)> {
    let pod = pod?;
    let node = pod.node_name.as_ref();
    let nominated =
        pod.status.as_ref().and_then(|status| status.nominated_node_name.as_ref()).filter(|_| node.is_none());
    let room = (node, nominated, pod.metadata.deletion_timestamp.is_some());
    (node.is_some() || nominated.is_some()).then_some(room)
}

/// The unit for which a pod was told to yield.
pub(super) fn preemptor_of(pod: Option<&Pod>) -> Option<UnitName> {
    UnitName::parse(pod?.metadata.annotations.as_ref()?.get(PREEMPTED_FOR)?)
}

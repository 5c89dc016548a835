//! Processes events: updates the view of the cluster, and makes the units ready that a change could help.

use std::collections::BTreeSet;
use std::sync::Arc;

use reprieve_api::object_set::Unreadable;
use reprieve_api::{InputError, Kind, NamespacedName, Object, ObjectKey, ObjectRef, Pod, ProblemCode};
use reprieve_engine::Timestamp;
use reprieve_loader::Loaded;
use reprieve_loader::cache::is_owner;
use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::action::{Action, ActionId};
use crate::action_log::Request;
use crate::event::{ActionResult, Event};
use crate::queue::WaitState;
use crate::test_bugs::{Bug, FATAL};
use crate::view::{RoomChange, is_evicted, preemptor_of};

impl Scheduler {
    /// Processes an event.
    pub fn observe(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Upserted(object) => self.upserted(object),
            Event::Deleted { key, version } => self.deleted(&key, version),
            Event::Unreadable { object, version } => self.unreadable(object, version),
            Event::Listed { kind, objects, version } => {
                self.listed(kind, objects, version);
                self.view.sync.listed(kind);
            }
            Event::TimerFired => self.actions.timer_fired(),
            Event::ActionCompleted { action, result } => self.action_completed(action, result, now),
        }
        self.observing = None;
    }

    /// Continues after a panic in [`Self::observe`]: the object that was being read is set aside until it changes. `None` if no object was
    /// being read, so that the cause of the panic is unknown.
    pub fn recover_observe(&mut self) -> Option<ObjectKey> {
        let object = self.observing.take()?;
        self.set_aside_after_panic(&object);
        Some(object)
    }

    /// Continues after a panic in [`Self::step`] while the snapshot was rebuilt, in the same way.
    pub fn recover_rebuild(&mut self) -> Option<ObjectKey> {
        let object = self.view.live.take_reading()?;
        self.set_aside_after_panic(&object);
        Some(object)
    }

    fn set_aside_after_panic(&mut self, object: &ObjectKey) {
        let observed = self.view.observed_object(object.kind, &object.name);
        let value = observed.and_then(|observed| serde_json::to_value(&observed).ok()).unwrap_or_default();
        let problem = "the scheduler panicked while reading the object, see its log; it is read again when it changes";
        let error = InputError::new(problem).code(ProblemCode::InternalError);
        let error = error.object(ObjectRef::of(object.kind, &object.name));
        self.view.live.discard_tables();
        self.view.live.upsert_unreadable(Unreadable::new(object.clone(), &value, error));
        self.cluster_changed();
    }

    /// The effect of [`Bug::PanicInObserve`].
    fn inject_observe_panic(&mut self, object: &ObjectKey) {
        if self.bugs.has(Bug::PanicInObserve) && object.name.name == FATAL {
            let Loaded { snapshot, names, .. } = self.view.live.loaded_mut();
            names.pod_ids().for_each(|pod| snapshot.remove_pod(pod));
            panic!("deliberate panic");
        }
    }

    /// The effect of [`Bug::PanicInRebuild`].
    pub(super) fn inject_rebuild_panic(&mut self) {
        if !self.bugs.has(Bug::PanicInRebuild) || !self.view.live.is_stale() {
            return;
        }
        let fatal = self.view.live.pods().find(|(name, _)| name.name == FATAL).map(|(name, _)| name.clone());
        if let Some(name) = fatal {
            self.view.live.note_reading(ObjectKey::new(Kind::Pod, name));
            panic!("deliberate panic");
        }
    }

    fn listed(&mut self, kind: Kind, objects: Vec<Object>, version: u64) {
        if self.view.versions.is_outdated(kind, version) {
            return;
        }
        let keys: BTreeSet<ObjectKey> = objects.iter().map(Object::key).collect();
        for object in objects {
            self.upserted(object);
        }
        for key in self.view.versions.missing(kind, &keys) {
            self.deleted(&key, version);
        }
        self.view.versions.listed(kind, version);
    }

    fn upserted(&mut self, object: Object) {
        let key = object.key();
        if !self.view.versions.accept(&key, object.version()) {
            return;
        }
        self.observing = Some(key.clone());
        self.inject_observe_panic(&key);
        match object {
            Object::ConfigMap(mut map) if self.bugs.has(Bug::IgnoredFence) => {
                for text in Arc::make_mut(&mut map).data.iter_mut().flat_map(|data| data.values_mut()) {
                    *text = text.replace("fence", "default");
                }
                self.view.put(Object::ConfigMap(map));
                self.cluster_changed();
            }
            Object::Pod(_) => {
                self.view.seen(&object);
                self.update_view(&key.name);
            }
            Object::KueueWorkload(_) | Object::Job(_) => self.workload_or_job_upserted(&object),
            Object::PodGroup(group) => {
                let is_same = matches!(self.view.live.get(&key), Some(Object::PodGroup(before))
                    if before.spec == group.spec && before.metadata.annotations == group.metadata.annotations);
                let group = Object::PodGroup(group);
                self.view.seen(&group);
                self.view.put(group);
                if !is_same {
                    self.status.group_changed(key.name);
                    self.cluster_changed();
                }
            }
            owner if is_owner(key.kind) => {
                self.view.put(owner);
                self.regroup();
            }
            other => {
                self.view.put(other);
                self.update_group_status(key.kind);
                self.cluster_changed();
            }
        }
    }

    /// An object that can no longer be read is set aside; a bound pod then counts as its whole node.
    fn unreadable(&mut self, object: Unreadable, version: u64) {
        if self.view.versions.accept_unreadable(&object.object, version) {
            self.forget(&object.object);
            self.view.live.upsert_unreadable(object);
            self.regroup();
        }
    }

    fn deleted(&mut self, key: &ObjectKey, version: u64) {
        if self.view.versions.accept_deleted(key, version) {
            self.forget(key);
        }
    }

    /// Removes an object from all parts.
    fn forget(&mut self, key: &ObjectKey) {
        self.observing = Some(key.clone());
        self.view.deleted(key);
        self.status.forget(key);
        self.admission.forget(key);
        match key.kind {
            Kind::Pod => {
                self.update_view(&key.name);
                self.view.live.remove_unreadable(key);
            }
            Kind::KueueWorkload | Kind::Job => self.update_workload_or_job(key),
            kind if is_owner(kind) => {
                self.view.live.remove(key);
                self.regroup();
            }
            _ => {
                self.view.live.remove(key);
                self.update_group_status(key.kind);
                self.cluster_changed();
            }
        }
    }

    /// A change of a PriorityClass may change which preemption priorities groups may use.
    fn update_group_status(&mut self, kind: Kind) {
        if kind == Kind::PriorityClass {
            self.status.classes_changed(&self.view);
        }
    }

    pub(super) fn cluster_changed(&mut self) {
        self.view.generation += 1;
        self.queue.requeue_all();
    }

    /// Updates the view of a pod, after an event or after an action on the pod.
    pub(super) fn update_view(&mut self, name: &NamespacedName) {
        let Some(update) = self.view.update_pod(name, self.bugs) else { return };
        let (before, after) = (update.before.as_deref(), update.after.as_deref());
        if self.preemptions.pod_changed(name, before, after) {
            self.queue.room_changed(RoomChange::Unmarked, &self.view);
        }
        if self.view.is_kueue() {
            self.admission.pod_changed(name, before, after, &mut self.queue);
        }
        self.update_units(before, after);
        // A pod of another scheduler counts towards its group once it is bound.
        for pod in [before, after].into_iter().flatten().filter(|pod| !self.view.is_ours(pod)) {
            self.queue.wake(&UnitRef::of(pod, self.view.policy()));
        }
        if before.is_some_and(is_evicted) && after.is_some_and(|pod| !is_evicted(pod)) {
            // The owner of the pod removed the label by which another operator was asked to evict it.
            if let Some(unit) = preemptor_of(after) {
                self.queue.wake(&unit);
            }
        }
        self.preemptions.release_without_preemptor(after, &self.queue);
        self.regroup();
        if let Some(room) = update.room {
            for unit in [before, after].into_iter().filter_map(preemptor_of) {
                self.queue.wake(&unit);
            }
            self.queue.room_changed(room, &self.view);
        }
    }

    /// Updates the units of a pod that changed, or that belongs to another gang.
    fn update_units(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        for (unit, is_pending) in self.queue.pod_changed(before, after, &self.view) {
            if let UnitRef::Group(name) = &unit {
                self.status.group_changed(name.clone());
            }
            if !is_pending {
                self.preemptions.release(unit);
            }
        }
    }

    /// Updates the units of the pods whose gang changed because an owner changed. Other units may be taken with them or without, so all are
    /// tried again.
    fn regroup(&mut self) {
        let regrouped = self.view.live.take_regrouped();
        let is_changed = !regrouped.is_empty();
        for (before, name) in regrouped {
            let after = self.view.live.pod(&name).map(Arc::clone);
            self.update_units(Some(&before), after.as_deref());
        }
        if is_changed {
            self.cluster_changed();
        }
    }

    /// Updates the view of an object that an action changes.
    pub(super) fn update_changed(&mut self, key: &ObjectKey) {
        match key.kind {
            Kind::Pod => self.update_view(&key.name),
            _ => self.update_workload_or_job(key),
        }
    }

    fn action_completed(&mut self, id: ActionId, result: ActionResult, now: Timestamp) {
        let Some(mut request) = self.actions.finish(id) else { return };
        let events = std::mem::take(&mut request.events);
        let events = if matches!(result, ActionResult::Ok { .. }) { events } else { Vec::new() };
        self.process_result(id, request, result, now);
        for event in events {
            self.send(Request::new(event), now);
        }
    }

    fn process_result(&mut self, id: ActionId, request: Request, result: ActionResult, now: Timestamp) {
        let unit = request.unit.clone();
        let changed = request.action.changes().map(|(kind, target)| ObjectKey::new(kind, target.name.clone()));
        self.observing.clone_from(&changed);
        let failed = match (&request.action, changed) {
            (Action::SetCondition { .. }, Some(key)) => return self.condition_completed(id, &key, &result),
            (_, Some(key)) => self.change_completed(id, &key, request, result),
            (Action::CreateWorkload { workload }, None) => {
                let forbidden = matches!(result, ActionResult::Forbidden(_));
                if !forbidden {
                    let key = ObjectKey::new(Kind::KueueWorkload, NamespacedName::from_meta(&workload.metadata));
                    self.reread(key, None, unit.clone());
                }
                forbidden
            }
            (Action::GetObject { key }, None) => {
                self.read_completed(key, request.confirms, &unit, result);
                false
            }
            (_, None) => false,
        };
        self.finished(&unit, id, failed, now);
    }

    /// Processes the result of writing a condition. A forbidden condition stays assumed, so that it is not written again.
    fn condition_completed(&mut self, id: ActionId, key: &ObjectKey, result: &ActionResult) {
        match result {
            ActionResult::Ok { version } => self.view.succeeded(id, key, *version),
            ActionResult::Forbidden(_) => {}
            _ => self.view.assumed.failed(id, key),
        }
    }

    /// Processes the result of an action that changes an object. Returns whether the unit must back off.
    fn change_completed(&mut self, id: ActionId, key: &ObjectKey, request: Request, mut result: ActionResult) -> bool {
        let Request { action, unit, .. } = request;
        if self.bugs.has(Bug::TrustedTimeout)
            && matches!((&action, &result), (Action::Evict { .. }, ActionResult::Unknown))
        {
            result = ActionResult::Ok { version: u64::MAX };
        }
        let failed = matches!(result, ActionResult::Forbidden(_));
        match result {
            ActionResult::Ok { version } => {
                self.view.succeeded(id, key, version);
                self.update_changed(key);
            }
            ActionResult::Forbidden(_) => {
                self.view.assumed.failed(id, key);
                self.update_changed(key);
            }
            ActionResult::Read(object) => self.upserted(object),
            ActionResult::Conflict | ActionResult::NotFound | ActionResult::Unknown => {
                self.reread(key.clone(), Some(id), unit.clone());
            }
        }
        if key.kind == Kind::KueueWorkload {
            self.queue.wake_workloads();
        }
        if let (Action::Bind { .. }, Some(UnitRef::Group(name))) = (&action, unit) {
            self.status.group_changed(name);
        }
        failed
    }

    /// Processes the result of reading an object again; a failed read is repeated.
    fn read_completed(
        &mut self,
        key: &ObjectKey,
        confirms: Option<ActionId>,
        unit: &Option<UnitRef>,
        result: ActionResult,
    ) {
        match result {
            ActionResult::Read(object) => self.upserted(object),
            ActionResult::NotFound => self.deleted(key, self.view.versions.last(key)),
            ActionResult::Ok { .. } => {}
            ActionResult::Unknown | ActionResult::Conflict | ActionResult::Forbidden(_) => {
                return self.reread(key.clone(), confirms, unit.clone());
            }
        }
        if let Some(action) = confirms {
            self.view.assumed.failed(action, key);
        }
        self.view.unconfirmed.remove(key);
        if key.kind != Kind::Pod {
            self.update_workload_or_job(key);
            self.queue.wake_workloads();
            return;
        }
        if confirms.is_some() {
            self.update_view(&key.name);
        }
        self.preemptions.release_without_preemptor(self.view.pod(&key.name), &self.queue);
        self.queue.requeue_all();
    }

    /// Reads an object again, because the outcome of an action on it is unknown.
    fn reread(&mut self, key: ObjectKey, confirms: Option<ActionId>, unit: Option<UnitRef>) {
        let busy = unit.clone().filter(|unit| self.queue.is_busy(unit));
        let action = Action::GetObject { key: key.clone() };
        let id = self.actions.send(Request { action, unit, events: Vec::new(), confirms });
        if let Some(unit) = busy {
            self.queue.add_action(&unit, id);
        }
        self.view.unconfirmed.insert(key);
    }

    /// Notes that an action of a unit is completed. After the last one the unit is ready; after a failure it backs off.
    fn finished(&mut self, unit: &Option<UnitRef>, id: ActionId, failed: bool, now: Timestamp) {
        let Some(unit) = unit else { return };
        match self.queue.action_completed(unit, id) {
            None => self.queue.wake(unit),
            Some(_) if failed => self.queue.back_off(unit, now),
            Some(0) => {
                self.queue.succeeded(unit);
                self.queue.set(unit, WaitState::Ready);
            }
            Some(_) => {}
        }
    }
}

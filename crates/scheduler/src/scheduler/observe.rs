//! What the scheduler learns, and whom it wakes.

use std::collections::BTreeSet;
use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_engine::Timestamp;
use reprieve_report::planned_actions::PREEMPTED;
use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::action::{Action, ActionId, ConditionUpdate};
use crate::action_log::Request;
use crate::event::{ActionResult, Event};
use crate::queue::WaitState;
use crate::status::UNSCHEDULABLE;
use crate::test_bugs::Bug;
use crate::view::{RoomChange, preemptor_of};

/// The event that says why an object waits.
const FAILED: &str = "FailedScheduling";

impl Scheduler {
    /// Takes in what happened.
    pub fn observe(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Upserted(object) => self.changed(object, now),
            Event::Deleted { key, version } => self.gone(&key, version, now),
            Event::Listed { kind, objects, version } => {
                self.listed(kind, objects, version, now);
                self.view.sync.listed(kind);
            }
            Event::TimerFired => self.actions.timer_fired(),
            Event::ActionCompleted { action, result } => self.done(action, result, now),
        }
    }

    fn listed(&mut self, kind: Kind, objects: Vec<Object>, version: u64, now: Timestamp) {
        if self.view.versions.is_outdated(kind, version) {
            return;
        }
        let there: BTreeSet<ObjectKey> = objects.iter().map(Object::key).collect();
        for object in objects {
            self.changed(object, now);
        }
        for key in self.view.versions.missing(kind, &there) {
            self.gone(&key, version, now);
        }
        self.view.versions.listed(kind, version);
    }

    fn changed(&mut self, object: Object, now: Timestamp) {
        let key = object.key();
        if !self.view.versions.accept(&key, object.version()) {
            return;
        }
        match object {
            Object::ConfigMap(mut map) if self.bugs.has(Bug::IgnoredFence) => {
                for text in Arc::make_mut(&mut map).data.iter_mut().flat_map(|data| data.values_mut()) {
                    *text = text.replace("fence", "default");
                }
                self.put(Object::ConfigMap(map), now);
                self.cluster_changed();
            }
            Object::Pod(_) => {
                self.view.seen(&object);
                self.update_view(&key.name, now);
            }
            Object::KueueWorkload(_) | Object::Job(_) => self.workload_or_job_upserted(&object, now),
            Object::PodGroup(group) => {
                let is_same = matches!(self.view.live.get(&key), Some(Object::PodGroup(before))
                    if before.spec == group.spec && before.metadata.annotations == group.metadata.annotations);
                let group = Object::PodGroup(group);
                self.view.seen(&group);
                self.put(group, now);
                if !is_same {
                    self.status.group_changed(key.name);
                    self.cluster_changed();
                }
            }
            other => {
                self.put(other, now);
                self.update_group_status(key.kind);
                self.cluster_changed();
            }
        }
    }

    pub(super) fn put(&mut self, object: Object, now: Timestamp) {
        let about = object.key();
        if let Some(error) = self.view.put(object) {
            self.record(about, None, "Refused", error.to_string(), now);
        }
    }

    fn gone(&mut self, key: &ObjectKey, version: u64, now: Timestamp) {
        if !self.view.versions.accept_gone(key, version) {
            return;
        }
        let gone = self.view.gone(key);
        match key.kind {
            Kind::Pod => self.update_view(&key.name, now),
            Kind::KueueWorkload | Kind::Job => self.workload_or_job_deleted(key, gone.as_ref(), now),
            _ => {
                self.view.live.remove(key);
                self.update_group_status(key.kind);
                self.cluster_changed();
            }
        }
    }

    /// What the priority classes say changed: so may what groups ask for.
    fn update_group_status(&mut self, kind: Kind) {
        if kind == Kind::PriorityClass {
            self.status.classes_changed(&self.view);
        }
    }

    fn cluster_changed(&mut self) {
        self.view.generation += 1;
        self.queue.requeue_all();
    }

    /// A pod, or what is assumed of it, changed.
    pub(super) fn update_view(&mut self, name: &NamespacedName, now: Timestamp) {
        let Some(update) = self.view.update_pod(name, self.bugs) else { return };
        if let Some(error) = update.refused {
            self.record(ObjectKey::new(Kind::Pod, name.clone()), None, "Refused", error.to_string(), now);
        }
        let (before, after) = (update.before.as_deref(), update.after.as_deref());
        if self.preemptions.pod_changed(name, before, after) {
            self.queue.room_changed(RoomChange::Unmarked, &self.view);
        }
        if self.view.is_kueue() {
            self.admission.pod_changed(name, before, after, &mut self.queue);
        }
        for (unit, waits) in self.queue.pod_changed(before, after, &self.view) {
            if let UnitRef::Group(name) = &unit {
                self.status.group_changed(name.clone());
            }
            if !waits {
                self.preemptions.release(unit);
            }
        }
        // A member of another scheduler counts once it is bound.
        for pod in [before, after].into_iter().flatten().filter(|pod| !self.view.places(pod)) {
            self.queue.wake(&UnitRef::of(pod, self.view.policy()));
        }
        self.preemptions.release_without_preemptor(after, &self.queue);
        if let Some(room) = update.room {
            for unit in [before, after].into_iter().filter_map(preemptor_of) {
                self.queue.wake(&unit);
            }
            self.queue.room_changed(room, &self.view);
        }
    }

    /// An object that the scheduler changes, or what is assumed of it, changed.
    pub(super) fn update_changed(&mut self, key: &ObjectKey, now: Timestamp) {
        match key.kind {
            Kind::Pod => self.update_view(&key.name, now),
            _ => self.update_workload_or_job(key, now),
        }
    }

    /// The result of an action has come.
    fn done(&mut self, id: ActionId, result: ActionResult, now: Timestamp) {
        let Some(request) = self.actions.finish(id) else { return };
        let unit = request.unit.clone();
        let changed = request.action.changes().map(|(kind, target)| ObjectKey::new(kind, target.name.clone()));
        let failed = match (&request.action, changed) {
            (Action::SetCondition { condition, .. }, Some(key)) => return self.condition_done(id, &key, condition, &result, now),
            (_, Some(key)) => self.change_done(id, &key, request, result, now),
            (Action::CreateWorkload { workload }, None) => {
                let forbidden = matches!(result, ActionResult::Forbidden(_));
                if !forbidden {
                    let key = ObjectKey::new(Kind::KueueWorkload, NamespacedName::from_meta(&workload.metadata));
                    self.reread(key, None, unit.clone());
                }
                forbidden
            }
            (Action::GetObject { key }, None) => {
                self.read_done(key, request.confirms, &unit, result, now);
                false
            }
            (_, None) => false,
        };
        self.finished(&unit, id, failed, now);
    }

    /// The result of writing a condition. What is forbidden is not tried again; what failed otherwise is, when there is something to write.
    /// Why an object waits is recorded as an event, too.
    fn condition_done(
        &mut self,
        id: ActionId,
        key: &ObjectKey,
        condition: &ConditionUpdate,
        result: &ActionResult,
        now: Timestamp,
    ) {
        match result {
            ActionResult::Ok { version } => {
                self.view.worked(id, key, *version);
                if condition.reason == UNSCHEDULABLE {
                    self.record(key.clone(), None, FAILED, condition.message.clone(), now);
                }
            }
            ActionResult::Forbidden(_) => {}
            _ => self.view.assumed.failed(id, key),
        }
    }

    /// The result of an action that changes an object. Whether the unit that asked for it has to back off.
    fn change_done(
        &mut self,
        id: ActionId,
        key: &ObjectKey,
        request: Request,
        mut result: ActionResult,
        now: Timestamp,
    ) -> bool {
        let Request { action, unit, preempts, .. } = request;
        if self.bugs.has(Bug::TrustedTimeout)
            && matches!((&action, &result), (Action::Evict { .. }, ActionResult::Unknown))
        {
            result = ActionResult::Ok { version: u64::MAX };
        }
        let failed = matches!(result, ActionResult::Forbidden(_));
        match result {
            ActionResult::Ok { version } => {
                self.view.worked(id, key, version);
                self.update_changed(key, now);
                if let Some((preemptor, why)) = preempts {
                    self.record(key.clone(), Some(preemptor), PREEMPTED, why, now);
                } else if let Action::SetQuotaPending { message, .. } = &action {
                    self.record(key.clone(), None, FAILED, message.clone(), now);
                }
            }
            ActionResult::Forbidden(_) => {
                self.view.assumed.failed(id, key);
                self.update_changed(key, now);
            }
            ActionResult::Read(object) => self.changed(object, now),
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

    /// The result of reading an object again; without one it is read once more.
    fn read_done(
        &mut self,
        key: &ObjectKey,
        confirms: Option<ActionId>,
        unit: &Option<UnitRef>,
        result: ActionResult,
        now: Timestamp,
    ) {
        match result {
            ActionResult::Read(object) => self.changed(object, now),
            ActionResult::NotFound => self.gone(key, self.view.versions.last(key), now),
            ActionResult::Ok { .. } => {}
            ActionResult::Unknown | ActionResult::Conflict | ActionResult::Forbidden(_) => {
                return self.reread(key.clone(), confirms, unit.clone());
            }
        }
        if let Some(settled) = confirms {
            self.view.assumed.failed(settled, key);
        }
        self.view.unconfirmed.remove(key);
        if key.kind != Kind::Pod {
            self.update_workload_or_job(key, now);
            self.queue.wake_workloads();
            return;
        }
        if confirms.is_some() {
            self.update_view(&key.name, now);
        }
        self.preemptions.release_without_preemptor(self.view.pod(&key.name), &self.queue);
        self.queue.requeue_all();
    }

    /// Reads an object anew: whether an action on it worked is not known.
    fn reread(&mut self, key: ObjectKey, confirms: Option<ActionId>, unit: Option<UnitRef>) {
        let busy = unit.clone().filter(|unit| self.queue.is_busy(unit));
        let action = Action::GetObject { key: key.clone() };
        let id = self.actions.send(Request { action, unit, confirms, preempts: None });
        if let Some(unit) = busy {
            self.queue.add_action(&unit, id);
        }
        self.view.unconfirmed.insert(key);
    }

    /// One of the things that a unit waits for is done; after the last it is its turn again, or it backs off.
    fn finished(&mut self, unit: &Option<UnitRef>, id: ActionId, failed: bool, now: Timestamp) {
        let Some(unit) = unit else { return };
        match self.queue.done(unit, id) {
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

//! The virtual API server: stores objects with versions, checks the preconditions of actions, and collects watch events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::Timestamp;
use reprieve_loader::time::time;
use reprieve_scheduler::effects::{apply, terminate};
use reprieve_scheduler::{Action, ActionResult, Event};

use crate::hostile::is_of_tenant;

/// The objects, and the watch events that were not delivered yet.
#[derive(Default)]
pub struct Api {
    objects: BTreeMap<ObjectKey, Object>,
    /// The objects that each owner owns, by the uid of the owner.
    owned: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The version of the last change.
    pub version: u64,
    uids: u64,
    /// The number of objects that the hostile tenant created. Uids of other objects do not depend on it, nor do names that contain a uid.
    hostile_uids: u64,
    changes: Vec<Event>,
}

impl Api {
    /// The watch events since the last call.
    pub fn take_changes(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.changes)
    }

    /// The result of a list request.
    pub fn list(&self, kind: Kind) -> Event {
        let objects = self.of_kind(kind).cloned().collect();
        Event::Listed { kind, objects, version: self.version }
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    pub fn pod(&self, name: &NamespacedName) -> Option<&Arc<Pod>> {
        match self.objects.get(&ObjectKey::new(Kind::Pod, name.clone()))? {
            Object::Pod(pod) => Some(pod),
            _ => None,
        }
    }

    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let from = ObjectKey::new(kind, NamespacedName { namespace: String::new(), name: String::new() });
        self.objects.range(from..).map(|(_, object)| object).take_while(move |object| object.kind() == kind)
    }

    pub fn all(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// The objects whose owner has this uid.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.owned.get(uid).into_iter().flatten()
    }

    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.of_kind(Kind::Pod).filter_map(|object| match object {
            Object::Pod(pod) => Some(pod),
            _ => None,
        })
    }

    /// Creates an object with a new uid.
    pub fn create(&mut self, mut object: Object, now: Timestamp) {
        let uid = if is_of_tenant(&object) {
            self.hostile_uids += 1;
            format!("hostile-{:08}", self.hostile_uids)
        } else {
            self.uids += 1;
            format!("{:08}", self.uids)
        };
        let metadata = object.metadata_mut();
        metadata.uid = Some(uid);
        metadata.creation_timestamp = time(now).map(Time);
        self.store(object);
    }

    /// Changes a pod, if it exists; returns the new version.
    pub fn change(&mut self, name: &NamespacedName, change: impl FnOnce(&mut Pod)) -> Option<u64> {
        let key = ObjectKey::new(Kind::Pod, name.clone());
        let Object::Pod(pod) = self.objects.get(&key)?.clone() else {
            return None;
        };
        let mut pod = Pod::clone(&pod);
        change(&mut pod);
        Some(self.store(Object::from(pod)))
    }

    /// Creates or replaces an object; returns the new version.
    pub fn store(&mut self, mut object: Object) -> u64 {
        self.version += 1;
        object.metadata_mut().resource_version = Some(self.version.to_string());
        let key = object.key();
        for owner in object.metadata().owner_references.iter().flatten() {
            self.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.objects.insert(key, object.clone());
        self.changes.push(Event::Upserted(object));
        self.version
    }

    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some(object) = self.objects.remove(key) {
            for owner in object.metadata().owner_references.iter().flatten() {
                if let Some(owned) = self.owned.get_mut(&owner.uid) {
                    owned.remove(key);
                }
            }
            self.owned.remove(object.uid());
            self.version += 1;
            self.changes.push(Event::Deleted { key: key.clone(), version: self.version });
        }
    }

    /// Deletes a pod with its grace period; a pod without a node is removed at once. Returns the version of the deletion.
    pub fn delete(&mut self, name: &NamespacedName, now: Timestamp) -> u64 {
        let Some(pod) = self.pod(name) else {
            return self.version;
        };
        if pod.node_name.is_none() {
            self.remove(&ObjectKey::new(Kind::Pod, name.clone()));
            return self.version;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return Object::Pod(Arc::clone(pod)).version();
        }
        self.change(name, |pod| terminate(pod, now)).expect("the pod exists")
    }

    /// Executes an action.
    pub fn apply(&mut self, action: &Action, now: Timestamp) -> ActionResult {
        match action {
            Action::GetObject { key } => match self.objects.get(key) {
                Some(object) => ActionResult::Read(object.clone()),
                None => ActionResult::NotFound,
            },
            Action::CreateWorkload { workload } => {
                let object = Object::from((**workload).clone());
                if self.objects.contains_key(&object.key()) {
                    return ActionResult::Conflict;
                }
                self.create(object, now);
                ActionResult::Ok { version: self.version }
            }
            Action::EmitEvent { .. } | Action::Relist { .. } | Action::WakeAt { .. } => ActionResult::Ok { version: 0 },
            _ => self.change_object(action, now),
        }
    }

    /// Executes an action on an object, if the preconditions hold: always the uid; for evictions, workloads and Jobs also the version.
    fn change_object(&mut self, action: &Action, now: Timestamp) -> ActionResult {
        let Some((kind, target)) = action.changes() else { return ActionResult::NotFound };
        let known = self.objects.get(&ObjectKey::new(kind, target.name.clone()));
        let Some(before) = known.filter(|object| object.uid() == target.uid).cloned() else {
            return ActionResult::NotFound;
        };
        let needs_version = matches!(action, Action::Evict { .. }) || matches!(kind, Kind::KueueWorkload | Kind::Job);
        if needs_version && before.version() != target.version {
            return ActionResult::Conflict;
        }
        if let Action::Evict { pod } = action {
            return ActionResult::Ok { version: self.delete(&pod.name, now) };
        }
        let mut after = before.clone();
        if !is_allowed(action, &before) || !apply(action, &mut after, now) {
            return ActionResult::Conflict;
        }
        // A patch of a pod that changes nothing makes no new version.
        let is_unchanged = kind == Kind::Pod && after == before;
        ActionResult::Ok { version: if is_unchanged { before.version() } else { self.store(after) } }
    }
}

/// Whether the API server accepts the action on the object in its current state: a bound pod cannot be bound, nor become unscheduled.
fn is_allowed(action: &Action, object: &Object) -> bool {
    let Object::Pod(pod) = object else { return true };
    match action {
        Action::Bind { .. } => pod.node_name.is_none() && pod.metadata.deletion_timestamp.is_none(),
        Action::SetCondition { condition, .. } => condition.type_ != "PodScheduled" || pod.node_name.is_none(),
        _ => true,
    }
}

//! A virtual API server: objects with versions, requests with preconditions, and a record of what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_loader::time::time;
use reprieve_scheduler::action::{Action, Target};
use reprieve_scheduler::effects::{apply, apply_to_pod, terminate};
use reprieve_scheduler::event::{ActionResult, Event};

/// The objects, and what watchers have to be told.
#[derive(Default)]
pub struct Api {
    objects: BTreeMap<ObjectKey, Object>,
    /// By the uid of an owner: what it owns.
    owned: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The version of the last change.
    pub version: u64,
    uids: u64,
    changes: Vec<Event>,
}

impl Api {
    /// What changed since this was last asked.
    pub fn take_changes(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.changes)
    }

    /// All objects of a kind, as a list request gives them.
    pub fn list(&self, kind: Kind) -> Event {
        let objects = self.of_kind(kind).cloned().collect();
        Event::Listed { kind, objects, version: self.version }
    }

    /// An object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    /// A pod.
    pub fn pod(&self, name: &NamespacedName) -> Option<&Arc<Pod>> {
        match self.objects.get(&ObjectKey::new(Kind::Pod, name.clone()))? {
            Object::Pod(pod) => Some(pod),
            _ => None,
        }
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let from = ObjectKey::new(kind, NamespacedName { namespace: String::new(), name: String::new() });
        self.objects.range(from..).map(|(_, object)| object).take_while(move |object| object.kind() == kind)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// What the object of this uid owns.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.of_kind(Kind::Pod).filter_map(|object| match object {
            Object::Pod(pod) => Some(pod),
            _ => None,
        })
    }

    /// Creates an object, with a uid and a time of its own.
    pub fn create(&mut self, mut object: Object, now: Timestamp) {
        self.uids += 1;
        let uid = format!("{:08}", self.uids);
        let metadata = object.metadata_mut();
        metadata.uid = Some(uid);
        metadata.creation_timestamp = time(now).map(Time);
        self.store(object);
    }

    /// Changes a pod, if it is there.
    pub fn change(&mut self, name: &NamespacedName, change: impl FnOnce(&mut Pod)) -> Option<u64> {
        let key = ObjectKey::new(Kind::Pod, name.clone());
        let Object::Pod(pod) = self.objects.get(&key)?.clone() else {
            return None;
        };
        let mut pod = Pod::clone(&pod);
        change(&mut pod);
        Some(self.store(Object::from(pod)))
    }

    /// Puts an object in the place of what has its name.
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

    /// Removes an object.
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

    /// Deletes a pod with its grace; one that runs nowhere goes at once.
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
        self.change(name, |pod| terminate(pod, now)).expect("it is there")
    }

    /// Carries out a request.
    pub fn carry_out(&mut self, action: &Action, now: Timestamp) -> ActionResult {
        match action {
            Action::Bind { pod, .. } => self.request(pod, false, |pod| {
                let allowed = pod.node_name.is_none() && pod.metadata.deletion_timestamp.is_none();
                allowed && apply_to_pod(action, pod, now)
            }),
            Action::SetCondition { kind: Kind::Pod, object, condition } => self.request(object, false, |pod| {
                let allowed = condition.type_ != "PodScheduled" || pod.node_name.is_none();
                allowed && apply_to_pod(action, pod, now)
            }),
            Action::Nominate { pod, .. }
            | Action::Mark { pod, .. }
            | Action::Unmark { pod }
            | Action::SoftEvict { pod, .. } => self.request(pod, false, |pod| apply_to_pod(action, pod, now)),
            Action::Evict { pod } => match self.request(pod, true, |_| true) {
                ActionResult::Ok { .. } => ActionResult::Ok { version: self.delete(&pod.name, now) },
                refused => refused,
            },
            Action::SetCondition { .. } => self.change_other(action, false, now),
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
            Action::SetQuotaPending { .. }
            | Action::Admit { .. }
            | Action::EvictWorkload { .. }
            | Action::RequeueWorkload { .. }
            | Action::FinishWorkload { .. }
            | Action::StartJob { .. }
            | Action::SuspendJob { .. }
            | Action::RestoreJob { .. } => self.change_other(action, true, now),
            Action::EmitEvent { .. } | Action::Relist { .. } | Action::WakeAt { .. } => ActionResult::Ok { version: 0 },
        }
    }

    /// A request about an object other than a pod, which must be the one that is meant; `exact`: in the very version.
    fn change_other(&mut self, action: &Action, exact: bool, now: Timestamp) -> ActionResult {
        let Some((kind, target)) = action.changes() else { return ActionResult::NotFound };
        let known = self.objects.get(&ObjectKey::new(kind, target.name.clone()));
        let Some(mut object) = known.filter(|object| object.uid() == target.uid).cloned() else {
            return ActionResult::NotFound;
        };
        if exact && object.version() != target.version {
            return ActionResult::Conflict;
        }
        match apply(action, &mut object, now) {
            true => ActionResult::Ok { version: self.store(object) },
            false => ActionResult::Conflict,
        }
    }

    /// A request about a pod that must be the one that is meant; `exact`: in the very version. What leaves it as it is makes no version.
    fn request(&mut self, target: &Target, exact: bool, change: impl FnOnce(&mut Pod) -> bool) -> ActionResult {
        let known = self.pod(&target.name).map(|pod| (Pod::clone(pod), Object::Pod(Arc::clone(pod))));
        let Some((mut pod, before)) = known.filter(|(_, before)| before.uid() == target.uid) else {
            return ActionResult::NotFound;
        };
        if (exact && before.version() != target.version) || !change(&mut pod) {
            return ActionResult::Conflict;
        }
        let after = Object::from(pod);
        ActionResult::Ok { version: if after == before { before.version() } else { self.store(after) } }
    }
}

//! Keeps the gangs that owners form up to date, in whichever order the owners and the pods arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::Policy;
use reprieve_engine::snapshot::Group;

use super::SnapshotCache;
use crate::owner_gangs::{OwnerLinks, controller_of};

/// The owners, and the objects below each of them.
pub(super) struct OwnerIndex {
    links: OwnerLinks,
    /// By namespace and uid of a controller: the objects that name it.
    owned: BTreeMap<(String, String), BTreeSet<ObjectKey>>,
    /// The pods that changed their gang because an owner changed, with their state before.
    regrouped: Vec<(Arc<Pod>, NamespacedName)>,
}

impl OwnerIndex {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { links: OwnerLinks::new(policy), owned: BTreeMap::new(), regrouped: Vec::new() }
    }

    /// Notes the controller of an object, or forgets it.
    fn set_controller(&mut self, key: &ObjectKey, before: Option<&str>, after: Option<&str>) {
        if before == after {
            return;
        }
        let of = |uid: &str| (key.name.namespace.clone(), uid.to_owned());
        if let Some(uid) = before.map(of)
            && let Some(owned) = self.owned.get_mut(&uid)
        {
            owned.remove(key);
            if owned.is_empty() {
                self.owned.remove(&uid);
            }
        }
        if let Some(uid) = after {
            self.owned.entry(of(uid)).or_default().insert(key.clone());
        }
    }

    /// Returns the pods in whose chains of controllers an object with one of these uids may be.
    fn pods_below<'u>(&self, namespace: &str, uids: impl Iterator<Item = &'u str>) -> BTreeSet<NamespacedName> {
        let mut pending: Vec<String> = uids.map(str::to_owned).collect();
        let (mut seen, mut pods) = (BTreeSet::new(), BTreeSet::new());
        while let Some(uid) = pending.pop() {
            if !seen.insert(uid.clone()) {
                continue;
            }
            for key in self.owned.get(&(namespace.to_owned(), uid)).into_iter().flatten() {
                if key.kind == Kind::Pod {
                    pods.insert(key.name.clone());
                }
                pending.extend(self.links.uid(key).map(str::to_owned));
            }
        }
        pods
    }
}

fn controller_uid(metadata: &ObjectMeta) -> Option<String> {
    controller_of(metadata).map(|controller| controller.uid)
}

impl SnapshotCache {
    /// Returns a pod with the gang that its owners form.
    pub fn with_gang(&self, pod: Arc<Pod>) -> Arc<Pod> {
        let gang = self.owners.links.gang_of(&pod);
        if gang == pod.owner_gang {
            return pod;
        }
        let mut changed = Arc::unwrap_or_clone(pod);
        changed.owner_gang = gang;
        Arc::new(changed)
    }

    /// Returns the pods whose gang changed since the last call because an owner changed, each with its state before.
    pub fn take_regrouped(&mut self) -> Vec<(Arc<Pod>, NamespacedName)> {
        std::mem::take(&mut self.owners.regrouped)
    }

    /// Notes the state of an object that can be an owner, `None` if it is gone, and assigns the pods below it to their gangs.
    pub(super) fn update_owner(&mut self, key: &ObjectKey, object: Option<&Object>) {
        let after = object.and_then(|object| self.owners.links.link(object));
        let before = self.owners.links.replace(key, after.clone());
        if before == after {
            return;
        }
        if key.kind != Kind::Pod {
            let controller = |link: Option<&crate::owner_gangs::Link>| {
                link.and_then(|link| link.controller.as_ref()).map(|controller| controller.uid.clone())
            };
            let (before, after) = (controller(before.as_ref()), controller(after.as_ref()));
            self.owners.set_controller(key, before.as_deref(), after.as_deref());
        }
        let uids = before.iter().chain(&after).map(|link| link.uid.as_str());
        for name in self.owners.pods_below(&key.name.namespace, uids) {
            let Some(known) = self.pods.get(&name).map(Arc::clone) else { continue };
            let pod = self.with_gang(Arc::clone(&known));
            if pod.owner_gang != known.owner_gang {
                self.owners.regrouped.push((known, name));
                self.upsert_pod(pod);
            }
        }
    }

    /// Notes the controller of a pod, and the pod itself as the controller of others.
    pub(super) fn update_pod_owner(&mut self, name: &NamespacedName, before: Option<&Pod>, after: Option<&Arc<Pod>>) {
        let key = ObjectKey::new(Kind::Pod, name.clone());
        let before = before.and_then(|pod| controller_uid(&pod.metadata));
        let uid = after.and_then(|pod| controller_uid(&pod.metadata));
        self.owners.set_controller(&key, before.as_deref(), uid.as_deref());
        self.update_owner(&key, after.map(|pod| Object::Pod(Arc::clone(pod))).as_ref());
    }

    /// Adds the gang that an owner forms, when its first pod arrives.
    pub(super) fn add_owner_gang(&mut self, name: NamespacedName) {
        let id = self.tables.loaded.snapshot.add_group(Group::of_owner());
        self.tables.builder.groups.insert(name.clone(), id);
        self.tables.loaded.names.groups.names.push(name.clone());
        self.tables.loaded.names.groups.ids.insert(name, id);
    }
}

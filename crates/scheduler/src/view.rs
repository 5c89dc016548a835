//! The cluster as the scheduler sees it: the objects as the API has them, and what the actions in flight will make of them.
//!
//! ```text
//! observed objects + assumed effects ──▶ objects ──▶ snapshot
//! ```
//!
//! The view sends nothing and wakes no unit: it returns what changed.

mod assumed;
mod pod_state;
mod room;
mod sync;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_api::source::InputError;
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::policy::Policy;
use reprieve_engine::{NodeId, PodId};
use reprieve_loader::build::Loaded;
use reprieve_loader::cache::SnapshotCache;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{ActionId, Target};
use crate::effects::{is_true, unmark};
use crate::test_bugs::{Bug, Bugs};
use assumed::Assumed;
pub(crate) use pod_state::{SCHEDULED, condition, needs_place, preemptor_of};
use pod_state::{is_evicted, is_finished, says_otherwise};
pub(crate) use room::RoomChange;
use sync::SyncState;
use versions::SeenVersions;

/// The cluster as one scheduler sees it.
pub(crate) struct ClusterView {
    /// The scheduler that pods name.
    scheduler: String,
    policy: Policy,
    /// The cluster as it will be when all actions in flight have succeeded.
    pub live: SnapshotCache,
    /// The pods as the API has them.
    pods: BTreeMap<NamespacedName, Arc<Pod>>,
    /// The workloads and Jobs as the API has them.
    others: BTreeMap<ObjectKey, Object>,
    pub versions: SeenVersions,
    /// What the actions that were sent will change.
    pub assumed: Assumed,
    /// Objects that are read again, because the outcome of an action on them is not known.
    pub unsettled: BTreeSet<ObjectKey>,
    pub sync: SyncState,
    /// Counts changes of the cluster.
    pub generation: u64,
}

/// A change of a pod, or of what is assumed of it.
pub(crate) struct PodUpdate {
    pub before: Option<Arc<Pod>>,
    pub after: Option<Arc<Pod>>,
    /// How the room on nodes changed, if it did.
    pub room: Option<RoomChange>,
    /// Why the pod is left out of the snapshot.
    pub refused: Option<InputError>,
}

/// A change of a workload or a Job, or of what is assumed of it.
pub(crate) struct ObjectUpdate {
    pub before: Option<Object>,
    pub after: Option<Object>,
    pub refused: Option<InputError>,
}

impl ClusterView {
    /// The view of a scheduler that knows of nothing yet.
    pub fn new(scheduler: &str, policy: Policy) -> Self {
        Self {
            scheduler: scheduler.to_owned(),
            policy,
            live: SnapshotCache::default().for_scheduler(scheduler, &policy),
            pods: BTreeMap::new(),
            others: BTreeMap::new(),
            versions: SeenVersions::default(),
            assumed: Assumed::default(),
            unsettled: BTreeSet::new(),
            sync: SyncState::new(),
            generation: 0,
        }
    }

    /// The policy that is decided by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether workloads wait for quota.
    pub fn is_kueue(&self) -> bool {
        matches!(self.policy, Policy::Kueue(_))
    }

    /// The snapshot and its names.
    pub fn loaded(&self) -> &Loaded {
        self.live.loaded()
    }

    /// A pod as it will be.
    pub fn pod(&self, name: &NamespacedName) -> Option<&Pod> {
        self.live.pod(name).map(AsRef::as_ref)
    }

    /// A pod as the API has it.
    pub fn observed_pod(&self, name: &NamespacedName) -> Option<&Pod> {
        self.pods.get(name).map(AsRef::as_ref)
    }

    /// A workload or a Job as the API has it.
    pub fn observed(&self, key: &ObjectKey) -> Option<&Object> {
        self.others.get(key)
    }

    /// An object that the scheduler changes, as the API has it.
    pub fn known(&self, kind: Kind, name: &NamespacedName) -> Option<Object> {
        match kind {
            Kind::Pod => self.pods.get(name).map(|pod| Object::Pod(Arc::clone(pod))),
            Kind::PodGroup => self.live.get(&ObjectKey::new(kind, name.clone())).cloned(),
            _ => self.others.get(&ObjectKey::new(kind, name.clone())).cloned(),
        }
    }

    /// What an action on an object says of it; `None` while the object is read again.
    pub fn target(&self, key: &ObjectKey) -> Option<Target> {
        if self.unsettled.contains(key) { None } else { self.target_as_known(key) }
    }

    /// What an action says of an object whose version does not matter.
    pub fn target_as_known(&self, key: &ObjectKey) -> Option<Target> {
        let object = self.known(key.kind, &key.name)?;
        let version = object.version().max(self.assumed.version(key));
        Some(Target { name: key.name.clone(), uid: object.uid().to_owned(), version })
    }

    /// A pod that was not evicted, as a target.
    pub fn staying(&self, pod: &NamespacedName) -> Option<Target> {
        if self.is_leaving(pod) { None } else { self.target(&ObjectKey::new(Kind::Pod, pod.clone())) }
    }

    /// Whether the pod is gone or was evicted.
    pub fn is_leaving(&self, pod: &NamespacedName) -> bool {
        self.pod(pod).is_none_or(is_evicted)
    }

    /// Whether a pod names this scheduler.
    pub fn places(&self, pod: &Pod) -> bool {
        pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_ref()) == Some(&self.scheduler)
    }

    /// The unit of a pod that this scheduler is to place.
    pub fn unit_of(&self, pod: Option<&Pod>) -> Option<UnitRef> {
        let pod = pod?;
        self.places(pod).then(|| UnitRef::of(pod, &self.policy))
    }

    /// The pods of a unit that this scheduler is to place, by name.
    pub fn members(&self, unit: &UnitRef) -> Vec<NamespacedName> {
        let is_ours = |name: &&NamespacedName| self.pod(name).is_some_and(|pod| self.places(pod));
        match unit {
            UnitRef::Pod(name) => vec![name.clone()],
            UnitRef::Group(_) | UnitRef::Job(_) => {
                self.live.members(&unit.key()).iter().filter(is_ours).cloned().collect()
            }
            UnitRef::Workload(_) | UnitRef::BatchJob(_) => Vec::new(),
        }
    }

    /// The unit as the engine knows it, and its pods. `None` while it lacks pods, or those of an earlier start are leaving.
    pub fn preemptor(&self, unit: &UnitRef) -> Option<(PreemptorId, Vec<PodId>)> {
        let Loaded { snapshot, names, .. } = self.loaded();
        let stays = |pod: &PodId| {
            let pod = snapshot.pod(*pod);
            pod.terminating.is_none() || !pod.takes_part()
        };
        match unit {
            UnitRef::Pod(name) => {
                let id = names.pod_id(name)?;
                Some((PreemptorId::Pod(id), vec![id]))
            }
            UnitRef::Group(name) => {
                let id = names.group_id(name)?;
                let group = snapshot.group(id);
                // Whether enough of them take part is for the decision to say: it names those that do not.
                let complete = group.members.len() >= group.min_count.max(1) && group.members.iter().all(stays);
                let members = group.members.iter().copied().filter(|&pod| snapshot.pod(pod).takes_part());
                complete.then(|| (PreemptorId::Group(id), members.collect()))
            }
            UnitRef::Job(_) => {
                self.live.get(&unit.key())?;
                let pending = self.members(unit).into_iter().filter_map(|name| names.pod_id(&name));
                let is_placed_with_it = |pod: &PodId| {
                    let pod = snapshot.pod(*pod);
                    pod.node.is_none() && pod.takes_part()
                };
                let members: Vec<PodId> = pending.filter(is_placed_with_it).collect();
                let first = *members.first()?;
                let job = snapshot.job(snapshot.pod(first).job?);
                let complete = job.members.len() >= job.min_member && job.members.iter().all(stays);
                complete.then_some((PreemptorId::Pod(first), members))
            }
            UnitRef::Workload(_) | UnitRef::BatchJob(_) => None,
        }
    }

    /// A placement by name.
    pub fn named(&self, placement: &[(PodId, NodeId)]) -> Vec<(NamespacedName, String)> {
        let names = &self.loaded().names;
        placement.iter().map(|&(pod, node)| (names.pod(pod).clone(), names.node(node).to_owned())).collect()
    }

    /// The name of the queue of a unit.
    pub fn queue_of(&self, unit: &UnitRef) -> Option<String> {
        let loaded = self.loaded();
        match unit {
            UnitRef::Pod(_) | UnitRef::Group(_) | UnitRef::Job(_) => {
                let pod = self.members(unit).first().and_then(|pod| loaded.names.pod_id(pod))?;
                loaded.snapshot.pod(pod).queue.map(|queue| loaded.names.queue(queue).to_owned())
            }
            UnitRef::Workload(_) => match self.live.get(&unit.key())? {
                Object::KueueWorkload(workload) => Some(workload.spec.queue_name.clone()),
                _ => None,
            },
            UnitRef::BatchJob(_) => None,
        }
    }

    /// Whether it is not known if a pod was bound, or what became of it otherwise.
    pub fn is_unknown(&self, pod: &NamespacedName) -> bool {
        self.unsettled.contains(&ObjectKey::new(Kind::Pod, pod.clone())) || self.assumed.is_binding(pod)
    }

    /// Whether nothing is assumed of an object, and it is not read again.
    pub fn is_seen(&self, key: &ObjectKey) -> bool {
        self.assumed.is_seen(key) && !self.unsettled.contains(key)
    }

    /// Whether nothing is assumed of any object, but for conditions, and no pod is read again.
    pub fn is_quiet(&self) -> bool {
        self.assumed.is_empty() && !self.unsettled.iter().any(|key| key.kind == Kind::Pod)
    }

    /// Puts an object into the snapshot; an error says why it is left out.
    pub fn put(&mut self, object: Object) -> Option<InputError> {
        self.live.upsert(object).err()
    }

    /// A pod, a workload, a Job or a PodGroup was seen.
    pub fn seen(&mut self, object: &Object) {
        let key = object.key();
        self.assumed.seen(&key, object.uid(), object.version());
        match object {
            Object::Pod(pod) => {
                self.pods.insert(key.name, Arc::clone(pod));
            }
            Object::KueueWorkload(_) | Object::Job(_) => {
                self.others.insert(key, object.clone());
            }
            _ => {}
        }
    }

    /// An object is gone; the workload or Job that it was.
    pub fn gone(&mut self, key: &ObjectKey) -> Option<Object> {
        self.assumed.gone(key);
        match key.kind {
            Kind::Pod => {
                self.pods.remove(&key.name);
                None
            }
            _ => self.others.remove(key),
        }
    }

    /// An action worked, and shows in this version of the object.
    pub fn worked(&mut self, id: ActionId, key: &ObjectKey, version: u64) {
        self.assumed.worked(id, key, version);
        if let Some(known) = self.known(key.kind, &key.name) {
            self.assumed.seen(key, known.uid(), known.version());
        }
    }

    /// A pod, or what is assumed of it, may have changed. `None` where that makes no difference to any unit.
    pub fn update_pod(&mut self, name: &NamespacedName, bugs: Bugs) -> Option<PodUpdate> {
        let before = self.live.pod(name).cloned();
        let mut after = self.pods.get(name).map(|pod| self.assumed.apply(name, pod)).filter(|pod| !is_finished(pod));
        if let Some(pod) = after.as_mut().filter(|pod| pod.metadata.deletion_timestamp.is_some())
            && bugs.has(Bug::SecondRound)
        {
            unmark(Arc::make_mut(pod));
        }
        if before == after {
            return None;
        }
        if let Some(pod) = after.as_ref().filter(|after| says_otherwise(before.as_deref(), Some(after))) {
            self.live.replace_unread_fields(name, Arc::clone(pod));
            return None;
        }
        let room = RoomChange::change(self.loaded(), name, before.as_deref(), after.as_deref());
        let refused = match &after {
            Some(pod) => self.put(Object::Pod(Arc::clone(pod))),
            None => {
                self.live.remove(&ObjectKey::new(Kind::Pod, name.clone()));
                None
            }
        };
        self.generation += 1;
        Some(PodUpdate { before, after, room, refused })
    }

    /// A workload or a Job, or what is assumed of it, may have changed.
    pub fn update_object(&mut self, key: &ObjectKey, bugs: Bugs) -> ObjectUpdate {
        let before = self.live.get(key).cloned();
        let mut after = self.others.get(key).map(|object| self.assumed.apply_to(key, object));
        if let Some(Object::KueueWorkload(workload)) = &mut after
            && bugs.has(Bug::EarlyQuota)
            && let Some(status) = &mut Arc::make_mut(workload).status
            && is_true(&status.conditions, "Evicted")
        {
            status.admission = None;
        }
        let refused = match &after {
            Some(object) if before.as_ref() != Some(object) => self.put(object.clone()),
            Some(_) => None,
            None => {
                self.live.remove(key);
                None
            }
        };
        ObjectUpdate { before, after, refused }
    }
}

#[cfg(test)]
mod tests {
    use reprieve_engine::Timestamp;
    use reprieve_engine::policy::kubernetes::Kubernetes;
    use serde_json::json;

    use super::*;
    use crate::action::Action;

    fn pod(version: u64) -> Object {
        let pod = json!({
            "metadata": {"name": "a", "namespace": "default", "uid": "a", "resourceVersion": version.to_string()},
            "spec": {"schedulerName": "reprieve", "containers": []},
        });
        Object::from(serde_json::from_value::<Pod>(pod).expect("a pod"))
    }

    #[test]
    fn an_action_is_assumed_to_work_until_it_fails() {
        let mut view = ClusterView::new("reprieve", Policy::Kubernetes(Kubernetes::default()));
        let (name, bugs) = (NamespacedName::new("default", "a"), Bugs::default());
        let key = ObjectKey::new(Kind::Pod, name.clone());
        view.seen(&pod(1));
        assert!(view.update_pod(&name, bugs).is_some_and(|update| update.before.is_none() && update.after.is_some()));
        assert!(view.update_pod(&name, bugs).is_none(), "nothing changed");

        let target = view.target(&key).expect("it is known");
        view.assumed.add(ActionId(1), &Action::Evict { pod: target }, Timestamp(0));
        assert!(view.update_pod(&name, bugs).is_some());
        assert!(view.is_leaving(&name) && !view.is_quiet());

        view.assumed.failed(ActionId(1), &key);
        assert!(view.update_pod(&name, bugs).is_some());
        assert!(!view.is_leaving(&name) && view.is_quiet());

        view.unsettled.insert(key.clone());
        assert_eq!(view.target(&key), None, "it is read again");
        view.unsettled.remove(&key);
        assert!(view.target(&key).is_some());
    }
}

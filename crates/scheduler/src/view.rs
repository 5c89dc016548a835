//! The cluster as the scheduler sees it: the objects as the API last reported them, with the effects of the actions in flight.
//!
//! ```text
//! observed objects + assumed effects ──▶ objects ──▶ snapshot
//! ```
//!
//! The view neither sends actions nor queues units: it returns what changed.

mod assumed;
mod pod_state;
mod room;
mod shown;
mod sync;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::fit::PreemptorId;
use reprieve_engine::{NodeId, PodId, Policy};
use reprieve_loader::Loaded;
use reprieve_loader::cache::SnapshotCache;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{ActionId, Target};
use crate::effects::{is_true, unmark};
use crate::test_bugs::{Bug, Bugs};
use assumed::Assumed;
pub(crate) use pod_state::{SCHEDULED, condition, is_evicted, needs_place, preemptor_of};
use pod_state::{differs_only_in_wait_reason, is_finished};
pub(crate) use room::RoomChange;
use sync::SyncState;
use versions::SeenVersions;

pub(crate) struct ClusterView {
    /// The `schedulerName` of the pods to schedule.
    scheduler: String,
    policy: Policy,
    /// The cluster as it will be when all actions in flight have succeeded.
    pub live: SnapshotCache,
    /// The pods as the API last reported them.
    pods: BTreeMap<NamespacedName, Arc<Pod>>,
    /// The workloads and Jobs as the API last reported them.
    workloads_and_jobs: BTreeMap<ObjectKey, Object>,
    pub versions: SeenVersions,
    /// The effects of the actions that were sent and not seen yet.
    pub assumed: Assumed,
    /// The objects that are being read again, because the outcome of an action on them is unknown.
    pub unconfirmed: BTreeSet<ObjectKey>,
    pub sync: SyncState,
    /// Incremented by each change of the cluster.
    pub generation: u64,
    /// Whether victims in other namespaces show the name of their preemptor.
    pub names_preemptors: bool,
}

/// A change of a pod, reported by the API or assumed.
pub(crate) struct PodUpdate {
    pub before: Option<Arc<Pod>>,
    pub after: Option<Arc<Pod>>,
    /// How the room on nodes changed, if it did.
    pub room: Option<RoomChange>,
}

/// A change of a workload or Job, reported by the API or assumed.
pub(crate) struct ObjectUpdate {
    pub before: Option<Object>,
    pub after: Option<Object>,
}

impl ClusterView {
    pub fn new(scheduler: &str, policy: Policy) -> Self {
        Self {
            scheduler: scheduler.to_owned(),
            policy,
            live: SnapshotCache::default().for_scheduler(scheduler, &policy),
            pods: BTreeMap::new(),
            workloads_and_jobs: BTreeMap::new(),
            versions: SeenVersions::default(),
            assumed: Assumed::default(),
            unconfirmed: BTreeSet::new(),
            sync: SyncState::new(),
            generation: 0,
            names_preemptors: matches!(policy, Policy::Koordinator(_)),
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn is_kueue(&self) -> bool {
        matches!(self.policy, Policy::Kueue(_))
    }

    pub fn loaded(&self) -> &Loaded {
        self.live.loaded()
    }

    /// A pod with the effects of the actions in flight.
    pub fn pod(&self, name: &NamespacedName) -> Option<&Pod> {
        self.live.pod(name).map(AsRef::as_ref)
    }

    /// A pod as the API last reported it.
    pub fn observed_pod(&self, name: &NamespacedName) -> Option<&Pod> {
        self.pods.get(name).map(AsRef::as_ref)
    }

    /// A workload or Job as the API last reported it.
    pub fn observed(&self, key: &ObjectKey) -> Option<&Object> {
        self.workloads_and_jobs.get(key)
    }

    /// A pod, PodGroup, workload or Job as the API last reported it.
    pub fn observed_object(&self, kind: Kind, name: &NamespacedName) -> Option<Object> {
        match kind {
            Kind::Pod => self.pods.get(name).map(|pod| Object::Pod(Arc::clone(pod))),
            Kind::PodGroup => self.live.get(&ObjectKey::new(kind, name.clone())).cloned(),
            _ => self.workloads_and_jobs.get(&ObjectKey::new(kind, name.clone())).cloned(),
        }
    }

    /// The target of an action on an object; `None` while the object is being read again.
    pub fn target(&self, key: &ObjectKey) -> Option<Target> {
        if self.unconfirmed.contains(key) { None } else { self.target_as_known(key) }
    }

    /// The target of an action that does not depend on the version of the object.
    pub fn target_as_known(&self, key: &ObjectKey) -> Option<Target> {
        let object = self.observed_object(key.kind, &key.name)?;
        let version = object.version().max(self.assumed.version(key));
        Some(Target { name: key.name.clone(), uid: object.uid().to_owned(), version })
    }

    /// Whether the pod is evicted or gone.
    pub fn is_evicted(&self, pod: &NamespacedName) -> bool {
        self.pod(pod).is_none_or(is_evicted)
    }

    /// Whether the `schedulerName` of a pod is this scheduler.
    pub fn is_ours(&self, pod: &Pod) -> bool {
        pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_ref()) == Some(&self.scheduler)
    }

    /// The unit of a pod of this scheduler.
    pub fn unit_of(&self, pod: Option<&Pod>) -> Option<UnitRef> {
        let pod = pod?;
        self.is_ours(pod).then(|| UnitRef::of(pod, &self.policy))
    }

    /// The pods of a unit that name this scheduler.
    pub fn members(&self, unit: &UnitRef) -> Vec<NamespacedName> {
        let is_ours = |name: &&NamespacedName| self.pod(name).is_some_and(|pod| self.is_ours(pod));
        match unit {
            UnitRef::Pod(name) => vec![name.clone()],
            UnitRef::Group(_) | UnitRef::Job(_) => {
                self.live.members(&unit.key()).iter().filter(is_ours).cloned().collect()
            }
            UnitRef::Workload(_) | UnitRef::BatchJob(_) => Vec::new(),
        }
    }

    /// The unit as a preemptor of the engine, and its pods; `None` while pods are missing, or while pods of an earlier start of a job are
    /// terminating.
    pub fn preemptor(&self, unit: &UnitRef) -> Option<(PreemptorId, Vec<PodId>)> {
        let Loaded { snapshot, names, .. } = self.loaded();
        let is_current = |pod: &PodId| {
            let pod = snapshot.pod(*pod);
            pod.terminating.is_none() || !pod.takes_part()
        };
        match unit {
            UnitRef::Pod(name) => {
                let id = names.pod_id(name)?;
                Some((PreemptorId::Pod(id), vec![id]))
            }
            UnitRef::Group(name) => {
                let Some(id) = names.group_id(name) else {
                    // The decision about a single member says that its group does not exist.
                    let mut members = self.members(unit).into_iter().filter_map(|pod| names.pod_id(&pod));
                    let member = members.find(|&pod| snapshot.pod(pod).node.is_none())?;
                    return Some((PreemptorId::Pod(member), vec![member]));
                };
                let group = snapshot.group(id);
                let current = || group.members.iter().copied().filter(|&pod| snapshot.pod(pod).terminating.is_none());
                // The decision checks whether enough pods take part, and names those that do not.
                let complete = current().count() >= group.min_count.max(1);
                let members = current().filter(|&pod| snapshot.pod(pod).takes_part());
                complete.then(|| (PreemptorId::Group(id), members.collect()))
            }
            UnitRef::Job(_) => {
                let members = self.members(unit);
                let is_from_owner = |name: &NamespacedName| self.pod(name).is_some_and(|pod| pod.owner_gang.is_some());
                if self.live.get(&unit.key()).is_none() && !members.first().is_some_and(is_from_owner) {
                    return None;
                }
                let members = members.into_iter().filter_map(|name| names.pod_id(&name));
                let is_pending = |pod: &PodId| {
                    let pod = snapshot.pod(*pod);
                    pod.node.is_none() && pod.takes_part()
                };
                let members: Vec<PodId> = members.filter(is_pending).collect();
                let first = *members.first()?;
                let job = snapshot.job(snapshot.pod(first).job?);
                let complete = job.members.len() >= job.min_member && job.members.iter().all(is_current);
                complete.then_some((PreemptorId::Pod(first), members))
            }
            UnitRef::Workload(_) | UnitRef::BatchJob(_) => None,
        }
    }

    /// A placement with names instead of ids.
    pub fn named(&self, placement: &[(PodId, NodeId)]) -> Vec<(NamespacedName, String)> {
        let names = &self.loaded().names;
        placement.iter().map(|&(pod, node)| (names.pod(pod).clone(), names.node(node).to_owned())).collect()
    }

    /// The name of a unit's queue: a queue of YuniKorn's configuration, an ElasticQuota or a ClusterQueue. Empty if the unit names none,
    /// `other` if no administrator defined the queue.
    pub fn configured_queue_of(&self, unit: &UnitRef) -> String {
        const OTHER: &str = "other";
        let loaded = self.loaded();
        match unit {
            UnitRef::Pod(_) | UnitRef::Group(_) | UnitRef::Job(_) => {
                let pod = self.members(unit).first().and_then(|pod| loaded.names.pod_id(pod));
                match pod.and_then(|pod| loaded.snapshot.pod(pod).queue) {
                    Some(queue) if self.live.is_configured_queue(queue) => loaded.names.queue(queue).to_owned(),
                    Some(_) => OTHER.to_owned(),
                    None => String::new(),
                }
            }
            UnitRef::Workload(_) => self.cluster_queue_of(unit).unwrap_or_else(|| OTHER.to_owned()),
            UnitRef::BatchJob(_) => String::new(),
        }
    }

    /// The ClusterQueue behind the LocalQueue that a workload names.
    fn cluster_queue_of(&self, unit: &UnitRef) -> Option<String> {
        let key = unit.key();
        let Object::KueueWorkload(workload) = self.live.get(&key)? else { return None };
        let local = NamespacedName { namespace: key.name.namespace, name: workload.spec.queue_name.clone() };
        let Object::LocalQueue(local) = self.live.get(&ObjectKey::new(Kind::LocalQueue, local))? else { return None };
        let cluster = ObjectKey::new(Kind::ClusterQueue, NamespacedName::new("", &local.spec.cluster_queue));
        self.live.get(&cluster).map(|_| cluster.name.name)
    }

    /// Whether the outcome of an action on the pod is unknown.
    pub fn is_unknown(&self, pod: &NamespacedName) -> bool {
        self.unconfirmed.contains(&ObjectKey::new(Kind::Pod, pod.clone())) || self.assumed.is_binding(pod)
    }

    /// Whether the API has reported the effects of all actions on an object.
    pub fn is_seen(&self, key: &ObjectKey) -> bool {
        self.assumed.is_seen(key) && !self.unconfirmed.contains(key)
    }

    /// Whether the API has reported the effects of all actions, except for conditions, and no pod is being read again.
    pub fn is_quiet(&self) -> bool {
        self.assumed.is_empty() && !self.unconfirmed.iter().any(|key| key.kind == Kind::Pod)
    }

    /// Puts an object into the snapshot.
    pub fn put(&mut self, object: Object) {
        self.live.upsert(object);
    }

    /// Stores an object that the API reported, and drops the assumptions that it confirms.
    pub fn seen(&mut self, object: &Object) {
        let key = object.key();
        self.assumed.seen(&key, object.uid(), object.version());
        match object {
            Object::Pod(pod) => {
                self.pods.insert(key.name, Arc::clone(pod));
            }
            Object::KueueWorkload(_) | Object::Job(_) => {
                self.workloads_and_jobs.insert(key, object.clone());
            }
            _ => {}
        }
    }

    /// Removes a deleted object.
    pub fn deleted(&mut self, key: &ObjectKey) {
        self.assumed.deleted(key);
        match key.kind {
            Kind::Pod => _ = self.pods.remove(&key.name),
            _ => _ = self.workloads_and_jobs.remove(key),
        }
    }

    /// Notes that an action succeeded and produced this version of the object.
    pub fn succeeded(&mut self, id: ActionId, key: &ObjectKey, version: u64) {
        self.assumed.succeeded(id, key, version);
        if let Some(known) = self.observed_object(key.kind, &key.name) {
            self.assumed.seen(key, known.uid(), known.version());
        }
    }

    /// Updates the snapshot after a possible change of a pod; `None` if the change does not matter to any unit.
    pub fn update_pod(&mut self, name: &NamespacedName, bugs: Bugs) -> Option<PodUpdate> {
        let before = self.live.pod(name).cloned();
        let assumed = self.pods.get(name).map(|pod| self.assumed.apply(name, pod)).filter(|pod| !is_finished(pod));
        let mut after = assumed.map(|pod| self.live.with_gang(pod));
        if let Some(pod) = after.as_mut().filter(|pod| pod.metadata.deletion_timestamp.is_some())
            && bugs.has(Bug::SecondRound)
        {
            unmark(Arc::make_mut(pod));
        }
        let is_relabelled = |pod: &Arc<Pod>| {
            let before = before.as_ref().filter(|before| before.node_name.is_some());
            before.is_some_and(|before| before.metadata.labels != pod.metadata.labels)
        };
        if bugs.has(Bug::ForgottenRelabelledPod) {
            after = after.filter(|pod| !is_relabelled(pod));
        }
        if before == after {
            return None;
        }
        if let Some(pod) = after.as_ref().filter(|after| differs_only_in_wait_reason(before.as_deref(), Some(after))) {
            self.live.replace_unread_fields(name, Arc::clone(pod));
            return None;
        }
        let room = RoomChange::of(self.loaded(), name, before.as_deref(), after.as_deref());
        match &after {
            Some(pod) => self.put(Object::Pod(Arc::clone(pod))),
            None => self.live.remove(&ObjectKey::new(Kind::Pod, name.clone())),
        }
        self.generation += 1;
        Some(PodUpdate { before, after, room })
    }

    /// Updates the snapshot after a possible change of a workload or Job.
    pub fn update_object(&mut self, key: &ObjectKey, bugs: Bugs) -> ObjectUpdate {
        let before = self.live.get(key).cloned();
        let mut after = self.workloads_and_jobs.get(key).map(|object| self.assumed.apply_to(key, object));
        if let Some(Object::KueueWorkload(workload)) = &mut after
            && bugs.has(Bug::EarlyQuota)
            && let Some(status) = &mut Arc::make_mut(workload).status
            && is_true(&status.conditions, "Evicted")
        {
            status.admission = None;
        }
        match &after {
            Some(object) if before.as_ref() != Some(object) => self.put(object.clone()),
            Some(_) => {}
            None => self.live.remove(key),
        }
        ObjectUpdate { before, after }
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
    fn an_action_is_assumed_to_succeed_until_it_fails() {
        let mut view = ClusterView::new("reprieve", Policy::Kubernetes(Kubernetes::default()));
        let (name, bugs) = (NamespacedName::new("default", "a"), Bugs::default());
        let key = ObjectKey::new(Kind::Pod, name.clone());
        view.seen(&pod(1));
        assert!(view.update_pod(&name, bugs).is_some_and(|update| update.before.is_none() && update.after.is_some()));
        assert!(view.update_pod(&name, bugs).is_none(), "nothing changed");

        let target = view.target(&key).expect("it is known");
        view.assumed.add(ActionId(1), &Action::Evict { pod: target }, Timestamp(0));
        assert!(view.update_pod(&name, bugs).is_some());
        assert!(view.is_evicted(&name) && !view.is_quiet());

        view.assumed.failed(ActionId(1), &key);
        assert!(view.update_pod(&name, bugs).is_some());
        assert!(!view.is_evicted(&name) && view.is_quiet());

        view.unconfirmed.insert(key.clone());
        assert_eq!(view.target(&key), None, "it is being read again");
        view.unconfirmed.remove(&key);
        assert!(view.target(&key).is_some());
    }
}

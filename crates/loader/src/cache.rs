//! Keeps a snapshot up to date with changes of single objects. `scheduler` owns a [`SnapshotCache`].
//!
//! Pods, groups, jobs, workloads and budget counts change the tables in place. Other objects (nodes, classes, namespaces, quotas) change
//! rarely: they mark the tables stale, and the next `refresh` rebuilds them. After every change the tables are those of a cache that was
//! filled with the same objects at once: an object that cannot be read is set aside ([`crate::quarantine`]), and no change can fail.

mod owners;
mod pods;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::PlacementMode;
use reprieve_engine::snapshot::Job;
use reprieve_engine::workloads::Workload;
use reprieve_engine::{BudgetId, Policy, QueueId, WorkloadId};

use crate::build::{build, build_for};
use crate::groups::{read_pod_group, refused_priority};
use crate::names::{Numbered, QueueNames};
use crate::owner_gangs::is_link;
use crate::preemption_priority::InvalidPreemptionPriority;
use crate::quarantine::{self, Problem, Quarantine, Quarantined};
use crate::queue_settings::{LoadScope, QueueSettings};
use crate::quota::{is_finished, pod_set_names, workload_order_key};
use crate::unsupported::field_of_job;
use crate::{Loaded, SnapshotBuilder, Warning};
use owners::OwnerIndex;
use reprieve_api::koordinator::KoordinatorPodGroup;
use reprieve_api::kueue::KueueWorkload;
use reprieve_api::object_set::Unreadable;
use reprieve_api::{InputError, Kind, NamespacedName, Object, ObjectKey, ObjectSet, Pod as ApiPod, Source, Sourced};
use tables::{Tables, rank_between};

/// The tables may keep at least this number of unused shapes, groups, jobs and texts before they are rebuilt.
const MIN_UNUSED_ENTRIES: usize = 1_000;

/// A snapshot that follows changes of single objects.
pub struct SnapshotCache {
    /// The current objects other than pods.
    objects: BTreeMap<ObjectKey, Object>,
    pods: BTreeMap<NamespacedName, Arc<ApiPod>>,
    /// The objects of which only the identity is known.
    unreadable: BTreeMap<ObjectKey, Unreadable>,
    /// The pods that name a group or job.
    members: BTreeMap<ObjectKey, BTreeSet<NamespacedName>>,
    owners: OwnerIndex,
    tables: Tables,
    stale: bool,
    policy: Policy,
    scope: LoadScope,
    /// The quarantine of the last rebuild. While it is in progress, it has the object that is being read.
    quarantine: Quarantine,
    rebuilds: u64,
    /// Incremented when the list of objects that are set aside, or the warnings, change.
    quarantine_version: u64,
}

impl Default for SnapshotCache {
    fn default() -> Self {
        let policy = Policy::Kubernetes(Kubernetes::default());
        Self {
            objects: BTreeMap::new(),
            pods: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            members: BTreeMap::new(),
            owners: OwnerIndex::new(&policy),
            tables: Tables::new(build_for(&ObjectSet::default(), &policy, &LoadScope::default())),
            stale: false,
            policy,
            scope: LoadScope::default(),
            quarantine: Quarantine::unreported(),
            rebuilds: 0,
            quarantine_version: 0,
        }
    }
}

impl SnapshotCache {
    /// Sets the scheduler and its policy. Under `placement: Joint` of policy Kueue, every change rebuilds the tables.
    pub fn for_scheduler(mut self, name: &str, policy: &Policy) -> Self {
        self.policy = *policy;
        self.owners = OwnerIndex::new(policy);
        self.scope.scheduler_name = Some(name.to_owned());
        self.stale = true;
        self
    }

    /// Sets the queues of the scheduler.
    pub fn set_queues(&mut self, queues: QueueSettings) {
        self.scope.queues = queues;
        self.stale = true;
    }

    fn is_joint(&self) -> bool {
        matches!(self.policy, Policy::Kueue(kueue) if kueue.placement == PlacementMode::Joint)
    }

    /// Adds an object or replaces its state.
    pub fn upsert(&mut self, object: Object) {
        self.stale |= self.is_joint();
        let key = object.key();
        self.stale |= self.unreadable.remove(&key).is_some();
        if let Object::Pod(pod) = object {
            return self.upsert_pod(pod);
        }
        let old = self.objects.insert(key.clone(), object.clone());
        self.update_owner(&key, Some(&object));
        if self.stale || is_link(key.kind) {
            return;
        }
        if key.kind != Kind::KueueWorkload && self.is_quarantined(&key) {
            // What refers to the object is set aside too, and a change may correct all of them.
            self.stale = old.as_ref() != Some(&object);
            return;
        }
        match (&object, old.as_ref()) {
            (Object::Node(new), Some(Object::Node(old))) => self.stale = relevant_fields(new) != relevant_fields(old),
            (Object::Namespace(new), Some(Object::Namespace(old))) => {
                self.stale = new.metadata.labels != old.metadata.labels;
            }
            (Object::PodDisruptionBudget(new), Some(Object::PodDisruptionBudget(old))) if same_budget(new, old) => {
                let allowed = new.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or_default();
                match self.tables.builder.budgets.iter().position(|rule| rule.name == key.name) {
                    Some(index) => self.tables.loaded.snapshot.set_budget(BudgetId::new(index), allowed),
                    None => self.stale = true,
                }
            }
            (Object::PodGroup(new), Some(Object::PodGroup(old))) => {
                self.stale = new.spec != old.spec || new.metadata.annotations != old.metadata.annotations;
            }
            (Object::PodGroup(group), None) => self.add_group(&key, group),
            (Object::KoordinatorPodGroup(new), Some(Object::KoordinatorPodGroup(old))) => {
                self.stale = new.spec != old.spec || field_of_job(new) != field_of_job(old);
            }
            (Object::KoordinatorPodGroup(group), None) => self.add_job(&key, group),
            (Object::KueueWorkload(new), Some(Object::KueueWorkload(old))) if same_workload(new, old) => {}
            (Object::KueueWorkload(workload), old) => self.upsert_workload(&key, workload, old),
            (Object::DaemonSet(new), Some(Object::DaemonSet(old))) => {
                self.stale = (&new.spec, &new.metadata.uid) != (&old.spec, &old.metadata.uid);
            }
            (Object::Job(_), _) => {}
            (_, old) => self.stale = old != Some(&object),
        }
    }

    /// Notes an object of which only the identity can be read. A bound pod then counts as its whole node.
    pub fn upsert_unreadable(&mut self, object: Unreadable) {
        let key = object.object.clone();
        if self.unreadable.get(&key) == Some(&object) {
            return;
        }
        self.objects.remove(&key);
        self.update_owner(&key, None);
        if key.kind == Kind::Pod {
            self.forget_pod(&key.name);
        }
        self.unreadable.insert(key, object);
        self.stale = true;
    }

    /// Removes an object of which only the identity is known.
    pub fn remove_unreadable(&mut self, object: &ObjectKey) {
        self.stale |= self.unreadable.remove(object).is_some();
    }

    /// Replaces the tables by empty ones until the next refresh, because a panic has left them in an unknown state.
    pub fn discard_tables(&mut self) {
        self.tables = Tables::new(build_for(&ObjectSet::default(), &self.policy, &self.scope));
        self.stale = true;
    }

    /// Replaces a pod of which only fields changed that no decision reads.
    pub fn replace_unread_fields(&mut self, name: &NamespacedName, pod: Arc<ApiPod>) {
        if let Some(known) = self.pods.get_mut(name) {
            *known = pod;
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.stale |= self.is_joint() || self.unreadable.remove(key).is_some();
        if key.kind != Kind::Pod && key.kind != Kind::KueueWorkload {
            self.stale |= self.is_quarantined(key);
        }
        match key.kind {
            Kind::Pod => self.remove_pod(&key.name),
            Kind::Job => _ = self.objects.remove(key),
            kind if is_link(kind) => {
                self.objects.remove(key);
                self.update_owner(key, None);
            }
            Kind::PodGroup if !self.members.contains_key(key) => {
                self.objects.remove(key);
                self.tables.builder.groups.remove(&key.name);
                self.tables.loaded.names.groups.ids.remove(&key.name);
            }
            Kind::KueueWorkload => {
                let old = self.objects.remove(key);
                self.remove_workload(key, old.as_ref());
                self.set_quarantined(key, None);
            }
            Kind::KoordinatorPodGroup if !self.members.contains_key(key) => {
                self.objects.remove(key);
                self.tables.builder.jobs.remove(&key.name);
            }
            _ => self.stale |= self.objects.remove(key).is_some(),
        }
    }

    /// Notes that an object is being read, for tests of a panic.
    pub fn note_reading(&mut self, object: ObjectKey) {
        self.quarantine.reading = Some(object);
    }

    /// Returns the object at which a rebuild panicked.
    pub fn take_reading(&mut self) -> Option<ObjectKey> {
        self.quarantine.reading.take()
    }

    /// Rebuilds the tables if they are stale.
    pub fn refresh(&mut self) {
        if std::mem::replace(&mut self.stale, false) {
            self.quarantine = Quarantine::new(&self.policy);
            let (mut loaded, builder) = build(&self.all_objects(), &self.policy, &self.scope, &mut self.quarantine);
            // Objects of a cluster have no position in a file.
            loaded.quarantined.iter_mut().for_each(|entry| entry.error.source = None);
            self.tables = Tables::new((loaded, builder));
            self.rebuilds += 1;
            self.quarantine_version += 1;
        }
    }

    /// Returns the objects that are set aside, as of the last refresh with the changes in place since.
    pub fn quarantined(&self) -> &[Quarantined] {
        &self.tables.loaded.quarantined
    }

    /// Returns what is wrong with objects that are not set aside, as of the last refresh with the changes in place since.
    pub fn warnings(&self) -> &[Warning] {
        &self.tables.loaded.warnings
    }

    /// Returns a number that grows when [`Self::quarantined`] or [`Self::warnings`] may have changed.
    pub fn quarantine_version(&self) -> u64 {
        self.quarantine_version
    }

    /// Returns the problem of an object that is set aside.
    pub fn quarantine_reason(&self, object: &ObjectKey) -> Option<&InputError> {
        quarantine::find(self.quarantined(), object).map(|entry| &entry.error)
    }

    fn is_quarantined(&self, object: &ObjectKey) -> bool {
        quarantine::find(self.quarantined(), object).is_some()
    }

    /// Sets or ends the problem of an object.
    fn set_quarantined(&mut self, object: &ObjectKey, problem: Option<Problem>) {
        if problem.is_none() && !self.is_quarantined(object) {
            return;
        }
        let entry = problem.map(|problem| quarantine::quarantined(object.clone(), None, problem));
        quarantine::replace(&mut self.tables.loaded.quarantined, object, entry);
        self.quarantine_version += 1;
    }

    /// Makes the next refresh rebuild the tables.
    pub fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Returns the number of rebuilds. A rebuild invalidates all ids.
    pub fn rebuild_count(&self) -> u64 {
        self.rebuilds
    }

    /// Whether the next refresh rebuilds the tables.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Returns the snapshot and its names as of the last refresh, with the changes in place since.
    pub fn loaded(&self) -> &Loaded {
        &self.tables.loaded
    }

    /// Returns the snapshot for a decision, which changes it and takes the changes back.
    pub fn loaded_mut(&mut self) -> &mut Loaded {
        &mut self.tables.loaded
    }

    /// Finds an object other than a pod.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    /// Returns all objects other than pods.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectKey, &Object)> {
        self.objects.iter()
    }

    /// Returns all objects of a kind other than Pod.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let first = ObjectKey::new(kind, NamespacedName { namespace: String::new(), name: String::new() });
        self.objects.range(first..).take_while(move |(key, _)| key.kind == kind).map(|(_, object)| object)
    }

    /// Whether an administrator defined the queue, and not a pod that names it.
    pub fn is_configured_queue(&self, queue: QueueId) -> bool {
        self.tables.builder.queues.is_configured(queue)
    }

    /// Finds a pod.
    pub fn pod(&self, name: &NamespacedName) -> Option<&Arc<ApiPod>> {
        self.pods.get(name)
    }

    /// Returns all pods.
    pub fn pods(&self) -> impl Iterator<Item = (&NamespacedName, &Arc<ApiPod>)> {
        self.pods.iter()
    }

    /// Returns the pods that name a group or a job.
    pub fn members(&self, group: &ObjectKey) -> &BTreeSet<NamespacedName> {
        static NONE: BTreeSet<NamespacedName> = BTreeSet::new();
        self.members.get(group).unwrap_or(&NONE)
    }

    /// Returns why the preemption priority of a group is refused, if it is.
    pub fn refused_priority(&self, group: &NamespacedName) -> Option<InvalidPreemptionPriority> {
        let Object::PodGroup(group) = self.objects.get(&ObjectKey::new(Kind::PodGroup, group.clone()))? else {
            return None;
        };
        refused_priority(group, &self.tables.builder.classes)
    }

    /// Returns all objects as if they were read from a file.
    pub fn all_objects(&self) -> ObjectSet {
        let mut objects = ObjectSet { is_complete: true, ..ObjectSet::default() };
        let source = Source { file: "the cluster".into(), document: 1, item: None };
        for object in self.objects.values() {
            objects.push(object, &source);
        }
        objects.unreadable.extend(self.unreadable.values().cloned());
        for pod in self.pods.values() {
            objects.pods.push(Sourced { object: Arc::clone(pod), source: source.clone() });
        }
        objects
    }

    fn add_group(&mut self, key: &ObjectKey, object: &PodGroup) {
        let SnapshotBuilder { classes, interners, .. } = &mut self.tables.builder;
        let draft = read_pod_group(&key.name, object, classes, &mut interners.texts);
        self.tables.append_new_texts();
        let Some(draft) = draft.ok().flatten().filter(|draft| draft.topology_key.is_none()) else {
            self.stale = true;
            return;
        };
        let id = self.tables.loaded.snapshot.add_group(draft.group);
        if let Some(values) = draft.values {
            self.tables.builder.member_values.insert(id, values);
        }
        self.tables.builder.groups.insert(key.name.clone(), id);
        self.tables.loaded.names.groups.names.push(key.name.clone());
        self.tables.loaded.names.groups.ids.insert(key.name.clone(), id);
        self.add_members(key);
    }

    fn add_job(&mut self, key: &ObjectKey, object: &KoordinatorPodGroup) {
        self.stale |= field_of_job(object).is_some();
        match usize::try_from(object.spec.min_member) {
            Ok(needed) if !self.tables.builder.jobs.contains_key(&key.name) => self.insert_job(&key.name, needed),
            _ => self.stale = true,
        }
        self.add_members(key);
    }

    fn insert_job(&mut self, name: &NamespacedName, min_member: usize) {
        let snapshot = &mut self.tables.loaded.snapshot;
        match rank_between(&self.tables.builder.jobs, name, |(job, _)| snapshot.job(*job).rank) {
            Some(rank) => {
                let id = snapshot.add_job(Job { rank, min_member, members: Vec::new() });
                self.tables.builder.jobs.insert(name.clone(), (id, min_member));
                self.tables.loaded.names.jobs.push(name.clone());
            }
            None => self.stale = true,
        }
    }

    /// Adds a workload to the tables, or sets it aside.
    fn upsert_workload(&mut self, key: &ObjectKey, object: &Arc<KueueWorkload>, old: Option<&Object>) {
        let Some(reader) = self.tables.builder.queues.workloads() else { return };
        if is_finished(object) {
            self.remove_workload(key, old);
            self.set_quarantined(key, None);
            return;
        }
        let order_key = workload_order_key(&key.name, object);
        let id = self.tables.loaded.names.workload_id(&key.name).filter(|id| reader.order.get(&order_key) == Some(id));
        let rank = match id {
            Some(id) => Some(self.tables.loaded.snapshot.workload(id).rank),
            None => rank_between(&reader.order, &order_key, |id| self.tables.loaded.snapshot.workload(*id).rank),
        };
        let (workload, problem) = reader.read(&key.name, object, &mut self.tables.builder.interners.texts);
        self.tables.append_new_texts();
        self.set_quarantined(key, problem);
        let Some(workload) = workload else {
            self.remove_workload(key, old);
            return;
        };
        let Some(rank) = rank else {
            self.stale = true;
            return;
        };
        let id = id.unwrap_or_else(|| {
            self.remove_workload(key, old);
            let QueueNames { workloads: Numbered { names, ids }, pod_sets, .. } = &mut self.tables.loaded.names.queues;
            let id = self.tables.free_workloads.pop().unwrap_or_else(|| {
                names.push(key.name.clone());
                pod_sets.push(Vec::new());
                WorkloadId::new(names.len() - 1)
            });
            names[id.index()] = key.name.clone();
            ids.insert(key.name.clone(), id);
            id
        });
        let Loaded { snapshot, names, .. } = &mut self.tables.loaded;
        names.queues.pod_sets[id.index()] = pod_set_names(object);
        snapshot.put_workload(id, Workload { rank, ..workload });
        if let Some(reader) = self.tables.builder.queues.workloads_mut() {
            reader.order.insert(order_key, id);
        }
    }

    /// Removes a workload from the tables; `old` is the state that they contain.
    fn remove_workload(&mut self, key: &ObjectKey, old: Option<&Object>) {
        let Some(id) = self.tables.loaded.names.queues.workloads.ids.remove(&key.name) else { return };
        self.tables.loaded.snapshot.remove_workload(id);
        if let (Some(reader), Some(Object::KueueWorkload(old))) = (self.tables.builder.queues.workloads_mut(), old) {
            reader.order.remove(&workload_order_key(&key.name, old));
        }
        self.tables.free_workloads.push(id);
    }
}

/// Whether objects of this kind matter only as owners of pods.
pub fn is_owner(kind: Kind) -> bool {
    kind != Kind::Pod && is_link(kind)
}

/// Whether no decision can tell two states of a workload apart.
fn same_workload(new: &KueueWorkload, old: &KueueWorkload) -> bool {
    (&new.spec, &new.status, &new.metadata.uid, &new.metadata.annotations)
        == (&old.spec, &old.status, &old.metadata.uid, &old.metadata.annotations)
}

/// Returns the fields of a node that decisions read.
fn relevant_fields(node: &Node) -> impl PartialEq + '_ {
    let status = node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
    (&node.metadata.labels, &node.spec, allocatable)
}

/// Whether two states of a budget cover the same pods.
fn same_budget(new: &PodDisruptionBudget, old: &PodDisruptionBudget) -> bool {
    let disrupted = |budget: &PodDisruptionBudget| {
        let pods = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone()).unwrap_or_default();
        pods.into_keys().collect::<Vec<String>>()
    };
    new.spec == old.spec && disrupted(new) == disrupted(old)
}

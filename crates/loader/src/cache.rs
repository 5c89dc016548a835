//! Keeps a snapshot up to date with changes of single objects. `scheduler` owns a [`SnapshotCache`].
//!
//! Pods, groups, jobs, workloads and budget counts change the tables in place. Other objects (nodes, classes, namespaces, quotas) change
//! rarely: they mark the tables stale, and the next `refresh` rebuilds them. A pod or workload that cannot be converted is ignored; if
//! another object cannot be, the cache keeps serving the last objects that could.

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
use reprieve_engine::{BudgetId, Policy, WorkloadId};

use crate::build::build_for;
use crate::groups::{read_standalone_group, refused_priority};
use crate::names::{Numbered, QueueNames};
use crate::preemption_priority::InvalidPreemptionPriority;
use crate::quota::{is_finished, pod_set_names, workload_order_key};
use crate::unsupported::field_of_job;
use crate::{Loaded, OnInvalid, SnapshotBuilder};
use reprieve_api::koordinator::KoordinatorPodGroup;
use reprieve_api::kueue::KueueWorkload;
use reprieve_api::{InputError, Kind, NamespacedName, Object, ObjectKey, ObjectSet, Pod as ApiPod, Source, Sourced};
use tables::{Tables, rank_between};

/// The tables may keep at least this number of unused shapes, groups, jobs and texts before they are rebuilt.
const MIN_UNUSED_ENTRIES: usize = 1_000;

/// A snapshot that follows changes of single objects.
pub struct SnapshotCache {
    /// The current objects other than pods.
    objects: BTreeMap<ObjectKey, Object>,
    /// The objects other than pods from which the tables could last be built.
    last_good: BTreeMap<ObjectKey, Object>,
    pods: BTreeMap<NamespacedName, Arc<ApiPod>>,
    /// The pods that name a group or job.
    members: BTreeMap<ObjectKey, BTreeSet<NamespacedName>>,
    tables: Tables,
    stale: bool,
    /// Whether the tables come from `last_good`, because they cannot be built from `objects`.
    serving_last_good: bool,
    policy: Policy,
    scheduler_name: Option<String>,
    rebuilds: u64,
    quarantine: Quarantine,
}

/// Workloads that cannot be converted.
#[derive(Default)]
struct Quarantine {
    /// The problem of each workload that is ignored.
    reasons: BTreeMap<ObjectKey, InputError>,
    /// Problems that the caller has not taken yet.
    unreported: Vec<(ObjectKey, InputError)>,
}

impl Default for SnapshotCache {
    fn default() -> Self {
        let policy = Policy::Kubernetes(Kubernetes::default());
        let built = build_for(&ObjectSet::default(), OnInvalid::Quarantine, &policy, None);
        Self {
            objects: BTreeMap::new(),
            last_good: BTreeMap::new(),
            pods: BTreeMap::new(),
            members: BTreeMap::new(),
            tables: Tables::new(built.expect("an empty list of objects has no invalid object")),
            stale: false,
            serving_last_good: false,
            policy,
            scheduler_name: None,
            rebuilds: 0,
            quarantine: Quarantine::default(),
        }
    }
}

impl SnapshotCache {
    /// Sets the scheduler and its policy. Under `placement: Joint` of policy Kueue, every change rebuilds the tables.
    pub fn for_scheduler(mut self, name: &str, policy: &Policy) -> Self {
        self.policy = *policy;
        self.scheduler_name = Some(name.to_owned());
        self.stale = true;
        self
    }

    fn is_joint(&self) -> bool {
        matches!(self.policy, Policy::Kueue(kueue) if kueue.placement == PlacementMode::Joint)
    }

    /// Adds an object or replaces its state. An error says why a pod is ignored.
    pub fn upsert(&mut self, object: Object) -> Result<(), InputError> {
        self.stale |= self.is_joint();
        self.retry_quarantined(&object.key(), Some(&object));
        if let Object::Pod(pod) = object {
            return self.upsert_pod(pod);
        }
        let key = object.key();
        let old = self.objects.insert(key.clone(), object.clone());
        if self.stale {
            return Ok(());
        }
        match (&object, old.as_ref()) {
            (Object::Node(new), Some(Object::Node(old))) => self.stale = relevant_fields(new) != relevant_fields(old),
            (Object::Namespace(new), Some(Object::Namespace(old))) => {
                self.stale = new.metadata.labels != old.metadata.labels;
            }
            (Object::PodDisruptionBudget(new), Some(Object::PodDisruptionBudget(old))) if same_budget(new, old) => {
                let allowed = new.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or_default();
                let index = self.tables.builder.budgets.iter().position(|rule| rule.name == key.name);
                let index = index.expect("the builder has a rule for each budget");
                self.tables.loaded.snapshot.set_budget(BudgetId::new(index), allowed);
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
            (Object::KueueWorkload(workload), _) => self.upsert_workload(&key, workload),
            (Object::Job(_), _) => {}
            (_, old) => self.stale = old != Some(&object),
        }
        Ok(())
    }

    /// Replaces a pod of which only fields changed that no decision reads.
    pub fn replace_unread_fields(&mut self, name: &NamespacedName, pod: Arc<ApiPod>) {
        if let Some(known) = self.pods.get_mut(name) {
            *known = pod;
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.stale |= self.is_joint();
        self.retry_quarantined(key, None);
        match key.kind {
            Kind::Pod => self.remove_pod(&key.name),
            Kind::Job => _ = self.objects.remove(key),
            Kind::PodGroup if !self.members.contains_key(key) => {
                self.objects.remove(key);
                self.tables.builder.groups.remove(&key.name);
                self.tables.loaded.names.groups.ids.remove(&key.name);
            }
            Kind::KueueWorkload => {
                self.stale |= self.objects.remove(key).is_some() && self.serving_last_good;
                self.remove_workload(key);
            }
            Kind::KoordinatorPodGroup if !self.members.contains_key(key) => {
                self.objects.remove(key);
                self.tables.builder.jobs.remove(&key.name);
            }
            _ => self.stale |= self.objects.remove(key).is_some(),
        }
    }

    /// Rebuilds the tables if they are stale. An error says why the tables still come from the last valid objects.
    pub fn refresh(&mut self) -> Result<(), InputError> {
        if !std::mem::replace(&mut self.stale, false) {
            return Ok(());
        }
        let mut refused = Ok(());
        let built = loop {
            let mut usable = self.objects.clone();
            usable.retain(|key, _| !self.quarantine.reasons.contains_key(key));
            match self.build(&usable) {
                Ok(built) => {
                    self.last_good = usable;
                    break built;
                }
                Err(error) => match workload_of(&error).filter(|key| usable.contains_key(key)) {
                    Some(key) => {
                        self.quarantine.unreported.push((key.clone(), error.clone()));
                        self.quarantine.reasons.insert(key, error);
                    }
                    None => {
                        refused = Err(error);
                        break self.build(&self.last_good).expect("the tables were built from these objects before");
                    }
                },
            }
        };
        self.tables = Tables::new(built);
        self.serving_last_good = refused.is_err();
        self.rebuilds += 1;
        refused
    }

    fn build(&self, others: &BTreeMap<ObjectKey, Object>) -> Result<(Loaded, SnapshotBuilder), InputError> {
        build_for(&self.objects(others), OnInvalid::Quarantine, &self.policy, self.scheduler_name.as_deref())
    }

    /// Ends the quarantine of workloads that a change may have made valid: the changed workload itself, or all workloads if an object
    /// changed to which they may refer.
    fn retry_quarantined(&mut self, key: &ObjectKey, now: Option<&Object>) {
        let relevant_fields = |object: Option<&Object>| match object {
            Some(Object::KueueWorkload(workload)) => {
                let status = workload.status.as_ref();
                Some((workload.spec.clone(), status.and_then(|status| status.admission.clone())))
            }
            _ => None,
        };
        match key.kind {
            _ if self.quarantine.reasons.is_empty() => {}
            Kind::KueueWorkload if relevant_fields(now) == relevant_fields(self.objects.get(key)) => {}
            Kind::KueueWorkload => _ = self.quarantine.reasons.remove(key),
            Kind::Pod | Kind::Job => {}
            _ => self.quarantine.reasons.clear(),
        }
    }

    /// Returns the problem of a workload that is ignored.
    pub fn quarantine_reason(&self, workload: &ObjectKey) -> Option<&InputError> {
        self.quarantine.reasons.get(workload)
    }

    /// Returns the workloads that were quarantined since the last call, with their problems.
    pub fn take_quarantined(&mut self) -> Vec<(ObjectKey, InputError)> {
        std::mem::take(&mut self.quarantine.unreported)
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
        self.objects(&self.objects)
    }

    fn objects(&self, others: &BTreeMap<ObjectKey, Object>) -> ObjectSet {
        let mut objects = ObjectSet::default();
        let source = Source { file: "the cluster".into(), document: 1, item: None };
        for object in others.values() {
            objects.push(object, &source);
        }
        for pod in self.pods.values() {
            objects.pods.push(Sourced { object: Arc::clone(pod), source: source.clone() });
        }
        objects
    }

    fn add_group(&mut self, key: &ObjectKey, object: &PodGroup) {
        let SnapshotBuilder { classes, interners, .. } = &mut self.tables.builder;
        let named = read_standalone_group(&key.name, object, classes, &mut interners.texts);
        self.tables.append_new_texts();
        let Some(named) = named.ok().flatten().filter(|named| named.topology_key.is_none()) else {
            self.stale = true;
            return;
        };
        let id = self.tables.loaded.snapshot.add_group(named.group);
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

    /// Adds a workload to the tables. If it cannot be converted, the tables become stale and the next refresh quarantines it.
    fn upsert_workload(&mut self, key: &ObjectKey, object: &Arc<KueueWorkload>) {
        if self.quarantine.reasons.contains_key(key) {
            return;
        }
        self.stale |= self.serving_last_good;
        let Some(reader) = self.tables.builder.queues.workloads().filter(|_| !self.serving_last_good) else { return };
        if is_finished(object) {
            self.remove_workload(key);
            return;
        }
        let ranked_by = workload_order_key(&key.name, object);
        let id = self.tables.loaded.names.workload_id(&key.name).filter(|id| reader.order.get(&ranked_by) == Some(id));
        let rank = match id {
            Some(id) => Some(self.tables.loaded.snapshot.workload(id).rank),
            None => rank_between(&reader.order, &ranked_by, |id| self.tables.loaded.snapshot.workload(*id).rank),
        };
        let workload = reader.read(&key.name, object, &mut self.tables.builder.interners.texts);
        self.tables.append_new_texts();
        let (Some(rank), Ok(workload)) = (rank, workload) else {
            self.stale = true;
            return;
        };
        let id = id.unwrap_or_else(|| {
            self.remove_workload(key);
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
            reader.order.insert(ranked_by, id);
        }
        self.last_good.insert(key.clone(), Object::KueueWorkload(Arc::clone(object)));
    }

    /// Removes a workload from the tables.
    fn remove_workload(&mut self, key: &ObjectKey) {
        let old = self.last_good.remove(key);
        let Some(id) = self.tables.loaded.names.queues.workloads.ids.remove(&key.name) else { return };
        self.tables.loaded.snapshot.remove_workload(id);
        if let (Some(reader), Some(Object::KueueWorkload(old))) = (self.tables.builder.queues.workloads_mut(), old) {
            reader.order.remove(&workload_order_key(&key.name, &old));
        }
        self.tables.free_workloads.push(id);
    }
}

/// The object of an error, if it is a workload.
fn workload_of(error: &InputError) -> Option<ObjectKey> {
    error.object.as_ref()?.key().filter(|key| key.kind == Kind::KueueWorkload)
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

//! A snapshot that lives on: objects come and go one at a time.
//!
//! Pods, groups, jobs, workloads and the counts of budgets change it in place, at a cost in proportion to what they touch. What they are
//! measured against (nodes, classes, namespaces, quotas) changes seldom; the next reader gets a snapshot that is made anew. An object that
//! cannot be understood is left out; where it is one of those, the last that could be stays in force.

mod pods;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::kueue::PlacementMode;
use reprieve_engine::snapshot::Job;
use reprieve_engine::workloads::Workload;
use reprieve_engine::{BudgetId, WorkloadId};

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

/// How many shapes, groups and jobs that nobody has any more are kept at least.
const MIN_UNUSED_ENTRIES: usize = 1_000;

/// A snapshot that lives on.
pub struct SnapshotCache {
    /// Everything but pods, as it is now.
    objects: BTreeMap<ObjectKey, Object>,
    /// Everything but pods, as it was understood last.
    last_good: BTreeMap<ObjectKey, Object>,
    pods: BTreeMap<NamespacedName, Arc<ApiPod>>,
    /// By the group or job that they name.
    members: BTreeMap<ObjectKey, BTreeSet<NamespacedName>>,
    tables: Tables,
    stale: bool,
    /// Whether some of what is wanted could not be understood.
    serving_last_good: bool,
    /// Whose settings say what is read.
    policy: Policy,
    /// The scheduler that decides.
    scheduler_name: Option<String>,
    rebuilds: u64,
    quarantine: Quarantine,
}

/// Workloads that cannot be understood.
#[derive(Default)]
struct Quarantine {
    /// Those that cannot be understood as things are, and why.
    reasons: BTreeMap<ObjectKey, InputError>,
    /// Those that were not reported yet.
    unreported: Vec<(ObjectKey, InputError)>,
}

impl Default for SnapshotCache {
    fn default() -> Self {
        let policy = Policy::Kubernetes(Kubernetes::default());
        let built = build_for(&ObjectSet::default(), OnInvalid::Live, &policy, None);
        Self {
            objects: BTreeMap::new(),
            last_good: BTreeMap::new(),
            pods: BTreeMap::new(),
            members: BTreeMap::new(),
            tables: Tables::new(built.expect("nothing has no faults")),
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
    /// The same for the scheduler of this name, with all that the policy reads. Where quota and nodes are decided together, every change
    /// makes the tables anew.
    pub fn for_scheduler(mut self, name: &str, policy: &Policy) -> Self {
        self.policy = *policy;
        self.scheduler_name = Some(name.to_owned());
        self.stale = true;
        self
    }

    /// Whether quota and nodes are decided together.
    fn is_joint(&self) -> bool {
        matches!(self.policy, Policy::Kueue(kueue) if kueue.placement == PlacementMode::Joint)
    }

    /// Takes in an object, or its new state. An error says why a pod is left out.
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
                let index = index.expect("a budget that is known has a rule");
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

    /// A pod is as it was, but for what is not read.
    pub fn replace_unread_fields(&mut self, name: &NamespacedName, pod: Arc<ApiPod>) {
        if let Some(known) = self.pods.get_mut(name) {
            *known = pod;
        }
    }

    /// Takes an object out.
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

    /// The snapshot as of now. An error says why what pods are measured against is still what it was.
    pub fn refresh(&mut self) -> Result<(), InputError> {
        if !std::mem::replace(&mut self.stale, false) {
            return Ok(());
        }
        let mut refused = Ok(());
        let built = loop {
            let understood = self.objects.iter().filter(|(key, _)| !self.quarantine.reasons.contains_key(key));
            let understood: BTreeMap<ObjectKey, Object> =
                understood.map(|(key, one)| (key.clone(), one.clone())).collect();
            match self.build(&understood) {
                Ok(built) => {
                    self.last_good = understood;
                    break built;
                }
                Err(error) => match self.workload_of(&error).filter(|key| understood.contains_key(key)) {
                    Some(key) => {
                        self.quarantine.unreported.push((key.clone(), error.clone()));
                        self.quarantine.reasons.insert(key, error);
                    }
                    None => {
                        refused = Err(error);
                        break self.build(&self.last_good).expect("it was understood before");
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
        build_for(&self.objects(others), OnInvalid::Live, &self.policy, self.scheduler_name.as_deref())
    }

    /// The workload that an error is about.
    fn workload_of(&self, error: &InputError) -> Option<ObjectKey> {
        error.object.as_ref()?.key().filter(|key| key.kind == Kind::KueueWorkload)
    }

    /// What was left out may be understood now: it has changed, or what it is measured against.
    fn retry_quarantined(&mut self, key: &ObjectKey, now: Option<&Object>) {
        let what_matters = |object: Option<&Object>| match object {
            Some(Object::KueueWorkload(workload)) => {
                let status = workload.status.as_ref();
                Some((workload.spec.clone(), status.and_then(|status| status.admission.clone())))
            }
            _ => None,
        };
        match key.kind {
            _ if self.quarantine.reasons.is_empty() => {}
            Kind::KueueWorkload if what_matters(now) == what_matters(self.objects.get(key)) => {}
            Kind::KueueWorkload => _ = self.quarantine.reasons.remove(key),
            Kind::Pod | Kind::Job => {}
            _ => self.quarantine.reasons.clear(),
        }
    }

    /// Why a workload is left out, if it is.
    pub fn quarantine_reason(&self, workload: &ObjectKey) -> Option<&InputError> {
        self.quarantine.reasons.get(workload)
    }

    /// The workloads that were left out since this was last asked, and why.
    pub fn take_quarantined(&mut self) -> Vec<(ObjectKey, InputError)> {
        std::mem::take(&mut self.quarantine.unreported)
    }

    /// The tables may be wrong: the next refresh makes them anew.
    pub fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// How often the snapshot was made anew: numbers from before mean nothing now.
    pub fn rebuild_count(&self) -> u64 {
        self.rebuilds
    }

    /// Whether the next refresh has something to do.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// The snapshot and its names, as of the last refresh and with all pods since.
    pub fn loaded(&self) -> &Loaded {
        &self.tables.loaded
    }

    /// The same, for a question.
    pub fn loaded_mut(&mut self) -> &mut Loaded {
        &mut self.tables.loaded
    }

    /// An object that is no pod.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    /// All objects that are no pods.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectKey, &Object)> {
        self.objects.iter()
    }

    /// All objects of a kind other than Pod.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let first = ObjectKey::new(kind, NamespacedName { namespace: String::new(), name: String::new() });
        self.objects.range(first..).take_while(move |(key, _)| key.kind == kind).map(|(_, object)| object)
    }

    /// A pod.
    pub fn pod(&self, name: &NamespacedName) -> Option<&Arc<ApiPod>> {
        self.pods.get(name)
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = (&NamespacedName, &Arc<ApiPod>)> {
        self.pods.iter()
    }

    /// The pods that name a group or a job.
    pub fn members(&self, group: &ObjectKey) -> &BTreeSet<NamespacedName> {
        static NOBODY: BTreeSet<NamespacedName> = BTreeSet::new();
        self.members.get(group).unwrap_or(&NOBODY)
    }

    /// Why the preemption priority that a group asks for is refused, if it is.
    pub fn refused_priority(&self, group: &NamespacedName) -> Option<InvalidPreemptionPriority> {
        let Object::PodGroup(group) = self.objects.get(&ObjectKey::new(Kind::PodGroup, group.clone()))? else {
            return None;
        };
        refused_priority(group, &self.tables.builder.classes)
    }

    /// Everything, as a file would have it.
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

    /// Puts a workload into the tables. What cannot be understood is told with the next refresh.
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

    /// Takes a workload out of the tables.
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

/// Whether two states of a workload are the same to a decision.
fn same_workload(new: &KueueWorkload, old: &KueueWorkload) -> bool {
    (&new.spec, &new.status, &new.metadata.uid, &new.metadata.annotations)
        == (&old.spec, &old.status, &old.metadata.uid, &old.metadata.annotations)
}

/// What of a node matters to a decision.
fn relevant_fields(node: &Node) -> impl PartialEq + '_ {
    let status = node.status.as_ref();
    let offers = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
    (&node.metadata.labels, &node.spec, offers)
}

/// Whether two states of a budget are about the same pods.
fn same_budget(new: &PodDisruptionBudget, old: &PodDisruptionBudget) -> bool {
    let disrupted = |budget: &PodDisruptionBudget| {
        let pods = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone()).unwrap_or_default();
        pods.into_keys().collect::<Vec<String>>()
    };
    new.spec == old.spec && disrupted(new) == disrupted(old)
}

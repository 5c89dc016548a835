//! Hostile objects of a tenant: every kind that a tenant can write, with labels, annotations, owners, amounts and words drawn from the keys
//! that the project reads, most of them invalid, forged or extreme. The same seed gives the same objects on every machine.
//!
//! [`Harm::None`] creates only objects that cannot lawfully affect another tenant: their pods are finished, belong to another scheduler,
//! can never be scheduled, or run on [`NODE`], which no other tenant's pod can use. Isolation tests add these objects to a cluster and expect
//! the same decisions. [`Harm::Any`] also creates competitors, for tests that only compare two ways to the same state.

mod kinds;
mod pods;
pub mod words;

use std::collections::BTreeSet;

use reprieve_api::kinds::Scope;
use reprieve_api::koordinator::{JOB, QUOTA};
use reprieve_api::{Kind, NamespacedName, Object, ObjectSet};
use serde_json::{Value, json};

use crate::rng::Rng;

/// The namespace of the hostile tenant. No other object of a test has it.
pub const TENANT: &str = "tenant-b";
/// The node on which only pods of the hostile tenant run.
pub const NODE: &str = "only-tenant-b";
/// The scheduler of pods without a `schedulerName`.
pub const SCHEDULER: &str = "default-scheduler";

/// Whether the objects may affect other tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The objects cannot lawfully affect another tenant.
    None,
    /// The objects may compete with those of other tenants.
    Any,
}

/// Whether the object belongs to the hostile tenant.
pub fn is_of_tenant(object: &Object) -> bool {
    object.metadata().namespace.as_deref() == Some(TENANT)
}

/// The names in a cluster that hostile objects refer to.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// The namespaces and names of pods, groups, jobs and workloads.
    pub names: Vec<NamespacedName>,
    /// The uids of all objects.
    pub uids: Vec<String>,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The queues and quotas, and the queues above them.
    pub queues: Vec<String>,
    /// The priority classes.
    pub classes: Vec<String>,
    /// The plain labels of pods.
    pub labels: Vec<(String, String)>,
}

impl Targets {
    /// The names in these objects.
    pub fn of(objects: &ObjectSet) -> Self {
        let mut targets = Self::default();
        let mut queues = BTreeSet::new();
        for object in objects.iter() {
            let name = object.key().name;
            targets.uids.extend(object.metadata().uid.clone());
            match &object {
                Object::Node(_) => targets.nodes.push(name.name.clone()),
                Object::PriorityClass(_) | Object::WorkloadPriorityClass(_) => targets.classes.push(name.name.clone()),
                Object::ElasticQuota(_) | Object::ClusterQueue(_) | Object::Cohort(_) | Object::LocalQueue(_) => {
                    _ = queues.insert(name.name.clone());
                }
                Object::Pod(pod) => {
                    let labels = pod.metadata.labels.iter().flatten();
                    for (key, value) in labels {
                        match key.as_str() {
                            "queue" | "yunikorn.apache.org/queue" => {
                                let ends = value.match_indices('.').map(|(end, _)| end).chain([value.len()]);
                                queues.extend(ends.map(|end| value[..end].to_owned()));
                            }
                            QUOTA => _ = queues.insert(value.clone()),
                            JOB => targets.names.push(NamespacedName::new(&name.namespace, value)),
                            _ => targets.labels.push((key.clone(), value.clone())),
                        }
                    }
                    targets.names.push(name);
                }
                _ => targets.names.push(name),
            }
        }
        targets.queues = queues.into_iter().collect();
        targets.labels.sort_unstable();
        targets.labels.dedup();
        targets
    }
}

/// Creates hostile objects.
pub struct Hostile<'t> {
    rng: Rng,
    targets: &'t Targets,
    harm: Harm,
    n_objects: usize,
}

impl<'t> Hostile<'t> {
    /// Objects of this seed that refer to `targets`.
    pub fn new(seed: u64, targets: &'t Targets, harm: Harm) -> Self {
        Self { rng: Rng::new(seed), targets, harm, n_objects: 0 }
    }

    /// The kinds that a tenant can write: those in a namespace.
    pub fn kinds() -> impl Iterator<Item = Kind> {
        // A scheduler watches the one ConfigMap that its configuration names, never that of a tenant.
        let namespaced = Kind::ALL.iter().copied().filter(|kind| kind.resource().scope == Scope::Namespaced);
        namespaced.filter(|kind| *kind != Kind::ConfigMap)
    }

    /// The node of the tenant, which an administrator created. Its taint keeps all other pods away.
    pub fn node() -> Object {
        let node = json!({
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
            "spec": {
                "unschedulable": true,
                "taints": [{"key": TENANT, "effect": "NoSchedule"}],
            },
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        });
        Object::from_json(Kind::Node, &node.to_string()).expect("it is a node")
    }

    /// An object of a random kind in `kinds`, as JSON. Some cannot be decoded.
    pub fn json(&mut self, kinds: &[Kind]) -> (Kind, Value) {
        let kind = if self.chance(55) && kinds.contains(&Kind::Pod) { Kind::Pod } else { *self.one(kinds) };
        (kind, self.of_kind(kind))
    }

    /// An object of a random kind in `kinds`; `None` if a watch could not decode it and would leave it out.
    pub fn object(&mut self, kinds: &[Kind]) -> Option<Object> {
        let (kind, value) = self.json(kinds);
        Object::from_json(kind, &value.to_string()).ok()
    }

    /// An object of this kind, as JSON.
    pub fn of_kind(&mut self, kind: Kind) -> Value {
        self.n_objects += 1;
        if kind == Kind::Pod {
            return self.pod();
        }
        let mut object = self.template(kind);
        let (namespace, name) = (object["metadata"]["namespace"].clone(), object["metadata"]["name"].clone());
        for _ in 0..self.up_to(3) {
            self.corrupt_field(&mut object);
        }
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let is_namespaced = kind.resource().scope == Scope::Namespaced;
        object["metadata"]["namespace"] = if is_namespaced { namespace } else { Value::Null };
        object["metadata"]["name"] = name;
        if self.harm == Harm::None {
            self.disarm(kind, &mut object);
        }
        object
    }

    /// The metadata of an object: a name of its own or the name of another tenant's object, and forged labels, annotations and owners.
    fn metadata(&mut self) -> Value {
        let mut metadata = json!({
            "namespace": TENANT,
            "name": self.name(),
            "uid": self.uid(),
            "creationTimestamp": self.time(),
        });
        if self.chance(60) {
            metadata["labels"] = self.labels();
        }
        if self.chance(60) {
            metadata["annotations"] = self.annotations();
        }
        if self.chance(40) {
            metadata["ownerReferences"] = self.owners();
        }
        if self.chance(15) {
            metadata["finalizers"] = json!([self.word(words::FINALIZERS)]);
        }
        if self.chance(15) {
            metadata["deletionTimestamp"] = self.time();
        }
        metadata
    }

    fn name(&mut self) -> String {
        if self.chance(25) && !self.targets.names.is_empty() {
            return self.one(&self.targets.names).name.clone();
        }
        if self.chance(5) {
            return self.word(words::TEXTS).to_owned();
        }
        format!("hostile-{}", self.n_objects)
    }

    fn uid(&mut self) -> String {
        if self.chance(25) && !self.targets.uids.is_empty() {
            return self.one(&self.targets.uids).clone();
        }
        format!("{TENANT}-{}", self.n_objects)
    }

    fn time(&mut self) -> Value {
        json!(self.word(words::TIMES))
    }

    /// True with a probability of `percent`.
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.happens(percent * 10_000)
    }

    /// A number from 0 to below `end`.
    fn up_to(&mut self, end: usize) -> usize {
        usize::try_from(self.rng.below(end as u64)).expect("below the end")
    }

    /// A number from `first` to `last`, both included.
    fn within(&mut self, first: usize, last: usize) -> usize {
        first + self.up_to(last - first + 1)
    }

    /// One of the items.
    fn one<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.up_to(items.len())]
    }

    /// One of the words.
    fn word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.up_to(words.len())]
    }

    /// A name that another tenant's object has, or a word that is no name.
    fn target(&mut self) -> NamespacedName {
        if self.chance(85) && !self.targets.names.is_empty() {
            return self.one(&self.targets.names).clone();
        }
        let namespace = self.word(&["default", TENANT, "kube-system"]);
        NamespacedName::new(namespace, self.word(words::TEXTS))
    }

    fn labels(&mut self) -> Value {
        let mut labels = json!({});
        for _ in 0..self.within(1, 5) {
            let key = self.word(words::KEYS);
            labels[key] = json!(self.value_of(key));
        }
        if self.harm == Harm::Any && self.chance(50) && !self.targets.labels.is_empty() {
            let (key, value) = self.one(&self.targets.labels);
            labels[key] = json!(value);
        }
        labels
    }

    fn annotations(&mut self) -> Value {
        let mut annotations = json!({});
        for _ in 0..self.within(1, 4) {
            let key = self.word(words::KEYS);
            annotations[key] = json!(self.value_of(key));
        }
        if self.chance(30) {
            annotations[words::PREEMPTED_FOR] = json!(self.mark());
        }
        annotations
    }

    /// A forged mark: the preemption that it claims does not exist.
    fn mark(&mut self) -> String {
        let kind = self.word(&["Pod", "PodGroup", "Workload", "Job", "", "Node"]);
        format!("{kind} {}", self.target())
    }

    /// A value for a label or annotation: often of the form that its key asks for.
    fn value_of(&mut self, key: &str) -> String {
        if self.chance(25) {
            return self.word(words::TEXTS).to_owned();
        }
        match key {
            words::PREEMPTED_FOR => self.mark(),
            _ if key.contains("priority") && self.chance(50) && !self.targets.classes.is_empty() => {
                self.one(&self.targets.classes).clone()
            }
            _ if key.contains("queue") || key == QUOTA || key.contains("parent") => self.queue(),
            _ if self.chance(30) => self.target().name,
            _ => self.word(words::VALUES).to_owned(),
        }
    }

    /// The name of a queue: one of another tenant, or one that does not exist.
    fn queue(&mut self) -> String {
        if self.chance(70) && !self.targets.queues.is_empty() {
            return self.one(&self.targets.queues).clone();
        }
        self.word(words::QUEUES).to_owned()
    }

    fn owners(&mut self) -> Value {
        let owner = |hostile: &mut Self| {
            let (api_version, kind) = *hostile.one(words::OWNERS);
            json!({
                "apiVersion": api_version,
                "kind": kind,
                "name": hostile.target().name,
                "uid": hostile.uid(),
                "controller": hostile.chance(80),
            })
        };
        let n_owners = self.within(1, 2);
        Value::Array((0..n_owners).map(|_| owner(self)).collect())
    }

    /// Amounts of resources, most of which no node has.
    fn amounts(&mut self) -> Value {
        let mut amounts = json!({});
        for _ in 0..self.within(1, 3) {
            let resource = self.word(words::RESOURCES);
            amounts[resource] = self.amount();
        }
        amounts
    }

    fn amount(&mut self) -> Value {
        let text = self.word(words::AMOUNTS);
        if self.chance(5) { json!(*self.one(words::NUMBERS)) } else { json!(text) }
    }

    /// Replaces a random value below the top level of the object by one that does not belong there.
    fn corrupt_field(&mut self, object: &mut Value) {
        let fields = object.as_object_mut().expect("the template is an object");
        let index = self.up_to(fields.len());
        fields.values_mut().skip(index).take(1).for_each(|value| self.corrupt(value));
    }

    fn corrupt(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && self.chance(90) => {
                let index = self.up_to(fields.len());
                fields.values_mut().skip(index).take(1).for_each(|value| self.corrupt(value));
            }
            Value::Array(items) if !items.is_empty() && self.chance(90) => {
                let index = self.up_to(items.len());
                self.corrupt(&mut items[index]);
            }
            other => *other = self.value_of_another_type(),
        }
    }

    fn value_of_another_type(&mut self) -> Value {
        match self.up_to(8) {
            0 => Value::Null,
            1 => json!(self.chance(50)),
            2 | 3 => json!(*self.one(words::NUMBERS)),
            4 => json!([]),
            5 => json!({}),
            _ => json!(self.word(words::TEXTS)),
        }
    }
}

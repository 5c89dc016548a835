//! Converts Kueue's workloads one at a time. [`super::kueue_tables`] calls it for a complete list, [`crate::cache`] for single changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use reprieve_engine::workloads::{Admission, PodSet, QuotaRules, Workload};
use reprieve_engine::{FlavorResourceId, QueueId, QuotaResourceId, TextId, Timestamp, WorkloadId};

use super::{Notes, QuotaTreeBuilder, is_finished};
use crate::preemption_options::{milestones, on_preemption, preempts_from, waiting_since};
use crate::quarantine::{Problem, Quarantine, key_of, key_of_error};
use crate::sums::{beyond_sum, workloads_beyond_sum};
use crate::unsupported::{field_of_cluster_queue, field_of_flavor, field_of_local_queue, field_of_workload};
use crate::{Defaults, Interner, by_name, nth_rank, requests, timestamp};
use reprieve_api::kueue::{
    AdmissionSpec, ClusterQueue, FlavorSpec, KueueWorkload, KueueWorkloadStatus, LocalQueue, PodSetSpec,
};
use reprieve_api::quantity::MAX_AMOUNT;
use reprieve_api::{InputError, NamespacedName, ObjectSet, Pod, PodSpec, ProblemCode, Source, Sourced};

/// Converts workloads, with the objects to which they refer.
pub struct WorkloadReader {
    pub(super) tree: QuotaTreeBuilder,
    /// The ClusterQueue of each LocalQueue.
    local_queues: BTreeMap<NamespacedName, String>,
    /// For LocalQueues and for ClusterQueues: the object and field on which their workloads depend and that no decision evaluates.
    unsupported: (BTreeMap<NamespacedName, String>, BTreeMap<QueueId, String>),
    placed_pods: PlacedPods,
    defaults: Defaults,
    flavor_resources: Vec<Vec<Option<FlavorResourceId>>>,
    /// The workloads in the order of their ranks.
    pub order: BTreeMap<WorkloadOrderKey, WorkloadId>,
}

/// The workloads whose pods this scheduler places.
pub struct PlacedPods {
    /// Whether it places the pods of every workload.
    pub all: bool,
    /// Otherwise it places pods that name this scheduler.
    pub scheduler: String,
}

impl PlacedPods {
    fn include(&self, spec: &PodSpec) -> bool {
        self.all || spec.scheduler_name.as_ref() == Some(&self.scheduler)
    }
}

/// Orders workloads: by uid, or by name if there is no uid; then by name.
pub type WorkloadOrderKey = (String, NamespacedName);

/// Returns the key that decides the rank of a workload.
pub fn workload_order_key(name: &NamespacedName, workload: &KueueWorkload) -> WorkloadOrderKey {
    (workload.metadata.uid.clone().unwrap_or_else(|| name.to_string()), name.clone())
}

type Named<'o> = BTreeMap<NamespacedName, &'o Sourced<KueueWorkload>>;

/// Returns the workloads that have not finished.
pub(super) fn unfinished(objects: &ObjectSet) -> Named<'_> {
    let mut named = by_name::<NamespacedName, _>(&objects.kueue_workloads);
    named.retain(|_, workload| !is_finished(&workload.object));
    named
}

/// Returns the workloads that cannot be read and hold quota, each with only its status.
pub(super) fn held_by_unreadable(objects: &ObjectSet) -> Vec<Sourced<KueueWorkload>> {
    let held = objects.unreadable.iter().filter_map(|one| one.held.as_ref()).filter(|held| !is_finished(held));
    let source = Source { file: "the cluster".into(), document: 1, item: None };
    held.map(|held| Sourced { object: Arc::clone(held), source: source.clone() }).collect()
}

impl WorkloadReader {
    pub(super) fn new(
        tree: QuotaTreeBuilder,
        rules: &QuotaRules,
        objects: &ObjectSet,
        places: PlacedPods,
        notes: &mut Notes<'_>,
        quarantine: &mut Quarantine,
    ) -> Self {
        let locals = by_name::<NamespacedName, _>(&objects.local_queues);
        for queue in locals.values() {
            if let Some(problem) = tree.problem_of_local(&queue.object) {
                quarantine.add(key_of(queue), Some(&queue.source), problem);
            }
        }
        let defaults = Defaults::new(objects);
        for error in defaults.errors() {
            if let Some(key) = key_of_error(error) {
                quarantine.add(key, None, error.clone());
            }
        }
        let unsupported_locals = unsupported_locals(&locals);
        let unsupported_queues = unsupported_queues(objects, &tree);
        let unsupported = unsupported_locals.values().chain(unsupported_queues.values());
        notes.warnings.extend(unsupported.map(|field| not_evaluated(field, 0)));
        let scopes = objects.cluster_queues.iter().filter(|queue| queue.object.spec.admission_scope.is_some());
        let name = |queue: &Sourced<ClusterQueue>| queue.object.metadata.name.clone().unwrap_or_default();
        let scopes = scopes.map(|queue| format!("ClusterQueue {}: spec.admissionScope", name(queue)));
        notes.warnings.extend(scopes.map(|field| not_evaluated(&field, 0)));
        Self {
            tree,
            local_queues: locals
                .into_iter()
                .map(|(name, queue)| (name, queue.object.spec.cluster_queue.clone()))
                .collect(),
            unsupported: (unsupported_locals, unsupported_queues),
            placed_pods: places,
            defaults,
            flavor_resources: rules.flavor_resources.clone(),
            order: BTreeMap::new(),
        }
    }

    /// Converts all workloads, in the order of names, and removes those that are set aside from `named`. Only the quota of `unreadable` is
    /// known, so they are not preempted.
    pub(super) fn all(
        &mut self,
        named: &mut Named<'_>,
        unreadable: &[Sourced<KueueWorkload>],
        notes: &mut Notes<'_>,
        quarantine: &mut Quarantine,
    ) -> Vec<Workload> {
        let mut workloads = Vec::new();
        named.retain(|name, sourced| {
            quarantine.reads(sourced);
            let (workload, problem) = self.read(name, &sourced.object, notes.texts);
            if let Some(problem) = problem {
                quarantine.add(key_of(sourced), Some(&sourced.source), problem);
            }
            let Some(workload) = workload else { return false };
            notes.warnings.extend(self.problems(name, &sourced.object).unwrap_or_default());
            let set_aside = unreadable.iter().any(|one| Arc::ptr_eq(&one.object, &sourced.object));
            workloads.push((name.clone(), Workload { set_aside, ..workload }));
            true
        });
        quarantine.reading = None;
        let n_flavor_resources = self.flavor_resources.iter().flatten().flatten().count();
        let beyond = workloads_beyond_sum(&workloads, n_flavor_resources, self.tree.resources.len() + 1);
        let beyond: BTreeSet<NamespacedName> = beyond.into_iter().cloned().collect();
        for name in &beyond {
            if let Some(sourced) = named.remove(name) {
                quarantine.add(key_of(sourced), Some(&sourced.source), beyond_sum("spec.podSets"));
            }
        }
        workloads.retain(|(name, _)| !beyond.contains(name));
        let mut workloads: Vec<Workload> = workloads.into_iter().map(|(_, workload)| workload).collect();
        let ids = named.iter().enumerate();
        self.order = ids
            .map(|(index, (name, sourced))| (workload_order_key(name, &sourced.object), WorkloadId::new(index)))
            .collect();
        notes.warnings.extend(self.not_evaluated_of(named));
        for (index, id) in self.order.values().enumerate() {
            workloads[id.index()].rank = nth_rank(index);
        }
        workloads
    }

    /// Reads a workload without its rank. A pending workload with a problem is left out; an admitted one still holds its quota, unless
    /// its queue cannot be found, and can be preempted: what cannot be read of it counts as absent, because anyone who may write the
    /// Workload could otherwise protect it with an invalid value.
    pub fn read(
        &self,
        name: &NamespacedName,
        object: &KueueWorkload,
        texts: &mut Interner,
    ) -> (Option<Workload>, Option<Problem>) {
        let problem = match self.good(name, object, texts) {
            Ok(workload) => return (Some(workload), None),
            Err(problem) => problem,
        };
        let status = object.status.as_ref().and_then(|status| Some((status.admission.as_ref()?, &status.conditions)));
        let held = status.and_then(|(admission, conditions)| {
            let queue = self.queue_of(admission).ok()?;
            Some((queue, self.admission(admission, conditions).ok()?))
        });
        let created = object.metadata.creation_timestamp.as_ref();
        let pod_set = |set: &PodSetSpec| PodSet {
            count: set.count.clamp(0, MAX_AMOUNT),
            min_count: None,
            requests: Vec::new(),
            may_use: vec![false; self.tree.flavors.len()],
            pods: Vec::new(),
        };
        let held = held.map(|(queue, admission)| Workload {
            queue: Some(queue),
            admission: Some(admission),
            namespace_fits: true,
            protected: self.tree.protected.contains(&name.namespace),
            active: object.spec.active != Some(false),
            priority: self.tree.classes.priority(&object.spec).unwrap_or_default(),
            created: created.map_or(Timestamp(0), |created| timestamp(created.0)),
            pod_sets: object.spec.pod_sets.iter().map(pod_set).collect(),
            milestones: milestones(object).unwrap_or_default(),
            on_preemption: on_preemption(object).unwrap_or_default(),
            job: job_of(object).map(|job| TextId(texts.id(job))),
            ..Workload::default()
        });
        (held, Some(problem))
    }

    /// Converts a workload that has no problem.
    fn good(&self, name: &NamespacedName, object: &KueueWorkload, texts: &mut Interner) -> Result<Workload, Problem> {
        let mut workload = self.workload(object)?;
        workload.job = job_of(object).map(|job| TextId(texts.id(job)));
        if workload.queue.is_none() && !object.spec.queue_name.is_empty() {
            let local = NamespacedName::new(&name.namespace, &object.spec.queue_name);
            let cluster_queue = self.local_queues.get(&local);
            workload.queue = cluster_queue.and_then(|queue| self.tree.cluster_queues.get(queue)).copied();
            if workload.queue.is_none() {
                let field = "spec.queueName";
                let problem = match cluster_queue {
                    None => format!("LocalQueue {local} is not in the input; add it, or name another"),
                    Some(queue) => match self.tree.lost.cluster_queues.get(queue) {
                        Some(lost) => return Err(Problem::refers_to(lost.clone(), field)),
                        None => {
                            format!(
                                "LocalQueue {local} names ClusterQueue {queue:?}, which is not in the input; add it"
                            )
                        }
                    },
                };
                return Err(InputError::new(problem).field(field).code(ProblemCode::MissingReference).into());
            }
            let selector = workload.queue.map(|queue| &self.tree.drafts[queue.index()].namespace_selector);
            workload.namespace_fits = selector.is_none_or(|own| self.tree.namespaces.fits(own, &name.namespace));
        }
        if workload.admission.is_none() {
            for set in &object.spec.pod_sets {
                let spec = set.template.spec.as_ref();
                let runtime_class = spec.and_then(|spec| spec.runtime_class_name.as_deref());
                self.defaults.check(&name.namespace, runtime_class).map_err(|error| Problem {
                    cause: key_of_error(&error),
                    gang: None,
                    error: InputError::new(error.to_string())
                        .field(format!("spec.podSets[{}].template", set.name))
                        .code(ProblemCode::BrokenReference),
                })?;
            }
            let field = self.field_not_evaluated(name, object, workload.queue);
            workload.unsupported = field.map(|field| TextId(texts.id(&field)));
        }
        Ok(workload)
    }

    /// Returns the object and field on which the admission of a workload depends and that no decision evaluates.
    fn field_not_evaluated(
        &self,
        name: &NamespacedName,
        object: &KueueWorkload,
        queue: Option<QueueId>,
    ) -> Option<String> {
        let own = field_of_workload(object, |spec| self.placed_pods.include(spec));
        let local = NamespacedName::new(&name.namespace, &object.spec.queue_name);
        let (locals, queues) = &self.unsupported;
        own.map(|field| format!("Workload {name}: {field}"))
            .or_else(|| locals.get(&local).cloned())
            .or_else(|| queues.get(&queue?).cloned())
    }

    /// Returns a warning for each field of workloads that no decision evaluates.
    fn not_evaluated_of(&self, named: &Named<'_>) -> Vec<String> {
        let mut by_field: BTreeMap<String, (&NamespacedName, usize)> = BTreeMap::new();
        for (name, workload) in named {
            if let Some(field) = field_of_workload(&workload.object, |spec| self.placed_pods.include(spec)) {
                by_field.entry(field).or_insert((name, 0)).1 += 1;
            }
        }
        let warning = |(field, (first, count)): (String, (&NamespacedName, usize))| {
            not_evaluated(&format!("Workload {first}: {field}"), count - 1)
        };
        by_field.into_iter().map(warning).collect()
    }

    /// Returns why Kueue would not admit a pending workload regardless of quota, and which of its requests are not counted.
    fn problems(&self, name: &NamespacedName, object: &KueueWorkload) -> Result<Vec<String>, InputError> {
        let mut problems = Vec::new();
        if object.status.as_ref().is_some_and(|status| status.admission.is_some()) {
            return Ok(problems);
        }
        for set in &object.spec.pod_sets {
            let spec = self.spec_of(&name.namespace, set);
            if let Some(class) = self.defaults.missing_runtime_class(&spec) {
                problems.push(format!(
                    "Workload {name}: spec.podSets[{}].template.spec.runtimeClassName: RuntimeClass {class:?} is not in the input, so its \
                     overhead is not counted; add the output of kubectl get runtimeclasses -o yaml",
                    set.name
                ));
            }
            for violation in self.violations(&name.namespace, set, &spec)? {
                let field = format!("spec.podSets[{}].template.{violation}", set.name);
                problems.push(format!("Workload {name}: {field}; Kueue does not admit such a workload"));
            }
        }
        Ok(problems)
    }

    /// Returns the pod spec of a pod set, completed as by Kueue.
    fn spec_of(&self, namespace: &str, set: &PodSetSpec) -> PodSpec {
        let mut spec = PodSpec::from(set.template.spec.clone().unwrap_or_default());
        self.defaults.complete_as_kueue(namespace, &mut spec);
        spec
    }

    fn violations(&self, namespace: &str, set: &PodSetSpec, spec: &PodSpec) -> Result<Vec<String>, InputError> {
        self.defaults.violations(namespace, spec).map_err(|error| in_template(error, set))
    }

    fn workload(&self, object: &KueueWorkload) -> Result<Workload, Problem> {
        let empty = KueueWorkloadStatus::default();
        let status = object.status.as_ref().unwrap_or(&empty);
        let admitted = status.admission.as_ref();
        let queue = admitted.map(|admission| self.queue_of(admission)).transpose()?;
        let admission = admitted.map(|admission| self.admission(admission, &status.conditions)).transpose()?;
        let created = object.metadata.creation_timestamp.as_ref();
        let NamespacedName { namespace, .. } = NamespacedName::from_meta(&object.metadata);
        let (mut invalid, mut pod_sets) = (false, Vec::new());
        for set in &object.spec.pod_sets {
            let spec = self.spec_of(&namespace, set);
            invalid |= admission.is_none() && !self.violations(&namespace, set, &spec)?.is_empty();
            pod_sets.push(self.pod_set(set, spec)?);
        }
        Ok(Workload {
            queue,
            admission,
            rank: 0,
            namespace_fits: true,
            invalid,
            protected: self.tree.protected.contains(&namespace),
            set_aside: false,
            active: object.spec.active != Some(false),
            waiting_since: waiting_since(&status.conditions),
            preempts_from: preempts_from(status),
            priority: self.tree.classes.priority(&object.spec)?,
            created: created.map_or(Timestamp(0), |created| timestamp(created.0)),
            pod_sets,
            milestones: milestones(object)?,
            on_preemption: on_preemption(object)?,
            unsupported: None,
            job: None,
        })
    }

    /// Returns the queue whose quota a workload holds.
    fn queue_of(&self, admission: &AdmissionSpec) -> Result<QueueId, Problem> {
        let (name, field) = (&admission.cluster_queue, "status.admission.clusterQueue");
        if let Some(lost) = self.tree.lost.cluster_queues.get(name) {
            return Err(Problem::refers_to(lost.clone(), field));
        }
        self.tree.cluster_queues.get(name).copied().ok_or_else(|| {
            let problem = format!("ClusterQueue {name:?} is not in the input; add it");
            InputError::new(problem).field(field).code(ProblemCode::MissingReference).into()
        })
    }

    /// Reads the quota that a workload holds.
    fn admission(&self, admission: &AdmissionSpec, conditions: &[Condition]) -> Result<Admission, InputError> {
        let mut usage: BTreeMap<FlavorResourceId, i64> = BTreeMap::new();
        for set in &admission.pod_set_assignments {
            for (resource, used) in &set.resource_usage {
                let Some(named) = set.flavors.get(resource) else { continue };
                let Some((flavor, _)) = self.tree.flavors.get(named) else {
                    let problem = format!("ResourceFlavor {named:?} is not in the input; add it");
                    let field = format!("status.admission.podSetAssignments[{}].flavors.{resource}", set.name);
                    return Err(InputError::new(problem).field(field).code(ProblemCode::MissingReference));
                };
                let of = self.tree.resources.get(resource);
                if let Some(flavor_resource) = of.and_then(|of| self.flavor_resources[flavor.index()][of.index()]) {
                    let field = || format!("status.admission.podSetAssignments.resourceUsage.{resource}");
                    let used = requests::amount(resource, used).map_err(|error| error.field(field()))?;
                    let sum = usage.entry(flavor_resource).or_default();
                    *sum = added(*sum, used).map_err(|error| error.field(field()))?;
                }
            }
        }
        let condition = |type_: &str| conditions.iter().find(|own| own.type_ == type_ && own.status == "True");
        let reserved = condition("QuotaReserved").map(|condition| timestamp(condition.last_transition_time.0));
        let evicted = condition("Evicted").is_some();
        Ok(Admission { usage: usage.into_iter().collect(), since: reserved.unwrap_or(Timestamp(0)), evicted })
    }

    fn pod_set(&self, set: &PodSetSpec, spec: PodSpec) -> Result<PodSet, InputError> {
        let wrong =
            |field: &str, problem| InputError::new(problem).field(format!("spec.podSets[{}].{field}", set.name));
        if set.count < 0 {
            return Err(wrong("count", format!("{} is negative; write 0 or more", set.count)));
        }
        if let Some(min) = set.min_count.filter(|min| !(0..=set.count).contains(min)) {
            return Err(wrong(
                "minCount",
                format!("{min} is out of range; write 0 to {}, which is the count", set.count),
            ));
        }
        if set.count > MAX_AMOUNT {
            return Err(
                wrong("count", format!("{} is too large; write at most 2^53", set.count)).code(ProblemCode::TooLarge)
            );
        }
        let pod = Pod::new(ObjectMeta::default(), spec);
        let empty = PodSpec::default();
        let spec = pod.spec.as_deref().unwrap_or(&empty);
        let amounts = requests::requests(&pod).map_err(|error| in_template(error, set))?;
        let mut requests = Vec::new();
        for (resource, amount) in amounts {
            if i128::from(amount) * i128::from(set.count) > i128::from(MAX_AMOUNT) {
                let problem =
                    format!("{} pods request more than 2^53 of {resource} together; lower one of them", set.count);
                return Err(wrong("count", problem).code(ProblemCode::TooLarge));
            }
            match self.tree.resources.get(&resource) {
                Some(&of) => requests.push((of, amount)),
                // A resource that no queue covers gets an id for which no queue has quota.
                None if amount > 0 => requests.push((QuotaResourceId::new(self.tree.resources.len()), amount)),
                None => {}
            }
        }
        let mut may_use = vec![false; self.tree.flavors.len()];
        for (id, flavor) in self.tree.flavors.values() {
            may_use[id.index()] = may_use_flavor(spec, flavor);
        }
        Ok(PodSet { count: set.count, min_count: set.min_count, requests, may_use, pods: Vec::new() })
    }
}

impl QuotaTreeBuilder {
    /// Returns the problem of a LocalQueue whose ClusterQueue is missing or set aside.
    fn problem_of_local(&self, queue: &LocalQueue) -> Option<Problem> {
        let (name, field) = (&queue.spec.cluster_queue, "spec.clusterQueue");
        if let Some(lost) = self.lost.cluster_queues.get(name) {
            return Some(Problem::refers_to(lost.clone(), field));
        }
        if self.cluster_queues.contains_key(name) {
            return None;
        }
        let problem = format!("ClusterQueue {name:?} is not in the input; add it, or name another");
        Some(InputError::new(problem).field(field).code(ProblemCode::MissingReference).into())
    }
}

/// Returns the name of the Job that controls a workload.
fn job_of(object: &KueueWorkload) -> Option<&str> {
    let mut owners = object.metadata.owner_references.iter().flatten();
    let job = owners.find(|owner| owner.kind == "Job" && owner.controller == Some(true));
    job.map(|job| job.name.as_str())
}

/// Adds two amounts of one workload.
fn added(a: i64, b: i64) -> Result<i64, InputError> {
    a.checked_add(b)
        .filter(|sum| *sum <= MAX_AMOUNT)
        .ok_or_else(|| InputError::new("the sum is too large; write at most 2^53").code(ProblemCode::TooLarge))
}

/// Returns a warning about an object's field that no decision evaluates; `others` is the number of other objects with the field.
fn not_evaluated(field: &str, others: usize) -> String {
    match others {
        0 => format!("{field} is not evaluated"),
        others => format!("{field} is not evaluated, nor that of {others} more"),
    }
}

fn unsupported_locals(locals: &BTreeMap<NamespacedName, &Sourced<LocalQueue>>) -> BTreeMap<NamespacedName, String> {
    let field = |(name, queue): (&NamespacedName, &&Sourced<LocalQueue>)| {
        let field = field_of_local_queue(&queue.object.spec)?;
        Some((name.clone(), format!("LocalQueue {name}: {field}")))
    };
    locals.iter().filter_map(field).collect()
}

/// Returns for each ClusterQueue a field that no decision evaluates: its own, or that of one of its flavors.
fn unsupported_queues(objects: &ObjectSet, tree: &QuotaTreeBuilder) -> BTreeMap<QueueId, String> {
    let mut unsupported = BTreeMap::new();
    for queue in objects.cluster_queues.iter().map(|queue| &*queue.object) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        let own = field_of_cluster_queue(&queue.spec).map(|field| format!("ClusterQueue {name}: {field}"));
        let of_flavor = || {
            let names = queue.spec.resource_groups.iter().flat_map(|group| &group.flavors).map(|flavor| &flavor.name);
            names
                .filter_map(|name| tree.flavors.get_key_value(name))
                .find_map(|(name, (_, flavor))| Some(format!("ResourceFlavor {name}: {}", field_of_flavor(flavor)?)))
        };
        if let (Some(&index), Some(field)) = (tree.cluster_queues.get(&name), own.or_else(of_flavor)) {
            unsupported.insert(index, field);
        }
    }
    unsupported
}

/// Prefixes the field of an error in a pod spec with the path of the pod set's template.
fn in_template(error: InputError, set: &PodSetSpec) -> InputError {
    let field = error.field.clone().unwrap_or_default();
    error.field(format!("spec.podSets[{}].template.{field}", set.name))
}

/// Whether pods may use a flavor: they, or the flavor's own tolerations, tolerate its taints, and their node selector and affinity match
/// its labels, as far as these name keys of the flavor.
fn may_use_flavor(spec: &PodSpec, flavor: &FlavorSpec) -> bool {
    let tolerations: Vec<&Toleration> = spec.tolerations.iter().flatten().chain(&flavor.tolerations).collect();
    let repels = |taint: &Taint| {
        taint.effect != "PreferNoSchedule" && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    };
    if flavor.node_taints.iter().any(repels) {
        return false;
    }
    let labels = &flavor.node_labels;
    let selector = spec.node_selector.iter().flatten();
    if selector.into_iter().any(|(key, value)| labels.get(key).is_some_and(|own| own != value)) {
        return false;
    }
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, labels)))
}

fn term_matches(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>) -> bool {
    term.match_expressions.iter().flatten().all(|requirement| {
        let Some(own) = labels.get(&requirement.key) else { return true };
        let values = requirement.values.as_deref().unwrap_or_default();
        let number = || own.parse::<i64>().ok().zip(values.first().and_then(|value| value.parse::<i64>().ok()));
        match requirement.operator.as_str() {
            "In" => values.contains(own),
            "NotIn" => !values.contains(own),
            "Exists" => true,
            "Gt" => number().is_some_and(|(own, bound)| own > bound),
            "Lt" => number().is_some_and(|(own, bound)| own < bound),
            _ => false,
        }
    })
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let effect = given(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let key = given(&toleration.key).is_none_or(|key| key == taint.key);
    let value = toleration.operator.as_deref() == Some("Exists")
        || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    effect && key && value
}

//! Workloads as the quota tree has them, one at a time.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use reprieve_engine::workloads::{Admission, PodSet, QuotaRules, Workload};
use reprieve_engine::{FlavorResourceId, QueueId, QuotaResourceId, TextId, Timestamp, WorkloadId};

use super::{Notes, QuotaTreeBuilder, is_finished};
use crate::preemption_options::{milestones, on_preemption, preempts_from, waiting_since};
use crate::unsupported::{field_of_cluster_queue, field_of_flavor, field_of_local_queue, field_of_workload};
use crate::{Defaults, Interner, by_name, nth_rank, requests, timestamp};
use reprieve_api::kueue::{
    AdmissionSpec, ClusterQueue, FlavorSpec, KueueWorkload, KueueWorkloadStatus, LocalQueue, PodSetSpec,
};
use reprieve_api::{InputError, NamespacedName, ObjectSet, Pod, PodSpec, Sourced};

/// What is known of Kueue's other objects.
pub struct WorkloadReader {
    pub(super) reading: QuotaTreeBuilder,
    /// By LocalQueue: its ClusterQueue.
    locals: BTreeMap<NamespacedName, String>,
    /// By LocalQueue, and by ClusterQueue: the object and field that decide about its workloads and are not evaluated.
    unsupported: (BTreeMap<NamespacedName, String>, BTreeMap<QueueId, String>),
    places: Places,
    defaults: Defaults,
    cells: Vec<Vec<Option<FlavorResourceId>>>,
    /// In the order of their ranks.
    pub order: BTreeMap<WorkloadOrderKey, WorkloadId>,
}

/// Whose pods this scheduler places.
pub struct Places {
    /// Those of every workload.
    pub all: bool,
    /// Those that name this scheduler.
    pub scheduler: String,
}

impl Places {
    fn pods_of(&self, spec: &PodSpec) -> bool {
        self.all || spec.scheduler_name.as_ref() == Some(&self.scheduler)
    }
}

/// What decides a workload's rank: its uid, or its name where it has none; then its name.
pub type WorkloadOrderKey = (String, NamespacedName);

/// What decides a workload's rank.
pub fn ranked_by(name: &NamespacedName, workload: &KueueWorkload) -> WorkloadOrderKey {
    (workload.metadata.uid.clone().unwrap_or_else(|| name.to_string()), name.clone())
}

/// Workloads by name.
type Named<'o> = BTreeMap<NamespacedName, &'o Sourced<KueueWorkload>>;

/// The workloads that are not over.
pub(super) fn unfinished(objects: &ObjectSet) -> Result<Named<'_>, InputError> {
    let mut named = by_name::<NamespacedName, _>(&objects.kueue_workloads)?;
    named.retain(|_, workload| !is_finished(&workload.object));
    Ok(named)
}

impl WorkloadReader {
    pub(super) fn new(
        reading: QuotaTreeBuilder,
        rules: &QuotaRules,
        objects: &ObjectSet,
        places: Places,
        notes: &mut Notes<'_>,
    ) -> Result<Self, InputError> {
        let locals = by_name::<NamespacedName, _>(&objects.local_queues)?;
        let unsupported_locals = unsupported_locals(&locals);
        let unsupported_queues = unsupported_queues(objects, &reading);
        let unsupported = unsupported_locals.values().chain(unsupported_queues.values());
        notes.warnings.extend(unsupported.map(|field| not_evaluated(field, 0)));
        let scopes = objects.cluster_queues.iter().filter(|queue| queue.object.spec.admission_scope.is_some());
        let name = |queue: &Sourced<ClusterQueue>| queue.object.metadata.name.clone().unwrap_or_default();
        let scopes = scopes.map(|queue| format!("ClusterQueue {}: spec.admissionScope", name(queue)));
        notes.warnings.extend(scopes.map(|field| not_evaluated(&field, 0)));
        Ok(Self {
            reading,
            locals: locals.into_iter().map(|(name, queue)| (name, queue.object.spec.cluster_queue.clone())).collect(),
            unsupported: (unsupported_locals, unsupported_queues),
            places,
            defaults: Defaults::new(objects)?,
            cells: rules.flavor_resources.clone(),
            order: BTreeMap::new(),
        })
    }

    /// All of them, in the order of names.
    pub(super) fn all(&mut self, named: &Named<'_>, notes: &mut Notes<'_>) -> Result<Vec<Workload>, InputError> {
        let ids = named.iter().enumerate();
        self.order = ids.map(|(at, (name, one))| (ranked_by(name, &one.object), WorkloadId::new(at))).collect();
        let mut workloads = Vec::new();
        for (name, one) in named {
            workloads.push(self.read(name, &one.object, notes.texts).map_err(|error| one.locate(error))?);
            notes.warnings.extend(self.problems(name, &one.object).map_err(|error| one.locate(error))?);
        }
        notes.warnings.extend(self.not_evaluated_of(named));
        for (at, id) in self.order.values().enumerate() {
            workloads[id.index()].rank = nth_rank(at);
        }
        Ok(workloads)
    }

    /// One of them, except for its rank.
    pub fn read(
        &self,
        name: &NamespacedName,
        object: &KueueWorkload,
        texts: &mut Interner,
    ) -> Result<Workload, InputError> {
        let mut workload = self.workload(object)?;
        let mut owners = object.metadata.owner_references.iter().flatten();
        let job = owners.find(|owner| owner.kind == "Job" && owner.controller == Some(true));
        workload.job = job.map(|job| TextId(texts.id(&job.name)));
        if workload.queue.is_none() && !object.spec.queue_name.is_empty() {
            let local = NamespacedName::new(&name.namespace, &object.spec.queue_name);
            let to = self.locals.get(&local);
            workload.queue = to.and_then(|queue| self.reading.queues.get(queue)).copied();
            if workload.queue.is_none() {
                let problem = match to {
                    None => format!("LocalQueue {local} is not in the input; add it, or name another"),
                    Some(queue) => {
                        format!("LocalQueue {local} leads to ClusterQueue {queue:?}, which is not in the input")
                    }
                };
                return Err(InputError::new(problem).field("spec.queueName"));
            }
            let selector = workload.queue.map(|queue| &self.reading.nodes[queue.index()].namespace_selector);
            workload.namespace_fits = selector.is_none_or(|one| self.reading.namespaces.fits(one, &name.namespace));
        }
        if workload.admission.is_none() {
            for set in &object.spec.pod_sets {
                let spec = set.template.spec.as_ref();
                let runtime_class = spec.and_then(|spec| spec.runtime_class_name.as_deref());
                self.defaults.check(&name.namespace, runtime_class).map_err(|error| {
                    let broken = error.to_string();
                    InputError::new(broken).field(format!("spec.podSets[{}].template", set.name))
                })?;
            }
            let field = self.field_not_evaluated(name, object, workload.queue);
            workload.unsupported = field.map(|field| TextId(texts.id(&field)));
        }
        Ok(workload)
    }

    /// The object and field on which the admission of a workload depends, and that no decision evaluates.
    fn field_not_evaluated(
        &self,
        name: &NamespacedName,
        object: &KueueWorkload,
        queue: Option<QueueId>,
    ) -> Option<String> {
        let own = field_of_workload(object, |spec| self.places.pods_of(spec));
        let local = NamespacedName::new(&name.namespace, &object.spec.queue_name);
        let (locals, queues) = &self.unsupported;
        own.map(|field| format!("Workload {name}: {field}"))
            .or_else(|| locals.get(&local).cloned())
            .or_else(|| queues.get(&queue?).cloned())
    }

    /// Fields of workloads, admitted or pending, that no decision evaluates: one warning for each field.
    fn not_evaluated_of(&self, named: &Named<'_>) -> Vec<String> {
        let mut by_field: BTreeMap<String, (&NamespacedName, usize)> = BTreeMap::new();
        for (name, workload) in named {
            if let Some(field) = field_of_workload(&workload.object, |spec| self.places.pods_of(spec)) {
                by_field.entry(field).or_insert((name, 0)).1 += 1;
            }
        }
        let warning = |(field, (first, count)): (String, (&NamespacedName, usize))| {
            not_evaluated(&format!("Workload {first}: {field}"), count - 1)
        };
        by_field.into_iter().map(warning).collect()
    }

    /// Why Kueue does not admit a workload that asks for quota, whatever quota there is, and what is not counted of its requests.
    fn problems(&self, name: &NamespacedName, object: &KueueWorkload) -> Result<Vec<String>, InputError> {
        let mut problems = Vec::new();
        if object.status.as_ref().is_some_and(|status| status.admission.is_some()) {
            return Ok(problems);
        }
        for set in &object.spec.pod_sets {
            let spec = self.spec_of(&name.namespace, set);
            if let Some(class) = self.defaults.missing_runtime_class(&spec) {
                problems.push(format!(
                    "Workload {name}: spec.podSets[{}].template.spec.runtimeClassName: RuntimeClass {class:?} is not in the input, so that \
                     its overhead is not counted; add the output of kubectl get runtimeclasses -o yaml",
                    set.name
                ));
            }
            for violation in self.violations(&name.namespace, set, &spec)? {
                let field = format!("spec.podSets[{}].template.{violation}", set.name);
                problems.push(format!("Workload {name}: {field}; Kueue does not admit it"));
            }
        }
        Ok(problems)
    }

    /// The pods of a set as Kueue counts them.
    fn spec_of(&self, namespace: &str, set: &PodSetSpec) -> PodSpec {
        let mut spec = PodSpec::from(set.template.spec.clone().unwrap_or_default());
        self.defaults.adjust(namespace, &mut spec);
        spec
    }

    fn violations(&self, namespace: &str, set: &PodSetSpec, spec: &PodSpec) -> Result<Vec<String>, InputError> {
        self.defaults.violations(namespace, spec).map_err(|error| in_template(error, set))
    }

    fn workload(&self, object: &KueueWorkload) -> Result<Workload, InputError> {
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
            protected: self.reading.protected.contains(&namespace),
            active: object.spec.active != Some(false),
            waiting_since: waiting_since(&status.conditions),
            preempts_from: preempts_from(status),
            priority: self.reading.classes.priority(&object.spec)?,
            created: created.map_or(Timestamp(0), |created| timestamp(created.0)),
            pod_sets,
            milestones: milestones(object)?,
            on_preemption: on_preemption(object)?,
            unsupported: None,
            job: None,
        })
    }

    /// The queue whose quota a workload holds.
    fn queue_of(&self, admission: &AdmissionSpec) -> Result<QueueId, InputError> {
        self.reading.queues.get(&admission.cluster_queue).copied().ok_or_else(|| {
            let problem = format!("ClusterQueue {:?} is not in the input; add it", admission.cluster_queue);
            InputError::new(problem).field("status.admission.clusterQueue")
        })
    }

    /// The quota that a workload holds, and since when.
    fn admission(&self, admission: &AdmissionSpec, conditions: &[Condition]) -> Result<Admission, InputError> {
        let mut usage: BTreeMap<FlavorResourceId, i64> = BTreeMap::new();
        for set in &admission.pod_set_assignments {
            for (resource, used) in &set.resource_usage {
                let Some(named) = set.flavors.get(resource) else { continue };
                let Some((flavor, _)) = self.reading.flavors.get(named) else {
                    let problem = format!("ResourceFlavor {named:?} is not in the input; add it");
                    let field = format!("status.admission.podSetAssignments[{}].flavors.{resource}", set.name);
                    return Err(InputError::new(problem).field(field));
                };
                let of = self.reading.resources.get(resource);
                if let Some(cell) = of.and_then(|of| self.cells[flavor.index()][of.index()]) {
                    let field = || format!("status.admission.podSetAssignments.resourceUsage.{resource}");
                    *usage.entry(cell).or_default() +=
                        requests::amount(resource, used).map_err(|error| error.field(field()))?;
                }
            }
        }
        let condition = |kind: &str| conditions.iter().find(|one| one.type_ == kind && one.status == "True");
        let since = condition("QuotaReserved").map_or(Timestamp(0), |one| timestamp(one.last_transition_time.0));
        Ok(Admission { usage: usage.into_iter().collect(), since, evicted: condition("Evicted").is_some() })
    }

    fn pod_set(&self, set: &PodSetSpec, spec: PodSpec) -> Result<PodSet, InputError> {
        let wrong =
            |field: &str, problem| InputError::new(problem).field(format!("spec.podSets[{}].{field}", set.name));
        if set.count < 0 {
            return Err(wrong("count", format!("{} is below 0", set.count)));
        }
        if let Some(least) = set.min_count.filter(|least| !(0..=set.count).contains(least)) {
            return Err(wrong("minCount", format!("{least} is not between 0 and the count of {}", set.count)));
        }
        let pod = Pod::new(ObjectMeta::default(), spec);
        let spec = pod.spec.as_deref().expect("it was made of one");
        let amounts = requests::requests(&pod).map_err(|error| in_template(error, set))?;
        let mut requests = Vec::new();
        for (resource, amount) in amounts {
            match self.reading.resources.get(&resource) {
                Some(&of) => requests.push((of, amount)),
                // A resource that no queue covers has no number; asking for it is asking for what nobody has.
                None if amount > 0 => requests.push((QuotaResourceId::new(self.reading.resources.len()), amount)),
                None => {}
            }
        }
        let mut may_use = vec![false; self.reading.flavors.len()];
        for (id, flavor) in self.reading.flavors.values() {
            may_use[id.index()] = may_use_flavor(spec, flavor);
        }
        Ok(PodSet { count: set.count, min_count: set.min_count, requests, may_use, pods: Vec::new() })
    }
}

/// A warning about a field, with its object, that is not evaluated; so many other objects have it too.
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

/// By ClusterQueue: its own field, or that of a flavor of it.
fn unsupported_queues(objects: &ObjectSet, reading: &QuotaTreeBuilder) -> BTreeMap<QueueId, String> {
    let mut unsupported = BTreeMap::new();
    for queue in objects.cluster_queues.iter().map(|queue| &*queue.object) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        let own = field_of_cluster_queue(&queue.spec).map(|field| format!("ClusterQueue {name}: {field}"));
        let of_flavor = || {
            let names = queue.spec.resource_groups.iter().flat_map(|group| &group.flavors).map(|flavor| &flavor.name);
            names
                .filter_map(|name| reading.flavors.get_key_value(name))
                .find_map(|(name, (_, flavor))| Some(format!("ResourceFlavor {name}: {}", field_of_flavor(flavor)?)))
        };
        if let (Some(&at), Some(field)) = (reading.queues.get(&name), own.or_else(of_flavor)) {
            unsupported.insert(at, field);
        }
    }
    unsupported
}

/// An error in a pod, with where the pod's template is.
fn in_template(error: InputError, set: &PodSetSpec) -> InputError {
    let field = error.field.clone().unwrap_or_default();
    error.field(format!("spec.podSets[{}].template.{field}", set.name))
}

/// Taints that the pods or the flavor itself do not tolerate close it; so do selectors, as far as they are about its labels.
fn may_use_flavor(spec: &PodSpec, flavor: &FlavorSpec) -> bool {
    let tolerations: Vec<&Toleration> = spec.tolerations.iter().flatten().chain(&flavor.tolerations).collect();
    let closes = |taint: &&Taint| {
        taint.effect != "PreferNoSchedule" && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    };
    if flavor.node_taints.iter().any(|taint| closes(&taint)) {
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

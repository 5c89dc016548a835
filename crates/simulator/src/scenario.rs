//! Scenario files: a cluster and the jobs that are submitted to it. Unknown fields are errors.
//!
//! The first document is the Scenario; the others are Kubernetes objects that exist from the start.

mod checks;
mod jobs;
pub mod span;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::read::documents;
use reprieve_api::{InputError, Object, ObjectRef, ObjectSet, Profile, Source};
use reprieve_engine::Timestamp;
use reprieve_loader::time::parse_time;
use reprieve_loader::{QueueSpec, requests, timestamp};
use reprieve_report::gpu_hours::GpuResources;
use reprieve_translate::queue_tree::NeutralQueues;
use serde::Deserialize;
use serde_json::Value;

use crate::faults::Faults;
use crate::input::{self, SimulationInput};
use span::{Numbers, Span, Spans};

/// The default of `spec.start`.
const START: &str = "2026-01-05T00:00:00Z";

/// A validated scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    spec: ScenarioSpec,
    start: Timestamp,
    end: Timestamp,
    objects: Vec<Object>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScenarioFile {
    api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    metadata: Metadata,
    spec: ScenarioSpec,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
    #[serde(default, rename = "annotations")]
    _annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScenarioSpec {
    start: Option<String>,
    end: String,
    #[serde(default)]
    profiles: Vec<Profile>,
    #[serde(default)]
    nodes: Vec<NodeTemplate>,
    #[serde(default)]
    priority_classes: Vec<Class>,
    #[serde(default)]
    queues: Vec<ScenarioQueue>,
    #[serde(default)]
    jobs: Vec<JobSpec>,
    #[serde(default)]
    faults: Faults,
    soft_eviction: Option<Span>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeTemplate {
    name: String,
    count: u32,
    allocatable: Amounts,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Class {
    name: String,
    value: i32,
    preemption_policy: Option<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioQueue {
    name: String,
    parent: Option<String>,
    #[serde(default)]
    guarantee: Amounts,
    #[serde(default)]
    ceiling: Amounts,
}

/// A template for jobs, and their arrivals.
// Fields: those of the scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobSpec {
    name: String,
    arrivals: Arrivals,
    #[serde(default = "one_pod")]
    pods: Numbers,
    gang: Option<GangSpec>,
    requests: Amounts,
    runs: Option<Spans>,
    checkpoint: Option<Span>,
    priority: Option<i32>,
    priority_class: Option<String>,
    queue: Option<String>,
    startup: Option<Spans>,
    stop: Option<Spans>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    node_selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arrivals {
    per_hour: Option<f64>,
    at: Option<Vec<Span>>,
    from: Option<Span>,
    until: Option<Span>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GangSpec {
    min: Option<usize>,
    #[serde(default = "yes")]
    whole: bool,
}

/// The amount of each resource, a number or a string.
type Amounts = BTreeMap<String, Value>;

fn one_pod() -> Numbers {
    Numbers(span::Between { low: 1, high: 1 })
}

fn yes() -> bool {
    true
}

impl Scenario {
    /// Reads and validates a scenario.
    pub fn read(file: &str, text: &str) -> Result<Self, InputError> {
        let documents = documents(file, text);
        let Some((first, others)) = documents.split_first() else {
            return Err(InputError::new(format!("{file}: is empty; write a Scenario")));
        };
        let kind = first.kind()?;
        if kind.kind != "Scenario" || !kind.api_version.starts_with("reprieve.dev/") {
            let problem = format!(
                "{:?} is not a scenario; the first document has kind Scenario and apiVersion reprieve.dev/v1alpha1",
                kind.kind
            );
            return Err(InputError::new(problem).at(&first.source).field("kind"));
        }
        let read = first.read_own::<ScenarioFile>()?;
        let (file, source) = (Arc::unwrap_or_clone(read.object), read.source);
        let ScenarioFile { api_version, _kind: _, metadata, spec } = file;
        let object = ObjectRef::any("reprieve.dev", "Scenario", None, &metadata.name);
        let located = |error: InputError| error.at(&source).object(object.clone());
        if api_version != "reprieve.dev/v1alpha1" {
            let problem = format!("{api_version:?} is not known; write reprieve.dev/v1alpha1");
            return Err(located(InputError::new(problem).field("apiVersion")));
        }
        let mut objects = ObjectSet::default();
        for document in others {
            if let Some(test) = document.read(&mut objects)? {
                let problem = "a PreemptionTest is no part of a scenario; leave it out";
                return Err(InputError::new(problem).at(&test.source));
            }
        }
        reject_pods(&objects)?;
        let (start, end) = times(&spec).map_err(located)?;
        let scenario = Self { name: metadata.name, spec, start, end, objects: objects.iter().collect() };
        scenario.check().map_err(located)?;
        Ok(scenario)
    }

    /// The policies of the scenario, with their settings.
    pub fn profiles(&self) -> &[Profile] {
        &self.spec.profiles
    }

    /// The input of the simulation, with arrivals and durations drawn from the seed.
    pub fn input(&self, seed: u64) -> SimulationInput {
        let mut objects = self.objects.clone();
        for template in &self.spec.nodes {
            objects.extend(template.nodes());
        }
        objects.extend(self.spec.priority_classes.iter().map(Class::object));
        SimulationInput {
            name: self.name.clone(),
            objects,
            queues: self.queues(),
            submissions: jobs::submissions(self, seed),
            start: self.start,
            end: self.end,
            faults: self.spec.faults,
            soft_eviction_micros: self.spec.soft_eviction.map_or(20_000_000, |span| span.0),
            gpus: GpuResources::default(),
            load: None,
            assumptions: Vec::new(),
            seed,
        }
    }

    fn queues(&self) -> NeutralQueues {
        let queues = &self.spec.queues;
        let amounts = |amounts: &Amounts| {
            requests::amounts(&quantities(amounts), "queues").expect("amounts were checked when the scenario was read")
        };
        let queue = |queue: &ScenarioQueue| QueueSpec {
            name: queue.name.clone(),
            parent: queue.parent.as_ref().and_then(|parent| queues.iter().position(|queue| queue.name == *parent)),
            guarantee: amounts(&queue.guarantee),
            limit: amounts(&queue.ceiling),
        };
        queues.iter().map(queue).collect()
    }
}

/// A time, written as a duration after the start or in RFC 3339.
pub fn parse_time_or_offset(text: &str, start: Timestamp) -> Result<Timestamp, String> {
    if let Ok(span) = Span::parse(text) {
        return Ok(start.plus_micros(span.0));
    }
    let time = parse_time(text).map_err(|_| {
        format!("{text:?} is neither a time nor a duration; write it as in 2026-01-05T12:00:00Z or 12h")
    })?;
    Ok(timestamp(time))
}

fn times(spec: &ScenarioSpec) -> Result<(Timestamp, Timestamp), InputError> {
    let start = parse_time(spec.start.as_deref().unwrap_or(START)).map_err(|error| error.field("spec.start"))?;
    let start = timestamp(start);
    let end = parse_time_or_offset(&spec.end, start).map_err(|problem| InputError::new(problem).field("spec.end"))?;
    if end <= start {
        let problem = format!("{:?} is not after the start; write a later time, or a duration as in 24h", spec.end);
        return Err(InputError::new(problem).field("spec.end"));
    }
    Ok((start, end))
}

/// Rejects pods, groups and workloads: only those of a job are recreated after an eviction.
fn reject_pods(objects: &ObjectSet) -> Result<(), InputError> {
    let reject = |source: &Source, kind: &str| {
        let problem = format!("a {kind} is created by a job; write it under spec.jobs, with arrivals at 0s");
        Err(InputError::new(problem).at(source))
    };
    objects.pods.first().map_or(Ok(()), |pod| reject(&pod.source, "Pod"))?;
    objects.pod_groups.first().map_or(Ok(()), |group| reject(&group.source, "PodGroup"))?;
    objects.koordinator_pod_groups.first().map_or(Ok(()), |group| reject(&group.source, "PodGroup"))?;
    objects.kueue_workloads.first().map_or(Ok(()), |workload| reject(&workload.source, "Workload"))
}

impl NodeTemplate {
    fn nodes(&self) -> Vec<Object> {
        let width = self.count.saturating_sub(1).max(1).to_string().len();
        let node = |index: u32| {
            let name = format!("{}-{index:0width$}", self.name);
            let mut labels = self.labels.clone();
            labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| name.clone());
            let mut allocatable = quantities(&self.allocatable);
            allocatable.entry("pods".to_owned()).or_insert_with(|| Quantity("110".to_owned()));
            input::node(&name, labels, &self.taints, allocatable)
        };
        (0..self.count).map(node).collect()
    }
}

/// `count` nodes with the same allocatable resources.
pub(crate) fn node_objects(name: &str, count: u32, allocatable: &[(&str, &str)]) -> Vec<Object> {
    let amount = |&(resource, amount): &(&str, &str)| (resource.to_owned(), Value::from(amount));
    let allocatable = allocatable.iter().map(amount).collect();
    let (labels, taints) = (BTreeMap::new(), Vec::new());
    NodeTemplate { name: name.to_owned(), count, allocatable, labels, taints }.nodes()
}

impl Class {
    fn object(&self) -> Object {
        let annotations = (!self.annotations.is_empty()).then(|| self.annotations.clone());
        Object::from(PriorityClass {
            metadata: ObjectMeta { name: Some(self.name.clone()), annotations, ..ObjectMeta::default() },
            value: Some(self.value),
            preemption_policy: self.preemption_policy.clone(),
            ..PriorityClass::default()
        })
    }
}

/// INVARIANT: `check_amounts` has accepted the amounts.
fn quantities(amounts: &Amounts) -> BTreeMap<String, Quantity> {
    let quantity = |value: &Value| Quantity(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    amounts.iter().map(|(resource, amount)| (resource.clone(), quantity(amount))).collect()
}

//! The input of a simulation, made from a scenario or a trace. It becomes a [`RunConfig`] for each policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, ResourceRequirements, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::{Container, InputError, Kind, Object, ObjectSet, Pod, PodSpec, Source};
use reprieve_engine::{Policy, Timestamp};
use reprieve_loader::Amounts;
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::reads;
use reprieve_loader::requests;
use reprieve_report::gpu_hours::GpuResources;
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_koordinator::elastic_quotas;
use reprieve_translate::to_kueue;
use reprieve_translate::to_yunikorn::config_map;
use serde_json::json;

use crate::faults::Faults;
use crate::submission::{Submission, class_of};
use crate::usage::QUEUE;
use crate::virtual_cluster::RunConfig;

/// The number of usage samples in a run.
const SAMPLES: i64 = 720;
/// The namespace of all simulated jobs.
const NAMESPACE: &str = "default";

/// The cluster and the jobs of a simulation, independent of the policy.
#[derive(Clone, Debug)]
pub struct SimulationInput {
    /// The name of the scenario, or the file of the trace.
    pub name: String,
    /// Nodes, priority classes, budgets, and queues as objects of one policy.
    pub objects: Vec<Object>,
    /// Queues that are translated to objects of each policy.
    pub queues: NeutralQueues,
    /// The jobs, each with its queue.
    pub submissions: Vec<(Submission, Option<String>)>,
    /// The virtual time of the start.
    pub start: Timestamp,
    /// The virtual time of the end.
    pub end: Timestamp,
    /// The rates of injected faults.
    pub faults: Faults,
    /// The time until another operator deletes a pod with the soft-eviction label.
    pub soft_eviction_micros: i64,
    /// The resources that count as GPUs.
    pub gpus: GpuResources,
    /// For a trace: how many times as fast as in the trace the jobs arrive.
    pub load: Option<f64>,
    /// The assumptions behind synthetic data, one sentence each.
    pub assumptions: Vec<String>,
    /// The random seed.
    pub seed: u64,
}

impl SimulationInput {
    /// A trace whose jobs arrive `load` times as fast.
    pub fn with_load(mut self, load: f64) -> Self {
        for (submission, _) in &mut self.submissions {
            let after = (submission.at.0 - self.start.0) as f64 / load;
            submission.at = self.start.plus_micros(after as i64);
        }
        self.assumptions.push(format!("load: jobs arrive {load} times as fast as in the trace"));
        Self { load: Some(load), ..self }
    }

    /// The configuration of a run under a policy; an error if the policy cannot use the objects.
    pub fn setup(&self, policy: Policy) -> Result<RunConfig, InputError> {
        let mut objects: Vec<Object> =
            self.objects.iter().filter(|object| is_read_by(object, &policy)).cloned().collect();
        let is_queue = |object: &Object| object.kind().defines_queues();
        if !self.queues.is_empty() && !objects.iter().any(is_queue) {
            let queues = self.queue_objects(&policy, &objects);
            objects.extend(queues);
        }
        if let Policy::Kueue(_) = policy {
            let bare = self.submissions.iter().filter_map(|(submission, _)| submission.bare_priority());
            objects.extend(bare.collect::<BTreeSet<i32>>().into_iter().map(class_of));
        }
        self.reject_invalid(&objects, &policy)?;
        // Submissions with the same template share the labelled copy, to save memory.
        let mut labelled: BTreeMap<(*const Pod, &String), Arc<Pod>> = BTreeMap::new();
        let submissions = self.submissions.iter().map(|(submission, queue)| {
            let mut submission = submission.clone();
            if let Some(queue) = queue {
                let template = labelled.entry((Arc::as_ptr(&submission.template), queue)).or_insert_with(|| {
                    let mut template = Pod::clone(&submission.template);
                    let labels = template.metadata.labels.get_or_insert_default();
                    labels.insert(QUEUE.to_owned(), queue.clone());
                    labels.extend(self.queues.label(queue, &policy));
                    Arc::new(template)
                });
                submission.template = Arc::clone(template);
            }
            submission
        });
        Ok(RunConfig {
            policy,
            objects,
            submissions: submissions.collect(),
            start: self.start,
            end: self.end,
            faults: self.faults,
            soft_eviction_micros: self.soft_eviction_micros,
            gpus: self.gpus.clone(),
            sample_micros: ((self.end.0 - self.start.0) / SAMPLES).max(1_000_000),
            explains: false,
            seed: self.seed,
            #[cfg(feature = "deliberate-bugs")]
            bug: None,
        })
    }

    fn queue_objects(&self, policy: &Policy, nodes: &[Object]) -> Vec<Object> {
        match policy {
            Policy::Kubernetes(_) => Vec::new(),
            Policy::YuniKorn(_) => vec![Object::from(config_map(&self.queues, |_| json!({})))],
            Policy::Koordinator(_) => elastic_quotas(&self.queues).map(Object::from).collect(),
            Policy::Kueue(_) => {
                let capacity = total_allocatable(nodes);
                to_kueue::queue_objects(&self.queues, &capacity, &capacity, &BTreeSet::from([NAMESPACE]))
            }
        }
    }

    /// The scheduler ignores an invalid configuration and keeps the previous one; the author of a scenario gets an error instead.
    fn reject_invalid(&self, each: &[Object], policy: &Policy) -> Result<(), InputError> {
        let source = Source { file: self.name.as_str().into(), document: 1, item: None };
        let mut objects = ObjectSet::default();
        for object in each {
            objects.push(object, &source);
        }
        load_for(&objects, OnInvalid::Reject, policy).map(drop)
    }
}

fn is_read_by(object: &Object, policy: &Policy) -> bool {
    object.kind() == Kind::Job || reads(policy, object.kind())
}

/// The allocatable resources of all nodes together, except for pods.
fn total_allocatable(nodes: &[Object]) -> Amounts {
    let mut total = Amounts::new();
    for object in nodes {
        let Object::Node(node) = object else { continue };
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let amounts = requests::amounts(&allocatable, "status.allocatable").unwrap_or_default();
        for (resource, amount) in amounts.into_iter().filter(|(resource, _)| resource != "pods") {
            let sum = total.entry(resource).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    total
}

pub(crate) fn node(
    name: &str,
    labels: BTreeMap<String, String>,
    taints: &[Taint],
    allocatable: BTreeMap<String, Quantity>,
) -> Object {
    let spec = NodeSpec { taints: Some(taints.to_vec()), ..NodeSpec::default() };
    let labels = Some(labels).filter(|labels| !labels.is_empty());
    Object::from(Node {
        metadata: ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() },
        spec: Some(spec).filter(|_| !taints.is_empty()),
        status: Some(NodeStatus { allocatable: Some(allocatable), ..NodeStatus::default() }),
    })
}

/// A pod template with these requests.
pub(crate) fn template(priority: i32, requests: impl Iterator<Item = (String, Quantity)>) -> Pod {
    let resources = ResourceRequirements { requests: Some(requests.collect()), ..ResourceRequirements::default() };
    let container = Container { name: "main".to_owned(), resources: Some(resources), ..Container::default() };
    let spec = PodSpec { containers: vec![container], priority: Some(priority), ..PodSpec::default() };
    Pod::new(ObjectMeta::default(), spec)
}

//! What is to be simulated, before a policy is chosen: scenarios and traces become one of these, and it becomes a setup for each policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, ResourceRequirements, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reprieve_api::kinds::{Kind, Object, Reader};
use reprieve_api::object_set::ObjectSet;
use reprieve_api::pod::{Container, Pod, PodSpec};
use reprieve_api::source::{InputError, Source};
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::reader;
use reprieve_loader::requests::{self, Amounts};
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_koordinator::elastic_quotas;
use reprieve_translate::to_kueue;
use reprieve_translate::to_yunikorn::config_map;
use serde_json::json;

use crate::faults::Faults;
use crate::submission::Submission;
use crate::usage::QUEUE;
use crate::virtual_cluster::RunConfig;

/// How many samples a run takes.
const SAMPLES: i64 = 720;
/// The namespace of all that is submitted.
const NAMESPACE: &str = "default";

/// What is to be simulated under any policy.
#[derive(Clone, Debug)]
pub struct SimulationInput {
    /// What it is called.
    pub name: String,
    /// Nodes, classes, budgets, and accounts in some policy's own words.
    pub objects: Vec<Object>,
    /// Queues that become objects of each policy.
    pub queues: NeutralQueues,
    /// What is submitted, and to which queue.
    pub submissions: Vec<(Submission, Option<String>)>,
    /// When it begins.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// What goes wrong.
    pub faults: Faults,
    /// How long another operator takes to delete a pod that was labelled for it.
    pub soft_eviction_micros: i64,
    /// What was made up, in sentences.
    pub made_up: Vec<String>,
    /// Where chance comes from.
    pub seed: u64,
}

impl SimulationInput {
    /// The same under a policy; an error where the policy does not understand its objects.
    pub fn setup(&self, policy: Policy) -> Result<RunConfig, InputError> {
        let mut objects: Vec<Object> =
            self.objects.iter().filter(|object| is_read_by(object, &policy)).cloned().collect();
        let is_queue =
            |object: &Object| matches!(object.kind(), Kind::ConfigMap | Kind::ElasticQuota | Kind::ClusterQueue);
        if !self.queues.is_empty() && !objects.iter().any(is_queue) {
            let queues = self.queue_objects(&policy, &objects);
            objects.extend(queues);
        }
        self.refuse_misunderstood(&objects, &policy)?;
        // Submissions that are alike stay so: the memory of a run is in proportion to what differs.
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
            sample_micros: ((self.end.0 - self.start.0) / SAMPLES).max(1_000_000),
            explains: false,
            seed: self.seed,
            #[cfg(feature = "deliberate-bugs")]
            bug: None,
        })
    }

    /// The queues as objects of a policy.
    fn queue_objects(&self, policy: &Policy, nodes: &[Object]) -> Vec<Object> {
        match policy {
            Policy::Kubernetes(_) => Vec::new(),
            Policy::YuniKorn => vec![Object::from(config_map(&self.queues, |_| json!({})))],
            Policy::Koordinator(_) => elastic_quotas(&self.queues).map(Object::from).collect(),
            Policy::Kueue(_) => {
                let offered = offered(nodes);
                to_kueue::queue_objects(&self.queues, &offered, &offered, &BTreeSet::from([NAMESPACE]))
            }
        }
    }

    /// A scheduler keeps to what was in force before where it is told nonsense; whoever writes a scenario is told.
    fn refuse_misunderstood(&self, each: &[Object], policy: &Policy) -> Result<(), InputError> {
        let source = Source { file: self.name.as_str().into(), document: 1, item: None };
        let mut objects = ObjectSet::default();
        for object in each {
            objects.push(object, &source);
        }
        load_for(&objects, OnInvalid::Files, policy).map(drop)
    }
}

fn is_read_by(object: &Object, policy: &Policy) -> bool {
    let by = object.kind().resource().reader;
    object.kind() == Kind::Job || by == Reader::All || by == reader(policy)
}

/// What all nodes offer together, without the number of pods.
fn offered(nodes: &[Object]) -> Amounts {
    let mut offered = Amounts::new();
    for object in nodes {
        let Object::Node(node) = object else { continue };
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let amounts = requests::amounts(&allocatable, "status.allocatable").unwrap_or_default();
        for (resource, amount) in amounts.into_iter().filter(|(resource, _)| resource != "pods") {
            *offered.entry(resource).or_default() += amount;
        }
    }
    offered
}

/// A node of these labels that offers so much.
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

/// A pod that asks for so much and has this priority.
pub(crate) fn template(priority: i32, requests: impl Iterator<Item = (String, Quantity)>) -> Pod {
    let resources = ResourceRequirements { requests: Some(requests.collect()), ..ResourceRequirements::default() };
    let container = Container { name: "main".to_owned(), resources: Some(resources), ..Container::default() };
    let spec = PodSpec { containers: vec![container], priority: Some(priority), ..PodSpec::default() };
    Pod::new(ObjectMeta::default(), spec)
}

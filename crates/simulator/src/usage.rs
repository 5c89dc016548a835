//! How much of one resource the bound pods use: in total, by queue and by node, updated with each change of a pod. Amounts are whole GPUs,
//! or thousandths of a cpu.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{NamespacedName, Object, Pod};
use reprieve_engine::Timestamp;
use reprieve_loader::requests;
use reprieve_scheduler::action::SOFT_EVICTION;

use crate::job::Job;
use crate::run::{JobRecord, Sample};

/// The label that names the scenario's queue of a pod. Under every policy, the pods of a scenario or trace have it if their job
/// names a queue, beside the policy's own label.
pub(crate) const QUEUE: &str = "reprieve.dev/queue";
const GPU: &str = "nvidia.com/gpu";

#[derive(Default)]
pub(crate) struct Usage {
    /// The measured resource: `nvidia.com/gpu`, or `cpu` if no node has GPUs.
    pub resource: String,
    /// The allocatable amount of all nodes.
    pub capacity: i64,
    /// The amount of all bound pods that have not finished, terminating ones included.
    used: i64,
    /// The number of pods that are not bound to a node.
    pending: usize,
    pods: BTreeMap<NamespacedName, PodUsage>,
    on_node: BTreeMap<String, BTreeSet<NamespacedName>>,
    /// The part of `used` that belongs to each queue; pods without a queue are under the empty name.
    by_queue: BTreeMap<String, i64>,
}

/// The state of one pod, and the amount that it requests.
#[derive(Clone, Default)]
pub(crate) struct PodUsage {
    pub terminating: bool,
    pub soft_evicted: bool,
    pub node: Option<String>,
    queue: Option<String>,
    amount: i64,
    finished: bool,
}

impl Usage {
    /// Measures the nodes among the objects; there are no pods yet.
    pub fn new(objects: &[Object]) -> Self {
        let has_gpus = objects.iter().any(|object| allocatable(object, GPU) > 0);
        let resource = if has_gpus { GPU } else { "cpu" }.to_owned();
        let capacity = objects.iter().map(|object| allocatable(object, &resource)).sum();
        Self { resource, capacity, ..Self::default() }
    }

    /// Adds or updates a pod and returns its previous state, or the default for a new pod. The amount is computed once: simulated
    /// pods are not resized, and a recreated pod has a new name.
    pub fn put(&mut self, pod: &Pod) -> PodUsage {
        let name = NamespacedName::from_meta(&pod.metadata);
        let before = self.pods.get(&name).cloned().unwrap_or_default();
        let known = self.pods.contains_key(&name);
        let after = PodUsage {
            terminating: pod.metadata.deletion_timestamp.is_some(),
            soft_evicted: is_soft_evicted(pod),
            node: pod.node_name.clone(),
            queue: queue_of(pod),
            amount: if known { before.amount } else { requested(pod, &self.resource) },
            finished: pod.is_finished(),
        };
        self.remove(&name);
        if after.node.is_some() && !after.finished {
            self.used += after.amount;
            *self.by_queue.entry(after.queue.clone().unwrap_or_default()).or_default() += after.amount;
        }
        if let Some(node) = &after.node {
            self.on_node.entry(node.clone()).or_default().insert(name.clone());
        }
        self.pending += usize::from(after.node.is_none());
        self.pods.insert(name, after);
        before
    }

    /// Removes a pod, if it is known.
    pub fn remove(&mut self, name: &NamespacedName) {
        let Some(usage) = self.pods.remove(name) else { return };
        if usage.node.is_some() && !usage.finished {
            self.used -= usage.amount;
            *self.by_queue.entry(usage.queue.unwrap_or_default()).or_default() -= usage.amount;
        }
        if let Some(node) = &usage.node
            && let Some(pods) = self.on_node.get_mut(node)
        {
            pods.remove(name);
        }
        self.pending -= usize::from(usage.node.is_none());
    }

    /// All pods bound to a node, finished ones included.
    pub fn pods_on(&self, node: &str) -> Vec<NamespacedName> {
        self.on_node.get(node).into_iter().flatten().cloned().collect()
    }

    /// The allocatable amount of one node.
    pub fn capacity_of(&self, node: &Object) -> i64 {
        allocatable(node, &self.resource)
    }

    /// The usage at this time.
    pub fn sample(&self, now: Timestamp) -> Sample {
        let by_queue = self.by_queue.iter().map(|(queue, used)| (queue.clone(), *used)).collect();
        // Pods that start or terminate count too, and finished pods until the Job controller removes them a second later.
        let bound = self.pods.len() - self.pending;
        Sample { at: now.0, used: self.used, running: bound, pending: self.pending, by_queue }
    }

    /// The record of a job; its request is in the measured resource.
    pub fn job_record(&self, job: &Job) -> JobRecord {
        let submission = &job.submission;
        JobRecord {
            name: submission.name.to_string(),
            priority: submission.priority(),
            queue: queue_of(&submission.template),
            pods: submission.pods,
            gang: submission.gang,
            each: requested(&submission.template, &self.resource),
            submitted: submission.at.0,
            started: job.first_started.map(|at| at.0),
            finished: job.finished.map(|at| at.0),
            evictions: job.evictions,
            lost_micros: job.lost_micros,
            ran: job.all_ran(),
        }
    }
}

/// The allocatable amount of a node; 0 for other objects. Quantities were validated when the input was read.
fn allocatable(object: &Object, resource: &str) -> i64 {
    let Object::Node(node) = object else { return 0 };
    let quantities = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let amounts = quantities.and_then(|list| requests::amounts(list, "status.allocatable").ok());
    amounts.and_then(|amounts| amounts.get(resource).copied()).unwrap_or(0)
}

/// Whether a pod has the label by which Koordinator asks an operator outside the scheduler to delete the pod.
pub(crate) fn is_soft_evicted(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SOFT_EVICTION))
}

/// The request of a pod; 0 without one. Quantities were validated when the input was read.
fn requested(pod: &Pod, resource: &str) -> i64 {
    requests::requests(pod).ok().and_then(|amounts| amounts.get(resource).copied()).unwrap_or(0)
}

/// The queue that the labels of a pod name: the scenario's label, else that of YuniKorn, Koordinator or Kueue.
fn queue_of(pod: &Pod) -> Option<String> {
    let labels = pod.metadata.labels.as_ref()?;
    let known = [QUEUE, "queue", "quota.scheduling.koordinator.sh/name", "kueue.x-k8s.io/queue-name"];
    known.iter().find_map(|key| labels.get(*key)).cloned()
}

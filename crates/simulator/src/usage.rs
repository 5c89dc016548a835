//! The usage of the cluster, updated with each change of a pod.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{NamespacedName, Object, Pod};
use reprieve_engine::Timestamp;
use reprieve_loader::requests;
use reprieve_scheduler::action::SOFT_EVICTION;

use crate::job::Job;
use crate::run::{JobRecord, Sample};

/// The label of a pod with its queue in the scenario, under every policy.
pub(crate) const QUEUE: &str = "reprieve.dev/queue";
const GPU: &str = "nvidia.com/gpu";

#[derive(Default)]
pub(crate) struct Usage {
    /// The resource that usage is measured in: GPUs, or cpu if no node has GPUs.
    pub resource: String,
    pub capacity: i64,
    used: i64,
    pending: usize,
    pods: BTreeMap<NamespacedName, PodUsage>,
    on_node: BTreeMap<String, BTreeSet<NamespacedName>>,
    by_queue: BTreeMap<String, i64>,
}

/// The usage of one pod.
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
    pub fn new(objects: &[Object]) -> Self {
        let has_gpus = objects.iter().any(|object| capacity_of(object, GPU) > 0);
        let resource = if has_gpus { GPU } else { "cpu" }.to_owned();
        let capacity = objects.iter().map(|object| capacity_of(object, &resource)).sum();
        Self { resource, capacity, ..Self::default() }
    }

    /// Updates a pod; returns its previous usage.
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

    pub fn pods_on(&self, node: &str) -> Vec<NamespacedName> {
        self.on_node.get(node).into_iter().flatten().cloned().collect()
    }

    pub fn capacity_of(&self, node: &Object) -> i64 {
        capacity_of(node, &self.resource)
    }

    pub fn sample(&self, now: Timestamp) -> Sample {
        let by_queue = self.by_queue.iter().map(|(queue, used)| (queue.clone(), *used)).collect();
        let running = self.pods.len() - self.pending;
        Sample { at: now.0, used: self.used, running, pending: self.pending, by_queue }
    }

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

fn capacity_of(object: &Object, resource: &str) -> i64 {
    let Object::Node(node) = object else { return 0 };
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let amounts = allocatable.and_then(|list| requests::amounts(list, "status.allocatable").ok());
    amounts.and_then(|amounts| amounts.get(resource).copied()).unwrap_or(0)
}

/// Whether a pod has the label that asks another operator to delete it.
pub(crate) fn is_soft_evicted(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SOFT_EVICTION))
}

fn requested(pod: &Pod, resource: &str) -> i64 {
    requests::requests(pod).ok().and_then(|amounts| amounts.get(resource).copied()).unwrap_or(0)
}

/// The queue in the labels of a pod, under any policy.
fn queue_of(pod: &Pod) -> Option<String> {
    let labels = pod.metadata.labels.as_ref()?;
    let known = [QUEUE, "queue", "quota.scheduling.koordinator.sh/name", "kueue.x-k8s.io/queue-name"];
    known.iter().find_map(|key| labels.get(*key)).cloned()
}

//! How full the cluster is, kept up as pods come and go.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::kinds::Object;
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;
use reprieve_loader::requests;
use reprieve_scheduler::action::SOFT_EVICTION;

use crate::job::Job;
use crate::run::{JobRecord, Sample};

/// The label by which jobs of a scenario name their queue, whatever the policy.
pub(crate) const QUEUE: &str = "reprieve.dev/queue";
/// The accelerator that clusters are full of.
const GPU: &str = "nvidia.com/gpu";

/// How full the cluster is.
#[derive(Default)]
pub(crate) struct Usage {
    /// What it is counted in: GPUs, or cpu where no node has any.
    pub resource: String,
    pub capacity: i64,
    used: i64,
    pending: usize,
    pods: BTreeMap<NamespacedName, Counted>,
    on_node: BTreeMap<String, BTreeSet<NamespacedName>>,
    by_queue: BTreeMap<String, i64>,
}

/// How a pod is counted.
#[derive(Clone, Default)]
pub(crate) struct Counted {
    pub leaving: bool,
    pub soft: bool,
    pub node: Option<String>,
    queue: Option<String>,
    amount: i64,
    over: bool,
}

impl Usage {
    pub fn new(objects: &[Object]) -> Self {
        let has_gpus = objects.iter().any(|object| offered(object, GPU) > 0);
        let resource = if has_gpus { GPU } else { "cpu" }.to_owned();
        let capacity = objects.iter().map(|object| offered(object, &resource)).sum();
        Self { resource, capacity, ..Self::default() }
    }

    /// A pod as it is now; what it was is told.
    pub fn put(&mut self, pod: &Pod) -> Counted {
        let name = NamespacedName::from_meta(&pod.metadata);
        let before = self.pods.get(&name).cloned().unwrap_or_default();
        let known = self.pods.contains_key(&name);
        let after = Counted {
            leaving: pod.metadata.deletion_timestamp.is_some(),
            soft: is_soft_evicted(pod),
            node: pod.node_name.clone(),
            queue: queue_of(pod),
            amount: if known { before.amount } else { asked(pod, &self.resource) },
            over: pod.is_finished(),
        };
        self.remove(&name);
        if after.node.is_some() && !after.over {
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
        let Some(counted) = self.pods.remove(name) else { return };
        if counted.node.is_some() && !counted.over {
            self.used -= counted.amount;
            *self.by_queue.entry(counted.queue.unwrap_or_default()).or_default() -= counted.amount;
        }
        if let Some(node) = &counted.node
            && let Some(pods) = self.on_node.get_mut(node)
        {
            pods.remove(name);
        }
        self.pending -= usize::from(counted.node.is_none());
    }

    pub fn pods_on(&self, node: &str) -> Vec<NamespacedName> {
        self.on_node.get(node).into_iter().flatten().cloned().collect()
    }

    pub fn offered(&self, node: &Object) -> i64 {
        offered(node, &self.resource)
    }

    pub fn sample(&self, now: Timestamp) -> Sample {
        let by_queue = self.by_queue.iter().map(|(queue, used)| (queue.clone(), *used)).collect();
        let running = self.pods.len() - self.pending;
        Sample { at: now.0, used: self.used, running, pending: self.pending, by_queue }
    }

    /// What happened to a job.
    pub fn record(&self, job: &Job) -> JobRecord {
        let submission = &job.submission;
        JobRecord {
            name: submission.name.to_string(),
            priority: submission.priority(),
            queue: queue_of(&submission.template),
            pods: submission.pods,
            gang: submission.gang,
            each: asked(&submission.template, &self.resource),
            submitted: submission.at.0,
            started: job.first_started.map(|at| at.0),
            finished: job.finished.map(|at| at.0),
            evictions: job.evictions,
            lost_micros: job.lost_micros,
            ran: job.all_ran(),
        }
    }
}

fn offered(object: &Object, resource: &str) -> i64 {
    let Object::Node(node) = object else { return 0 };
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let amounts = allocatable.and_then(|list| requests::amounts(list, "status.allocatable").ok());
    amounts.and_then(|amounts| amounts.get(resource).copied()).unwrap_or(0)
}

/// Whether a pod is labelled for another operator to delete it.
pub(crate) fn is_soft_evicted(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SOFT_EVICTION))
}

fn asked(pod: &Pod, resource: &str) -> i64 {
    requests::requests(pod).ok().and_then(|amounts| amounts.get(resource).copied()).unwrap_or(0)
}

/// The queue that a pod names, whatever its policy calls it.
fn queue_of(pod: &Pod) -> Option<String> {
    let labels = pod.metadata.labels.as_ref()?;
    let known = [QUEUE, "queue", "quota.scheduling.koordinator.sh/name", "kueue.x-k8s.io/queue-name"];
    known.iter().find_map(|key| labels.get(*key)).cloned()
}

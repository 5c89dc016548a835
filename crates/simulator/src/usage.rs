//! How much of one resource the bound pods use: in total, by queue and by node, updated with each change of a pod. Amounts are whole GPUs,
//! or thousandths of a cpu. Different resources that count as GPUs are added up.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::{NamespacedName, Object, Pod};
use reprieve_engine::Timestamp;
use reprieve_loader::{Amounts, requests};
use reprieve_report::gpu_hours::GpuResources;
use reprieve_scheduler::action::SOFT_EVICTION;

use crate::job::Job;
use crate::run::{HeldNodes, JobRecord, Sample};

/// The label that names the scenario's queue of a pod. Under every policy, the pods of a scenario or trace have it if their job
/// names a queue, beside the policy's own label.
pub(crate) const QUEUE: &str = "reprieve.dev/queue";

#[derive(Default)]
pub(crate) struct Usage {
    pub measured: MeasuredResource,
    /// The allocatable amount of all nodes.
    pub capacity: i64,
    /// The amount of all bound pods that have not finished, terminating ones included.
    used: i64,
    /// The highest `used` so far.
    pub peak: i64,
    /// The number of pods that are not bound to a node.
    pending: usize,
    pods: BTreeMap<NamespacedName, PodUsage>,
    on_node: BTreeMap<String, BTreeSet<NamespacedName>>,
    /// The part of `used` that belongs to each queue; pods without a queue are under the empty name.
    by_queue: BTreeMap<String, i64>,
}

/// What is measured.
#[derive(Clone, Debug, Default)]
pub(crate) enum MeasuredResource {
    /// The resources that count as GPUs. If the nodes have only one, its name, and otherwise the patterns.
    Gpus { name: String, gpus: GpuResources },
    /// `cpu`, if no node has GPUs.
    #[default]
    Cpu,
}

impl MeasuredResource {
    fn of(objects: &[Object], gpus: &GpuResources) -> Self {
        let on_nodes = objects.iter().flat_map(|object| allocatable(object).into_iter());
        let on_nodes = on_nodes.filter(|(resource, amount)| *amount > 0 && gpus.includes(resource));
        let names: BTreeSet<String> = on_nodes.map(|(resource, _)| resource).collect();
        let mut names = names.into_iter();
        match (names.next(), names.next()) {
            (None, _) => Self::Cpu,
            (Some(name), None) => Self::Gpus { name, gpus: gpus.clone() },
            (Some(_), Some(_)) => Self::Gpus { name: gpus.to_string(), gpus: gpus.clone() },
        }
    }

    /// The name of the resource.
    pub fn name(&self) -> &str {
        match self {
            Self::Gpus { name, .. } => name,
            Self::Cpu => "cpu",
        }
    }

    /// The measured part of these amounts.
    pub fn of_amounts(&self, amounts: &Amounts) -> i64 {
        match self {
            Self::Gpus { gpus, .. } => gpus.of(amounts),
            Self::Cpu => amounts.get("cpu").copied().unwrap_or(0),
        }
    }

    /// The request of a pod; 0 without one. Quantities were validated when the input was read.
    fn requested(&self, pod: &Pod) -> i64 {
        requests::requests(pod).map_or(0, |amounts| self.of_amounts(&amounts))
    }
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
    pub fn new(objects: &[Object], gpus: &GpuResources) -> Self {
        let measured = MeasuredResource::of(objects, gpus);
        let capacity = objects.iter().map(|object| measured.of_amounts(&allocatable(object))).sum();
        Self { measured, capacity, ..Self::default() }
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
            amount: if known { before.amount } else { self.measured.requested(pod) },
            finished: pod.is_finished(),
        };
        self.remove(&name);
        if after.node.is_some() && !after.finished {
            self.used += after.amount;
            self.peak = self.peak.max(self.used);
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
        self.measured.of_amounts(&allocatable(node))
    }

    /// The usage at this time; `uncreated` is the number of pods that do not exist because their jobs wait for quota or for earlier pods.
    pub fn sample(&self, now: Timestamp, uncreated: usize) -> Sample {
        let by_queue = self.by_queue.iter().map(|(queue, used)| (queue.clone(), *used)).collect();
        // Pods that start or terminate count too, and finished pods until the Job controller removes them a second later.
        let bound = self.pods.len() - self.pending;
        Sample { at: now.0, used: self.used, running: bound, pending: self.pending + uncreated, by_queue }
    }

    /// The record of a job; its request is in the measured resource.
    pub fn job_record(&self, job: &Job, idle_micros: i64, held: Option<HeldNodes>) -> JobRecord {
        let submission = &job.submission;
        JobRecord {
            name: submission.name.to_string(),
            priority: submission.priority(),
            queue: queue_of(&submission.template),
            pods: submission.pods,
            gang: submission.gang,
            each: self.measured.requested(&submission.template),
            submitted: submission.at.0,
            started: job.first_started.map(|at| at.0),
            finished: job.finished.map(|at| at.0),
            evictions: job.evictions,
            lost_micros: job.lost_micros,
            idle_micros,
            finished_micros: job.finished_micros,
            held,
            ran: job.all_ran(),
        }
    }
}

/// The allocatable amounts of a node; none for other objects. Quantities were validated when the input was read.
fn allocatable(object: &Object) -> Amounts {
    let Object::Node(node) = object else { return Amounts::new() };
    let quantities = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    quantities.and_then(|list| requests::amounts(list, "status.allocatable").ok()).unwrap_or_default()
}

/// Whether a pod has the label by which Koordinator asks an operator outside the scheduler to delete the pod.
pub(crate) fn is_soft_evicted(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SOFT_EVICTION))
}

/// The queue that the labels of a pod name: the scenario's label, else that of YuniKorn, Koordinator or Kueue.
fn queue_of(pod: &Pod) -> Option<String> {
    let labels = pod.metadata.labels.as_ref()?;
    let known = [QUEUE, "queue", "quota.scheduling.koordinator.sh/name", "kueue.x-k8s.io/queue-name"];
    known.iter().find_map(|key| labels.get(*key)).cloned()
}

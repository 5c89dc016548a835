//! Reads the lists of nodes and pods of Alibaba's cluster-trace-gpu-v2023, called openb.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use reprieve_api::{InputError, NamespacedName, Object};
use reprieve_loader::QueueSpec;
use reprieve_translate::queue_tree::NeutralQueues;

use super::{OnInvalidLine, Row, SECOND, START, SkippedLines, Text, simulation_input};
use crate::input::{self, SimulationInput, template};
use crate::submission::Submission;

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model";
const PODS: &str =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
const MODEL: &str = "nvidia.com/gpu.product";
pub(super) const GPU: &str = "nvidia.com/gpu";

/// Each QoS class with its queue and its synthetic priority.
const QOS: [(&str, &str, i32); 4] = [
    ("BE", "best-effort", 0),
    ("Burstable", "burstable", 100),
    ("LS", "latency-sensitive", 200),
    ("Guaranteed", "guaranteed", 300),
];

pub(super) struct NodeLine {
    name: String,
    cpu_milli: i64,
    memory_mib: i64,
    pub gpus: i64,
    model: String,
}

struct PodLine {
    name: String,
    cpu_milli: i64,
    memory_mib: i64,
    gpus: i64,
    models: Vec<String>,
    qos: usize,
    created: i64,
    runs_seconds: i64,
}

/// The input of the simulation, and the skipped lines of both files.
pub fn openb(
    pods: Text<'_>,
    nodes: Text<'_>,
    on_invalid: OnInvalidLine,
) -> Result<(SimulationInput, SkippedLines), InputError> {
    let (nodes, mut skipped) = node_list(nodes, on_invalid)?;
    let (lines, skipped_pods) = pods.lines("pod", PODS, on_invalid, pod_line, |pod| &pod.name)?;
    skipped.lines += skipped_pods.lines;
    skipped.first = skipped.first.or(skipped_pods.first);
    let last = lines.iter().map(|pod| pod.created + pod.runs_seconds).max().unwrap_or(0);
    let (objects, submissions) = (nodes.iter().map(node).collect(), lines.iter().map(submission).collect());
    Ok((simulation_input(pods, objects, queues(&lines, &nodes), submissions, assumptions(), last + 86_400), skipped))
}

fn assumptions() -> Vec<String> {
    [
        "priorities: 300 for qos Guaranteed, 200 for LS, 100 for Burstable, 0 for BE",
        "queues: one for each qos, guaranteed a share of the GPUs in proportion to the GPU time that its pods request; policy Kubernetes has no queues",
        "a pod that requests part of a GPU receives a whole one",
        "a pod that was never scheduled in the trace runs as long as it waited in the trace",
        "no gangs and no checkpoints: pods are independent, and an evicted pod starts from the beginning; a pod takes 30s to terminate",
    ]
    .map(str::to_owned)
    .into()
}

pub(super) fn node_list(
    nodes: Text<'_>,
    on_invalid: OnInvalidLine,
) -> Result<(Vec<NodeLine>, SkippedLines), InputError> {
    nodes.lines("node", NODES, on_invalid, node_line, |node| &node.name)
}

fn node_line(row: &Row) -> Result<NodeLine, String> {
    Ok(NodeLine {
        name: name(row, 0, "sn")?,
        cpu_milli: row.number(1, "cpu_milli", 0)?,
        memory_mib: row.number(2, "memory_mib", 0)?,
        gpus: row.number(3, "gpu", 0)?,
        model: row.text(4).to_owned(),
    })
}

pub(super) fn name(row: &Row, index: usize, column: &str) -> Result<String, String> {
    let text = row.text(index).to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if text.is_empty() || text.len() > 200 || !text.chars().all(fits) {
        return Err(format!("{column}: {text:?} is not a name; write letters, digits, - and ."));
    }
    Ok(text)
}

pub(super) fn node(line: &NodeLine) -> Object {
    let mut allocatable = BTreeMap::from([
        ("cpu".to_owned(), Quantity(format!("{}m", line.cpu_milli))),
        ("memory".to_owned(), Quantity(format!("{}Mi", line.memory_mib))),
        ("pods".to_owned(), Quantity("256".to_owned())),
    ]);
    if line.gpus > 0 {
        allocatable.insert(GPU.to_owned(), Quantity(line.gpus.to_string()));
    }
    let mut labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), line.name.clone())]);
    if !line.model.is_empty() {
        labels.insert(MODEL.to_owned(), line.model.clone());
    }
    input::node(&line.name, labels, &[], allocatable)
}

fn pod_line(row: &Row) -> Result<PodLine, String> {
    let qos = row.text(6);
    let unknown = || format!("qos: {qos:?} is not known; write BE, Burstable, LS or Guaranteed");
    let created = row.number(8, "creation_time", 0)?;
    let started = if row.text(10).is_empty() { created } else { row.number(10, "scheduled_time", 0)? };
    let deleted = row.number(9, "deletion_time", 0)?;
    if deleted < started {
        return Err(format!("deletion_time: {deleted} is before the pod was scheduled, at {started}"));
    }
    row.number(4, "gpu_milli", 0)?;
    Ok(PodLine {
        name: name(row, 0, "name")?,
        cpu_milli: row.number(1, "cpu_milli", 0)?,
        memory_mib: row.number(2, "memory_mib", 0)?,
        gpus: row.number(3, "num_gpu", 0)?,
        models: row.text(5).split('|').filter(|model| !model.is_empty()).map(str::to_owned).collect(),
        qos: QOS.iter().position(|(name, ..)| *name == qos).ok_or_else(unknown)?,
        created,
        runs_seconds: (deleted - started).max(1),
    })
}

fn submission(pod: &PodLine) -> (Submission, Option<String>) {
    let (_, queue, priority) = QOS[pod.qos];
    let mut requests = vec![
        ("cpu".to_owned(), Quantity(format!("{}m", pod.cpu_milli))),
        ("memory".to_owned(), Quantity(format!("{}Mi", pod.memory_mib))),
    ];
    if pod.gpus > 0 {
        requests.push((GPU.to_owned(), Quantity(pod.gpus.to_string())));
    }
    let mut template = template(priority, requests.into_iter());
    if !pod.models.is_empty() {
        template.spec_mut().affinity = Some(requires_one_of(&pod.models));
    }
    let submission = Submission {
        name: NamespacedName::new("default", &pod.name),
        at: START.plus_micros(pod.created * SECOND),
        pods: 1,
        gang: None,
        template: template.into(),
        running_micros: Some(pod.runs_seconds * SECOND),
        checkpoint_micros: None,
        startup_micros: 0,
        stop_micros: 30 * SECOND,
    };
    (submission, Some(queue.to_owned()))
}

fn requires_one_of(models: &[String]) -> Affinity {
    let requirement =
        NodeSelectorRequirement { key: MODEL.to_owned(), operator: "In".to_owned(), values: Some(models.to_vec()) };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), match_fields: None };
    let required = NodeSelector { node_selector_terms: vec![term] };
    let required_during_scheduling_ignored_during_execution = Some(required);
    let node_affinity = NodeAffinity { required_during_scheduling_ignored_during_execution, ..NodeAffinity::default() };
    Affinity { node_affinity: Some(node_affinity), ..Affinity::default() }
}

/// A queue for each QoS class, with a guarantee in proportion to the GPU time that its pods request.
fn queues(pods: &[PodLine], nodes: &[NodeLine]) -> NeutralQueues {
    let gpus: i128 = nodes.iter().map(|node| i128::from(node.gpus)).sum();
    let requested = |qos: usize| -> i128 {
        let pods = pods.iter().filter(|pod| pod.qos == qos);
        pods.map(|pod| i128::from(pod.gpus) * i128::from(pod.runs_seconds)).sum()
    };
    let total: i128 = (0..QOS.len()).map(requested).sum();
    let queue = |qos: usize| {
        let share = i64::try_from(gpus * requested(qos) / total.max(1)).expect("a share of all GPUs");
        let guarantee = BTreeMap::from([(GPU.to_owned(), share)]);
        QueueSpec { name: QOS[qos].1.to_owned(), guarantee, ..QueueSpec::default() }
    };
    (0..QOS.len()).map(queue).collect()
}

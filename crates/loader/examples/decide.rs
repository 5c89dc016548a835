// Loads objects, decides for one pod, and prints the victims and why every other pod stays.
// Run it with: cargo run -p reprieve-loader --example decide

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::PreemptorRef;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::{Outcome, UnitId, decide_and_explain};
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::preemptor;
use reprieve_loader::time::{parse_time, timestamp};

const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 2, pods: 10}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: batch}, spec: {nodeName: node-1, priority: 10, containers: [{resources: {requests: {cpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: serving}, spec: {nodeName: node-1, priority: 1000, containers: [{resources: {requests: {cpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: urgent}, spec: {priority: 100, containers: [{resources: {requests: {cpu: 1}}}]}}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut objects = ObjectSet::default();
    for document in documents("cluster.yaml", CLUSTER) {
        document.read(&mut objects)?;
    }
    let policy = Policy::Kubernetes(Kubernetes::default());
    let mut loaded = load_for(&objects, OnInvalid::Quarantine, &policy)?;
    let urgent = PreemptorRef { kind: "Pod".into(), namespace: "default".into(), name: "urgent".into() };
    let urgent = preemptor(&urgent, "Kubernetes", &loaded)?;
    let now = timestamp(parse_time("2026-01-01T01:00:00Z")?);
    let (decision, explanation) = decide_and_explain(&mut loaded.snapshot, &policy, urgent, now);
    let pods = |unit: UnitId| -> Vec<String> {
        loaded.snapshot.unit(unit).pods.iter().map(|&pod| loaded.names.pod(pod).to_string()).collect()
    };
    if let Outcome::Preempt(plan) = &decision.outcome {
        plan.victims.iter().for_each(|&victim| println!("evict {}", pods(victim).join(", ")));
        plan.placement.iter().for_each(|&(_, node)| println!("place it on {}", loaded.names.node(node)));
    }
    for entry in &explanation.spared {
        println!("keep {}: {:?}", pods(entry.unit).join(", "), entry.spared);
    }
    Ok(())
}

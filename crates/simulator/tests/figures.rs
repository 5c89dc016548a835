//! The figures by which policies are compared.

use reprieve_loader::policy::policy;
use reprieve_report::gpu_hours::GpuResources;
use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::invariants::check;
use reprieve_simulator::run::Run;
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::summary::{StuckGang, Summary, summary};

fn input(spec: &str) -> SimulationInput {
    let head = "apiVersion: reprieve.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n";
    Scenario::read("scenario", &format!("{head}{spec}")).unwrap().input(0)
}

fn run(input: &SimulationInput, name: &str) -> (Run, Summary) {
    let policy = policy(&reprieve_api::Profile::of_policy(name)).unwrap();
    let run = check(input.setup(policy).unwrap()).unwrap_or_else(|violation| panic!("{violation:?}"));
    let summary = summary(name, &run, &input.queues);
    (run, summary)
}

/// A gang needs 8 GPUs, of which 4 are free as long as the service runs.
const TWO_GANGS: &str = "
  end: 3h
  nodes: [{name: node, count: 2, allocatable: {cpu: 8, nvidia.com/gpu: 8}}]
  queues: [{name: q}]
  jobs:
  - {name: service, arrivals: {at: [0s]}, pods: 3, gang: {}, requests: {nvidia.com/gpu: 4}, queue: q}
  - {name: train, arrivals: {at: [1h]}, pods: 2, gang: {}, requests: {nvidia.com/gpu: 4}, runs: 1h, queue: q}
";

#[test]
fn gang_that_holds_nodes_and_cannot_run_is_stuck_and_its_gpus_are_lost() {
    let input = input(TWO_GANGS);
    let (_, yunikorn) = run(&input, "YuniKorn");
    let stuck = StuckGang { job: "default/train-0".to_owned(), pods: 1, needed: 2, holds: 4.0, since_seconds: 3600 };
    assert_eq!(yunikorn.stuck, [stuck]);
    assert_eq!((yunikorn.idle_hours, yunikorn.lost_hours, yunikorn.goodput_hours), (8.0, 8.0, 0.0));
    let (_, kubernetes) = run(&input, "Kubernetes");
    assert_eq!((kubernetes.stuck.len(), kubernetes.idle_hours, kubernetes.lost_hours), (0, 0.0, 0.0));
}

#[test]
fn goodput_is_the_work_of_finished_pods() {
    let spec = TWO_GANGS
        .replace("pods: 3, gang: {}", "pods: 2")
        .replace("queue: q}\n  - {name: train", "runs: 30m, queue: q}\n  - {name: train");
    let (run, summary) = run(&input(&spec), "Kubernetes");
    assert_eq!((summary.finished, summary.goodput_hours, summary.lost_hours), (2, 4.0 + 8.0, 0.0), "{:?}", run.jobs);
}

#[test]
fn workloads_that_wait_for_quota_are_pending() {
    let spec = "
  end: 2h
  nodes: [{name: node, count: 1, allocatable: {cpu: 8, nvidia.com/gpu: 8}}]
  queues: [{name: q, guarantee: {nvidia.com/gpu: 4}, ceiling: {nvidia.com/gpu: 4}}]
  jobs:
  - {name: j, arrivals: {at: [0s, 1m]}, pods: 2, requests: {nvidia.com/gpu: 2}, queue: q}
";
    let (run, summary) = run(&input(spec), "Kueue");
    let last = run.samples.last().unwrap();
    assert_eq!((last.running, last.pending, summary.never_started), (2, 2, 1));
}

#[test]
fn resources_that_count_as_gpus_are_added_up() {
    let spec = "
  end: 2h
  nodes:
  - {name: a, count: 1, allocatable: {cpu: 8, nvidia.com/gpu: 8}}
  - {name: b, count: 1, allocatable: {cpu: 8, amd.com/gpu: 8, example.com/npu: 4}}
  jobs:
  - {name: n, arrivals: {at: [0s]}, requests: {nvidia.com/gpu: 8}, runs: 1h}
  - {name: a, arrivals: {at: [0s]}, requests: {amd.com/gpu: 8}, runs: 1h}
  - {name: x, arrivals: {at: [0s]}, requests: {example.com/npu: 4}, runs: 1h}
";
    let default = input(spec);
    let (measured, summary) = run(&default, "Kubernetes");
    assert_eq!((measured.capacity, measured.peak, summary.goodput_hours), (16, 16, 16.0));
    assert_eq!(summary.resource, "*/gpu*");
    let gpus: GpuResources = "example.com/npu".parse().unwrap();
    let (_, summary) = run(&SimulationInput { gpus, ..default }, "Kubernetes");
    assert_eq!((summary.resource.as_str(), summary.goodput_hours), ("example.com/npu", 4.0));
}

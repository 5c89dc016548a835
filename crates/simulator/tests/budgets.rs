//! A PodDisruptionBudget without allowed disruptions protects its pods if other victims are enough, and its status follows the pods.

use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::virtual_cluster::VirtualCluster;

const GUARDED: &str = "
apiVersion: reprieve.dev/v1alpha1
kind: Scenario
metadata: {name: guarded}
spec:
  end: 1h
  nodes: [{name: node, count: 2, allocatable: {cpu: 2, pods: 10}}]
  jobs:
  - {name: guarded, arrivals: {at: [0s]}, pods: 2, requests: {cpu: 1}, priority: 0, labels: {app: guarded}}
  - {name: plain, arrivals: {at: [10s]}, pods: 2, requests: {cpu: 1}, priority: 5}
  - {name: urgent, arrivals: {at: [10m]}, pods: 1, requests: {cpu: 1}, priority: 10, runs: 10m}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard, namespace: default}
spec: {minAvailable: MIN, selector: {matchLabels: {app: guarded}}}
";

fn first_victim(min_available: &str) -> String {
    let text = GUARDED.replace("MIN", min_available);
    let input = Scenario::read("guarded", &text).unwrap().input(0);
    let policy = Policy::Kubernetes(Kubernetes::default());
    let mut cluster = VirtualCluster::new(input.setup(policy).unwrap(), Box::new(|| 0));
    while cluster.advance(|_, _| ()) {}
    cluster.finish().evictions[0].job.clone()
}

#[test]
fn a_budget_without_allowed_disruptions_protects_its_pods() {
    assert!(first_victim("2").contains("plain"), "the budget allows no disruption of the lower pods");
    assert!(first_victim("1").contains("guarded"), "the budget allows one disruption");
    assert!(first_victim("\"50%\"").contains("guarded"), "half of two is one");
}

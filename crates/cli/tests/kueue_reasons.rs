//! The reasons for which `reprieve plan` spares workloads under policy Kueue, as recorded by the search.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// By workload, without its namespace: the law that spares it, and its text.
fn spared(case: &str) -> BTreeMap<String, (String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(case);
    let arguments = ["plan", "-o", "json", "-f"];
    let output = Command::new(env!("CARGO_BIN_EXE_reprieve")).args(arguments).arg(file).output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let entries = report["explanation"]["spared"].as_array().expect("it lists those who are spared");
    let word = |value: &Value| value.as_str().expect("it is a text").to_owned();
    let entry = |entry: &Value| {
        let name = word(&entry["workload"]).replace("default/", "");
        (name, (word(&entry["law"]), word(&entry["text"])))
    };
    entries.iter().map(entry).collect()
}

fn law<'s>(spared: &'s BTreeMap<String, (String, String)>, workload: &str) -> (&'s str, &'s str) {
    let (law, text) = spared.get(workload).unwrap_or_else(|| panic!("{workload} is not in {spared:?}"));
    (law, text)
}

#[test]
fn a_strategy_of_fair_sharing_that_refuses_is_named_with_the_shares() {
    let spared = spared("kueue-cohort/fair-equal-shares-take-nothing.yaml");
    let compared = "the preemptor's fair share (in thousandths) is 500,";
    assert_eq!(law(&spared, "b1"), ("FairShare", &*format!("{compared} not below the 500 of b")));
    assert_eq!(law(&spared, "b2"), ("FairShare", &*format!("{compared} above the 0 of b without the workload")));
    assert_eq!(law(&spared, "a1").0, "QueuePolicyNever");
}

#[test]
fn queue_back_at_its_nominal_quota_spares_its_workloads() {
    let spared = spared("kueue-classical/below-threshold-and-home-together.yaml");
    let text = "a-best-effort uses no more than its own quota of what is missing after the other evictions";
    assert_eq!(law(&spared, "a-best-effort-low"), ("WithinQuota", text));
}

/// Without either of them the preemptor would fit by borrowing, but a borrower preempts none of other queues here.
#[test]
fn workloads_that_a_borrower_may_not_preempt_are_spared_by_the_policy() {
    let spared = spared("kueue-classical/borrower-preempted-only-down-to-nominal.yaml");
    let laws: Vec<&str> = spared.values().map(|(law, _)| law.as_str()).collect();
    assert_eq!(laws, ["Priority", "QueuePolicyNever", "QueuePolicyNever"], "{spared:?}");
}

#[test]
fn unevaluated_workload_is_not_reached_instead_of_reprieved() {
    let spared = spared("kueue-classical/free-quota-counts.yaml");
    assert_eq!(law(&spared, "mid").0, "NotReached");
}

#[test]
fn preemption_delay_spares_the_workloads_that_would_be_victims() {
    let spared = spared("kueue-cohort/own-fair-pause-after-two-preemptions.yaml");
    let (law, text) = law(&spared, "borrower");
    assert!(law == "PreemptionDelay" && text.starts_with("the preemptor may not preempt before "), "{law}: {text}");
}

#[test]
fn no_law_is_reported_if_no_flavor_can_fit() {
    let spared = spared("kueue-classical/request-beyond-what-may-be-lent.yaml");
    assert!(!spared.is_empty() && spared.values().all(|(law, _)| law == "NotReached"), "{spared:?}");
}

/// A resource that no quota is about has no cell to report on.
#[test]
fn a_queue_without_resources_ends_no_plan() {
    let cluster = "\
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, spec: {resourceGroups: [{flavors: [{name: default}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: queue}, spec: {clusterQueue: a}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: in}, spec: {queueName: queue, podSets: [{template: {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 1}}}
";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cluster.yaml");
    std::fs::write(&file, cluster).expect("a file");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.arg("plan").arg("-f").arg(&file).args(["--policy", "Kueue", "--for", "workload/in", "-o", "json"]);
    let output = command.output().expect("reprieve runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"outcome\": \"Schedule\""), "{output:?}");
}

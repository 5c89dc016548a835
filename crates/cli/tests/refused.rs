//! Preemptors that every command refuses with a law: unsupported requirements, scheduling gates, and gang members of another scheduler.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn case(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(format!("{name}.yaml"));
    path.display().to_string()
}

fn reprieve(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reprieve")).args(arguments).output().expect("reprieve runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&reprieve(arguments).stdout).expect("it prints JSON")
}

#[test]
fn unsupported_field_is_named() {
    for (name, field) in [
        ("kubernetes-pod/own-a-pod-with-a-claim-is-refused", "spec.volumes[1].persistentVolumeClaim"),
        ("kubernetes-pod/own-a-pod-with-an-ephemeral-volume-is-refused", "spec.volumes[1].ephemeral"),
        ("kubernetes-pod/own-a-pod-with-an-inline-disk-is-refused", "spec.volumes[1].gcePersistentDisk"),
        ("kubernetes-pod/own-a-pod-with-a-device-claim-is-refused", "spec.resourceClaims[0]"),
        ("kubernetes-pod/own-a-pod-that-needs-a-feature-of-the-node-is-refused", "spec.hostUsers"),
        (
            "kubernetes-group/own-a-gang-with-a-member-that-has-a-claim-is-refused",
            "spec.volumes[0].persistentVolumeClaim",
        ),
        ("kubernetes-group/own-a-group-with-device-claims-is-refused", "PodGroup default/gang: spec.resourceClaims[0]"),
        (
            "kueue-options/own-a-topology-request-is-refused",
            "Workload default/urgent: spec.podSets[0].topologyRequest.required",
        ),
        (
            "kueue-options/own-admission-checks-of-its-queue-are-refused",
            "ClusterQueue team: spec.admissionChecksStrategy",
        ),
        ("kueue-options/own-a-stopped-local-queue-hands-on-nothing", "LocalQueue default/team: spec.stopPolicy"),
        ("kueue-options/own-a-flavor-with-a-topology-is-refused", "ResourceFlavor default: spec.topologyName"),
        (
            "koordinator/own-a-pod-that-needs-a-reservation-is-refused",
            "metadata.annotations[scheduling.koordinator.sh/reservation-affinity]",
        ),
    ] {
        let output = reprieve(&["plan", "-f", &case(name)]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(4), "{name}: {text}");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("UNSCHEDULABLE") && first.contains("cannot be scheduled"), "{name}: {first}");
        assert!(first.contains(field), "{name}: {first}");
        let law = &json(&["plan", "-f", &case(name), "-o", "json"])["explanation"]["law"];
        assert_eq!((&law["name"], &law["field"]), (&"Unsupported".into(), &field.into()), "{name}");
    }
}

#[test]
fn gates_are_listed() {
    let name = case("kubernetes-pod/own-a-gated-pod-preempts-nothing");
    let output = reprieve(&["plan", "-f", &name]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("example.com/quota, example.com/licence"), "{text}");
    let law = &json(&["plan", "-f", &name, "-o", "json"])["explanation"]["law"];
    assert_eq!(law["name"], "SchedulingGates");
    assert_eq!(law["gates"], serde_json::json!(["example.com/quota", "example.com/licence"]));
}

#[test]
fn first_line_has_the_assumptions() {
    let name = case("kubernetes-pod/own-a-pod-with-a-claim-is-refused");
    let output = reprieve(&["plan", "-f", &name, "--assume", "volumes,claims"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("PREEMPT") && first.contains("assuming that claims and volumes"), "{first}");
    let refused = stdout(&reprieve(&["plan", "-f", &name]));
    assert!(refused.contains("add --assume volumes to assume that every node satisfies the requirement"), "{refused}");
    let report = json(&["plan", "-f", &name, "--assume", "volumes,claims", "-o", "json"]);
    assert_eq!(report["assumed"], serde_json::json!(["claims", "volumes"]));
    assert_eq!(reprieve(&["plan", "-f", &name, "--assume", "claims"]).status.code(), Some(4), "it has volumes");
    let wrong = reprieve(&["plan", "-f", &name, "--assume", "weather"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("write volumes, claims, features"), "{wrong:?}");
    let workload = case("kueue-options/own-claimed-devices-are-refused");
    assert_eq!(reprieve(&["plan", "-f", &workload, "--assume", "claims"]).status.code(), Some(2));
    let checks = case("kueue-options/own-admission-checks-of-its-queue-are-refused");
    assert!(!stdout(&reprieve(&["plan", "-f", &checks])).contains("--assume"), "no assumption helps");
}

#[test]
fn a_plan_with_assumptions_can_be_recorded() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let name = case("kubernetes-pod/own-a-pod-with-a-claim-is-refused");
    let recorded = reprieve(&["plan", "-f", &name, "--assume", "volumes", "-o", "test"]);
    let file = folder.path().join("recorded.yaml");
    std::fs::write(&file, recorded.stdout).expect("it is written");
    let output = reprieve(&["test", &file.display().to_string()]);
    assert!(output.status.success(), "{}", stdout(&output));
}

#[test]
fn every_policy_refuses_unsupported_requirements() {
    for name in [
        "kubernetes-pod/own-a-pod-with-a-claim-is-refused",
        "kubernetes-pod/own-a-gated-pod-preempts-nothing",
        "kubernetes-group/own-a-gated-member-does-not-count-toward-the-minimum",
        "yunikorn/own-a-pod-with-a-claim-is-refused",
        "koordinator/own-a-job-with-a-claim-is-refused",
        "kueue-options/own-a-topology-request-is-refused",
    ] {
        let report = json(&["compare", "-f", &case(name), "-o", "json"]);
        let results = report["results"].as_array().expect("there are results");
        assert!(results.iter().any(|result| result["outcome"] == "Unschedulable"), "{name}: {results:#?}");
        for result in results {
            assert_eq!(result["victims"], serde_json::json!([]), "{name}: {result:#}");
            assert!(result["outcome"] != "Schedule" && result["outcome"] != "Preempt", "{name}: {result:#}");
        }
    }
}

#[test]
fn what_is_not_evaluated_elsewhere_is_a_warning() {
    let name = case("kueue-options/own-admission-checks-of-another-queue-do-not-matter");
    let report = json(&["plan", "-f", &name, "-o", "json"]);
    let warnings = report["warnings"].as_array().expect("there are warnings");
    let expected = "ClusterQueue other: spec.admissionChecksStrategy is not evaluated";
    assert!(warnings.iter().any(|warning| warning == expected), "{warnings:?}");
}

#[test]
fn what_other_workloads_ask_for_is_a_warning() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let text =
        std::fs::read_to_string(case("kueue-options/own-a-topology-request-that-asks-for-none")).expect("a case");
    let held = text.replacen("count: 1, template", "count: 1, topologyRequest: {required: rack}, template", 1);
    let file = folder.path().join("case.yaml");
    std::fs::write(&file, held).expect("it is written");
    let report = json(&["plan", "-f", &file.display().to_string(), "-o", "json"]);
    assert_eq!(report["outcome"], "Preempt", "{report:#}");
    let expected = "Workload default/low: spec.podSets[0].topologyRequest.required is not evaluated";
    assert_eq!(report["warnings"], serde_json::json!([expected]));
}

#[test]
fn scheduler_name_flag_sets_the_deciding_scheduler() {
    let name = case("kubernetes-group/own-a-member-of-another-scheduler-is-not-placed");
    let report = json(&["plan", "-f", &name, "--scheduler-name", "other", "-o", "json"]);
    assert_eq!(report["explanation"]["law"]["name"], "OtherScheduler", "{report:#}");
}

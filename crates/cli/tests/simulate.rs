//! `reprieve simulate` from the command line: output, errors and exit status.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn reprieve(args: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_reprieve")).arg("simulate").args(args).current_dir(root).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = reprieve(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(args: &[&str]) -> String {
    let output = reprieve(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

const JOBS: [&str; 4] = ["--trace", "docs/examples/traces/jobs.csv", "--format", "jobs"];
const OPENB: [&str; 4] = ["--trace", "docs/examples/traces/openb_pod_list_sample.csv", "--format", "openb"];
const SCENARIO: &str = "docs/examples/scenarios/training-job.yaml";

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(more).copied().collect()
}

#[test]
fn output_depends_on_the_seed_only() {
    let args = with(&JOBS, &["--policy", "Kubernetes,koordinator"]);
    let text = stdout(&args);
    assert_eq!(text, stdout(&args));
    assert_ne!(text, stdout(&with(&args, &["--seed", "1"])));
    assert!(text.contains("KUBERNETES"), "{text}");
}

#[test]
fn every_output_lists_the_synthetic_data() {
    for trace in [JOBS, OPENB] {
        for output in ["table", "json", "csv"] {
            let text = stdout(&with(&trace, &["--policy", "Kubernetes", "-o", output, "--until", "2h"]));
            assert!(text.contains("priorities"), "{output}: {text}");
            assert!(text.contains("checkpoints"), "{output}: {text}");
        }
    }
}

#[test]
fn json_has_a_summary_for_each_policy_of_the_scenario() {
    let value: Value = serde_json::from_str(&stdout(&[SCENARIO, "-o", "json"])).unwrap();
    assert_eq!(value["kind"], "Simulation");
    let policies = value["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 1);
    assert_eq!(policies[0]["policy"], "Kubernetes");
    assert_eq!(policies[0]["evictions"], 6);
    assert_eq!(policies[0]["partialGangs"], 0);
}

#[test]
fn best_value_of_each_row_is_marked_and_the_direction_is_given() {
    let text = stdout(&with(&JOBS, &["--policy", "Kubernetes,Koordinator", "--seed", "1"]));
    let row =
        |title: &str| text.lines().find(|line| line.starts_with(title)).unwrap_or_else(|| panic!("{title}: {text}"));
    assert!(row("pods evicted").contains("lower") && row("pods evicted").ends_with(" *"), "{text}");
    assert!(row("GPU-hours of finished work (goodput)").contains("higher"), "{text}");
    assert!(!row("jobs finished").contains('*'), "all policies have the same value: {text}");
}

#[test]
fn a_trace_that_never_fills_the_cluster_offers_a_higher_load() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.csv");
    std::fs::write(&list, "job,submit_s,gpus,duration_s\na,0,1,60\nb,8000,1,60\n").unwrap();
    let args = ["--trace", list.to_str().unwrap(), "--format", "jobs", "--policy", "Kubernetes"];
    let text = stdout(&args);
    assert!(text.contains("note: the trace never fills the cluster: at most 12%"), "{text}");
    assert!(text.contains("--load 8 "), "{text}");
    let value: Value = serde_json::from_str(&stdout(&with(&args, &["--load", "2", "-o", "json"]))).unwrap();
    let faster = value["assumptions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|note| note == "load: jobs arrive 2 times as fast as in the trace");
    assert!(faster && value["notes"].as_array().unwrap().len() == 1, "{value}");
    let refusal = refusal(&with(&args, &["--load", "0"]));
    assert!(refusal.contains("write a number from 0.01 to 1000"), "{refusal}");
}

#[test]
fn until_sets_an_earlier_end() {
    let value: Value = serde_json::from_str(&stdout(&[SCENARIO, "-o", "json", "--until", "2h"])).unwrap();
    assert_eq!((&value["end"], &value["policies"][0]["evictions"]), (&"2026-01-05T02:00:00Z".into(), &4.into()));
}

#[test]
fn invalid_input_is_refused_with_its_location() {
    let broken = tempfile::tempdir().unwrap();
    let list = broken.path().join("list.csv");
    std::fs::write(&list, "job,submit_s,gpus,duration_s\na,0,1,60\nb,0,many,60\n").unwrap();
    let list = list.to_str().unwrap();
    let scenario = broken.path().join("unknown.yaml");
    let text = "apiVersion: reprieve.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {end: 1h, nods: []}\n";
    std::fs::write(&scenario, text).unwrap();
    for (args, problem) in [
        (vec![SCENARIO, "--until", "0s"], "--until 0s: is not after the start"),
        (vec![SCENARIO, "--until", "noon"], "neither a time nor a duration"),
        (vec![SCENARIO, "--policy", "Volcano"], "--policy: \"Volcano\" is not a policy"),
        (vec!["missing.yaml"], "missing.yaml"),
        (vec![scenario.to_str().unwrap()], "unknown field `nods`"),
        (vec!["--trace", list, "--format", "jobs"], "line 3: gpus: \"many\""),
        (vec!["--trace", list, "--format", "openb"], "openb_node_list_all_node.csv"),
        (vec!["--trace", list], "--format"),
        (vec![], "FILE"),
        (vec!["--check", "--policy", "Volcano"], "unknown policy; write one of Kubernetes"),
    ] {
        let refusal = refusal(&args);
        assert!(refusal.contains(problem), "{args:?}: {refusal}");
    }
    let skipping = stdout(&["--trace", list, "--format", "jobs", "--skip-invalid", "--policy", "Kubernetes"]);
    assert!(skipping.contains("1 invalid line skipped; the first: "), "{skipping}");
}

#[test]
fn check_prints_the_totals_of_each_policy() {
    let text = stdout(&["--check", "--seeds", "2", "--policy", "Kubernetes"]);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("Kubernetes")).collect();
    assert_eq!(rows.len(), 2, "without and with faults: {text}");
    let value: Value =
        serde_json::from_str(&stdout(&["--check", "--seeds", "1", "--faults", "some", "-o", "json"])).unwrap();
    let results = value["results"].as_array().unwrap();
    assert!(results.iter().all(|one| one["steps"].as_u64() > Some(0) && one["violated"] == Value::Array(Vec::new())));
    assert!(results.iter().any(|one| one["faults"].as_u64() > Some(0)));
}

//! Bad queues: what YuniKorn refuses is refused, with an error that names the queue and says what would be right; where YuniKorn falls back
//! in silence, the same value is used, with a warning.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const TEST: &str = r#"apiVersion: reprieve.dev/v1alpha1
kind: PreemptionTest
metadata: {name: case}
spec:
  profile: {policy: YuniKorn}
  preemptor: {kind: Pod, namespace: default, name: urgent}
  expect: {outcome: Preempt, victims: [{pod: default/low-2}]}
"#;

const NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "2", pods: "10"}}
"#;

const QUEUES: &str = "
        - name: parent
          resources: {guaranteed: {vcore: \"2\"}, max: {vcore: \"4\"}}
          queues:
          - {name: prod, resources: {guaranteed: {vcore: \"1\"}}, properties: {}}
          - {name: test, resources: {guaranteed: {vcore: \"1\"}}}
";

fn config(queues: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: yunikorn-configs, namespace: yunikorn}}\ndata:\n  queues.yaml: |\n    \
         partitions:\n    - name: default\n      queues:\n      - name: root\n        queues:{queues}"
    )
}

fn pod(name: &str, queue: &str, minute: u32, running: bool) -> String {
    let (place, phase) = if running { ("nodeName: node-1, ", "Running") } else { ("", "Pending") };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{namespace: default, name: {name}, creationTimestamp: \
         \"2026-01-01T00:{minute:02}:00Z\", labels: {{queue: {queue}, applicationId: {name}}}}}\nspec: {{{place}containers: \
         [{{name: c, resources: {{requests: {{cpu: \"1\"}}}}}}]}}\nstatus: {{phase: {phase}}}\n"
    )
}

fn run(arguments: &[&str], config: &str, queue: &str) -> (Output, TempDir) {
    let folder = TempDir::new().expect("a temporary folder");
    let path: PathBuf = folder.path().join("case.yaml");
    let test = "root.parent.test";
    let (first, second) = (pod("low-1", test, 1, true), pod("low-2", test, 2, true));
    let documents = [TEST, config, NODE, &first, &second, &pod("urgent", queue, 50, false)];
    std::fs::write(&path, documents.join("\n---\n")).expect("the file is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    (command.args(arguments).arg(&path).stdin(Stdio::null()).output().expect("reprieve runs"), folder)
}

/// `test` and `plan` refuse the file with the same error, which holds all of `parts`.
fn refused(config: &str, queue: &str, parts: &[&str]) {
    for (arguments, status) in [(["test"].as_slice(), 2), (["plan", "-f"].as_slice(), 1)] {
        let (output, _folder) = run(arguments, config, queue);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?} {text}");
        assert!(!text.contains("panicked"), "{text}");
        for part in parts.iter().chain(&["case.yaml"]) {
            assert!(text.contains(part), "{arguments:?}: {part:?} is missing in {text}");
        }
    }
}

/// `plan` decides without the broken queue, and warns with all of `parts`.
fn set_aside(config: &str, queue: &str, parts: &[&str]) {
    let (output, _folder) = run(&["plan", "-f"], config, queue);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(1), "{text}");
    for part in parts.iter().chain(&["warning: ", "ConfigMap yunikorn/yunikorn-configs", "set aside"]) {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

/// `plan` decides as without the change, and warns with all of `parts`.
fn warned(config: &str, parts: &[&str]) {
    let (output, _folder) = run(&["plan", "-o", "json", "-f"], config, "root.parent.prod");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let at = text.find("\"warnings\"").expect("a report has warnings");
    for part in parts {
        assert!(text[at..].contains(part), "{part:?} is missing in {}", &text[at..]);
    }
}

fn with_properties(properties: &str) -> String {
    config(&QUEUES.replace("properties: {}", &format!("properties: {{{properties}}}")))
}

#[test]
fn unchanged_documents_are_accepted() {
    let (output, _folder) = run(&["test"], &config(QUEUES), "root.parent.prod");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_configuration_that_does_not_parse() {
    let parts = ["document 2", "ConfigMap yunikorn/yunikorn-configs", "data[queues.yaml]"];
    refused(&config(&QUEUES.replace("queues:", "queues: [")), "root.parent.prod", &parts);
    refused(&config(&QUEUES.replace("name: prod", "name: [prod")), "root.parent.prod", &parts);
    let nothing =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yunikorn-configs, namespace: yunikorn}\ndata: {other: x}\n";
    refused(nothing, "root.parent.prod", &["data[queues.yaml]", "missing"]);
}

#[test]
fn an_amount_that_is_not_a_quantity() {
    let queues = QUEUES.replace("{vcore: \"4\"}", "{vcore: \"4x\"}");
    refused(&config(&queues), "root.parent.prod", &["root.parent", "vcore", "\"4x\""]);
}

#[test]
fn a_guarantee_above_its_own_maximum() {
    let queues = QUEUES.replace(
        "{guaranteed: {vcore: \"2\"}, max: {vcore: \"4\"}}",
        "{guaranteed: {vcore: \"5\"}, max: {vcore: \"4\"}}",
    );
    let parts = ["document 2", "root.parent", "guarantees 5 cpu", "root.parent has a maximum of 4", "lower"];
    refused(&config(&queues), "root.parent.prod", &parts);
}

#[test]
fn a_guarantee_above_the_maximum_of_the_parent() {
    let queues = QUEUES
        .replace("prod, resources: {guaranteed: {vcore: \"1\"}}", "prod, resources: {guaranteed: {vcore: \"5\"}}");
    let parts = ["root.parent.prod", "guarantees 5 cpu", "root.parent has a maximum of 4", "lower"];
    refused(&config(&queues), "root.parent.prod", &parts);
}

#[test]
fn a_maximum_above_the_maximum_of_the_parent() {
    let queues =
        QUEUES.replace("test, resources: {guaranteed: {vcore: \"1\"}}", "test, resources: {max: {vcore: \"5\"}}");
    let parts = ["root.parent.test", "has a maximum of 5 cpu", "root.parent has a maximum of 4", "lower"];
    set_aside(&config(&queues), "root.parent.prod", &parts);
}

#[test]
fn guarantees_that_together_exceed_the_guarantee_of_the_parent() {
    let queues = QUEUES
        .replace("prod, resources: {guaranteed: {vcore: \"1\"}}", "prod, resources: {guaranteed: {vcore: \"1500m\"}}");
    let parts = ["root.parent", "its children together are guaranteed 2500m cpu", "a guarantee of 2", "lower"];
    refused(&config(&queues), "root.parent.prod", &parts);
}

#[test]
fn two_queues_of_one_name() {
    let queues = QUEUES.replace("name: test", "name: Prod");
    set_aside(&config(&queues), "root.parent.prod", &["root.parent.prod", "two queues", "rename one"]);
}

#[test]
fn invalid_queue_name_is_refused() {
    for name in ["\"\"", "pr.od", "pr od"] {
        let queues = QUEUES.replace("name: prod", &format!("name: {name}"));
        set_aside(&config(&queues), "root.parent.test", &["is not a queue's name", "64"]);
    }
}

#[test]
fn a_pod_in_a_queue_that_does_not_exist() {
    let parts = ["document 6", "Pod default/urgent", "metadata.labels.queue", "root.parent.stage", "name another"];
    refused(&config(QUEUES), "root.parent.stage", &parts);
}

#[test]
fn a_pod_in_a_queue_that_is_a_parent() {
    let parts = ["document 6", "Pod default/urgent", "metadata.labels.queue", "root.parent", "leaf"];
    refused(&config(QUEUES), "root.parent", &parts);
    refused(&config(QUEUES), "root", &["Pod default/urgent", "root", "leaf"]);
}

#[test]
fn invalid_queue_properties_have_the_defaults_of_yunikorn() {
    for (properties, parts) in [
        ("preemption.speed: fast", ["root.parent.prod", "preemption.speed", "does not affect preemption"]),
        ("preemption.policy: fenced", ["preemption.policy", "fenced", "default is used"]),
        ("preemption.delay: 1day", ["preemption.delay", "1day", "30s is used"]),
        ("preemption.delay: -5s", ["preemption.delay", "-5s", "30s is used"]),
        ("preemption.delay: \"30\"", ["preemption.delay", "30", "30s is used"]),
        ("priority.offset: high", ["priority.offset", "high", "0 is used"]),
        ("priority.policy: strict", ["priority.policy", "strict", "default is used"]),
    ] {
        warned(&with_properties(properties), &parts);
    }
}

#[test]
fn zero_of_everything_counts_as_none() {
    let queues = format!(
        "{QUEUES}        - {{name: other, resources: {{guaranteed: {{vcore: \"0\"}}, max: {{memory: \"0\"}}}}}}\n"
    );
    warned(&config(&queues), &["root.other", "guaranteed", "max", "zero of everything counts as none"]);
}

#[test]
fn limits_of_the_root_queue_are_ignored() {
    let text = config(QUEUES).replace("- name: root\n", "- name: root\n        resources: {max: {vcore: \"1\"}}\n");
    warned(&text, &["queue root", "max", "the root has none of its own"]);
}

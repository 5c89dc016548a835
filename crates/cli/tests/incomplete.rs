//! Files that lack what a decision needs are refused by both `plan` and `compare`, with the command that exports it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const NODE: &str =
    "{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 4, pods: 10}}}\n";
const CLASS: &str = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: 9}\n";
const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: low}
spec: {nodeName: node-1, priority: 1, priorityClassName: bronze, containers: [{name: c, resources: {requests: {cpu: 4}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec: {priority: 9, priorityClassName: gold, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: system}
spec: {nodeName: node-1, priority: 9, priorityClassName: system-node-critical, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: ended}
spec: {nodeName: node-1, priority: 9, priorityClassName: silver, containers: [{name: c}]}
status: {phase: Succeeded}
";
const SERVICES: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- {apiVersion: v1, kind: Service, metadata: {name: b}}
";

struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is made");
            std::fs::write(path, text).expect("the file is written");
        }
        Self(folder)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null()).output().expect("reprieve runs")
    }

    /// Expects the same error of `plan` and `compare`.
    fn refused(&self, files: &[&str], error: &str) {
        for command in ["plan", "compare"] {
            let output = self.run(&[&[command, "--for", "pod/urgent", "-f"], files].concat());
            assert_eq!(output.status.code(), Some(1), "{command} {files:?}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: {error}\n"), "{command} {files:?}");
        }
    }
}

const ALL: &str =
    "kubectl get nodes,namespaces,priorityclasses,limitranges,runtimeclasses,poddisruptionbudgets,pods -A -o yaml";

#[test]
fn file_without_any_object_is_an_error_with_its_name() {
    let folder = Folder::with(&[
        ("cluster.yaml", NODE),
        ("empty.yaml", ""),
        ("blank.json", "\n  \n"),
        ("comments.yaml", "# nothing\n---\n# at all\n"),
        ("list.yaml", "apiVersion: v1\nkind: List\nitems: []\n"),
        ("list.json", r#"{"apiVersion": "v1", "kind": "PodList", "items": []}"#),
        ("folder/empty.yaml", ""),
        ("folder/comments.yaml", "# nothing\n"),
    ]);
    let rest = format!("write the output of this command into it: {ALL}");
    for (file, why) in [
        ("empty.yaml", "the input is empty"),
        ("blank.json", "the input is empty"),
        ("comments.yaml", "the input has only comments"),
        ("list.yaml", "the list has no items"),
        ("list.json", "the list has no items"),
        ("folder", "no file in this folder contains one"),
    ] {
        folder.refused(&[file], &format!("{file}: no object: {why}; {rest}"));
        folder.refused(&["cluster.yaml", file], &format!("{file}: no object: {why}; {rest}"));
    }
    folder.refused(&["-"], &format!("standard input: no object: the input is empty; {rest}"));
}

#[test]
fn empty_file_in_a_folder_with_others_is_ignored() {
    let folder = Folder::with(&[
        ("all/node.yaml", NODE),
        ("all/empty.yaml", ""),
        ("all/pods.yaml", PODS),
        ("class.yaml", CLASS),
    ]);
    let output = folder.run(&["plan", "--for", "pod/urgent", "-f", "all", "class.yaml"]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn files_without_an_object_that_a_decision_reads_are_an_error_that_lists_what_they_have() {
    let folder = Folder::with(&[("services.yaml", SERVICES)]);
    let error = "services.yaml: no object that a decision reads, only 2 v1 Service; add the output of:";
    folder.refused(&["services.yaml"], &format!("{error} {ALL}"));
}

#[test]
fn files_without_nodes_are_an_error() {
    let folder = Folder::with(&[("pods.yaml", PODS), ("class.yaml", CLASS)]);
    let error = "no Node in the input; add the output of: kubectl get nodes -o yaml";
    folder.refused(&["pods.yaml", "class.yaml"], &format!("pods.yaml, class.yaml: {error}"));
}

#[test]
fn files_without_priority_classes_are_an_error_if_pods_or_groups_name_any() {
    let folder = Folder::with(&[("pods.yaml", PODS), ("node.yaml", NODE)]);
    let error = "pods.yaml: document 1: Pod default/low: spec.priorityClassName: PriorityClass \"bronze\" is not in the input; \
                 PriorityClasses are referenced by 2 Pods, and the input has none; add the output of: kubectl get priorityclasses -o yaml";
    folder.refused(&["pods.yaml", "node.yaml"], error);
    let group = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n\
                 spec: {priority: 5, priorityClassName: gold, schedulingPolicy: {gang: {minCount: 1}}}\n";
    let folder = Folder::with(&[("group.yaml", group), ("node.yaml", NODE)]);
    let error = "group.yaml: document 1: PodGroup default/g: spec.priorityClassName: PriorityClass \"gold\" is not in the input; \
                 PriorityClasses are referenced by 1 PodGroup, and the input has none; add the output of: kubectl get priorityclasses -o yaml";
    folder.refused(&["group.yaml", "node.yaml"], error);
}

#[test]
fn a_class_that_is_missing_among_others_is_a_warning() {
    let folder = Folder::with(&[("pods.yaml", PODS), ("node.yaml", NODE), ("class.yaml", CLASS)]);
    let warning = "Pod default/low: spec.priorityClassName: PriorityClass \"bronze\" is not in the input; add the output of: kubectl get \
                   priorityclasses -o yaml";
    for command in ["plan", "compare"] {
        let arguments = [command, "--for", "pod/urgent", "-f", "pods.yaml", "node.yaml", "class.yaml"];
        let table = folder.run(&arguments);
        let table = String::from_utf8_lossy(&table.stdout);
        assert!(table.contains(&format!("warning: {warning}\n")), "{command}: {table}");
        let json = folder.run(&[arguments.as_slice(), &["-o", "json"]].concat());
        let json: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
        assert_eq!(json["warnings"], serde_json::json!([warning]), "{command}");
    }
}

#[test]
fn submitted_objects_must_be_complete_with_the_cluster() {
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\n\
               spec: {parallelism: 2, template: {spec: {priority: 5, priorityClassName: gold, containers: [{name: c}]}}}\n";
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", job.trim_end().replace('\n', "\n  "));
    let files =
        [("node.yaml", NODE), ("class.yaml", CLASS), ("job.yaml", job), ("empty.yaml", ""), ("list.yaml", &list)];
    let folder = Folder::with(&[&files[..], &[("services.yaml", SERVICES)]].concat());
    let kinds = "a Pod, a PodGroup with its pods, a Job, a Deployment, a ReplicaSet or a StatefulSet";
    for (arguments, status, text) in [
        (["node.yaml", "class.yaml", "--submit", "job.yaml"].as_slice(), 0, ""),
        (&["node.yaml", "class.yaml", "--submit", "list.yaml"], 0, ""),
        (
            &["node.yaml", "--submit", "job.yaml"],
            1,
            "job.yaml: document 1: Pod default/job-0: spec.priorityClassName: Pri",
        ),
        (&["node.yaml", "--submit", "empty.yaml"], 1, "empty.yaml: no object: the input is empty; add a Pod, "),
        (
            &["node.yaml", "--submit", "services.yaml"],
            1,
            &format!("--submit services.yaml: no object creates a pod; submit {kinds}; skipped 2 v1 Service\n"),
        ),
    ] {
        let output = folder.run(&[&["plan", "-f"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(text), "{arguments:?}: {stderr}");
    }
}

#[test]
fn quota_only_decision_needs_neither_nodes_nor_priority_classes() {
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/kueue-cycle.yaml");
    let text = std::fs::read_to_string(example).expect("the example is there");
    assert!(!text.contains("kind: Node\n"), "it has no nodes");
    let folder = Folder::with(&[("queues.yaml", &text)]);
    let quota = folder.run(&["plan", "--cycle", "-f", "queues.yaml"]);
    assert_eq!(quota.status.code(), Some(2), "{}", String::from_utf8_lossy(&quota.stderr));
    let joint = folder.run(&["plan", "--cycle", "--arg", "placement=Joint", "-f", "queues.yaml"]);
    assert_eq!(joint.status.code(), Some(1));
    let error = "queues.yaml: no Node in the input";
    assert!(String::from_utf8_lossy(&joint.stderr).contains(error), "{}", String::from_utf8_lossy(&joint.stderr));
}

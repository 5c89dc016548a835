//! Bad input gets one clear error that names the file, the document, the object, the field, the value and what would be right; never
//! a panic, never a hang. 2 is the status of `test`, 1 that of `plan`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "2", pods: "10"}}
"#;

const LOW: &str = r#"
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: low}
spec: {nodeName: node-1, priority: 10, containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
status: {phase: Running, startTime: "2026-01-01T00:00:00Z"}
"#;

const URGENT: &str = r#"
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: urgent}
spec: {priority: 100, containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
status: {phase: Pending}
"#;

fn test_document(preemptor: &str, profile: &str) -> String {
    format!(
        r#"apiVersion: reprieve.dev/v1alpha1
kind: PreemptionTest
metadata: {{name: case}}
spec:
  profile: {profile}
  preemptor: {preemptor}
  expect: {{outcome: Preempt, victims: [{{pod: default/low}}]}}
"#
    )
}

fn question() -> String {
    test_document("{kind: Pod, namespace: default, name: urgent}", "{policy: Kubernetes}")
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, documents: &[&str]) -> PathBuf {
        let path = self.path("case.yaml");
        std::fs::write(&path, documents.join("\n---\n")).expect("the file is written");
        path
    }
}

fn reprieve(arguments: &[&str], path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.args(arguments).arg(path).stdin(Stdio::null()).output().expect("reprieve runs")
}

/// Runs the documents through `test` and `plan` and expects the same error from both, holding all of `parts`.
fn refused(documents: &[&str], parts: &[&str]) {
    let folder = Folder::new();
    let file = folder.file(documents);
    for (arguments, status) in [(["test"].as_slice(), 2), (["plan", "-f"].as_slice(), 1)] {
        let output = reprieve(arguments, &file);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?} {text}");
        assert!(!text.contains("panicked"), "{text}");
        for part in parts.iter().chain(&["case.yaml"]) {
            assert!(text.contains(part), "{arguments:?}: {part:?} is missing in {text}");
        }
    }
}

/// `plan` decides without the broken object, with the status `decided`, and warns in words that hold all of `parts`.
fn set_aside(documents: &[&str], decided: i32, parts: &[&str]) {
    let folder = Folder::new();
    let output = reprieve(&["plan", "-f"], &folder.file(documents));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(decided), "{text}");
    for part in parts.iter().chain(&["warning: ", "case.yaml", "set aside"]) {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[test]
fn unchanged_documents_are_accepted() {
    let folder = Folder::new();
    let file = folder.file(&[&question(), NODE, LOW, URGENT]);
    assert_eq!(reprieve(&["test"], &file).status.code(), Some(0));
    assert_eq!(reprieve(&["plan", "-f"], &file).status.code(), Some(2));
}

#[test]
fn broken_yaml() {
    refused(
        &[&question(), NODE, "apiVersion: v1\nkind: [Pod\nmetadata: {name: x}"],
        &["document 3", "line 1", "not valid YAML"],
    );
}

#[test]
fn broken_json() {
    refused(&[&question(), NODE, r#"{"apiVersion": "v1", "kind": "Pod", }"#], &["document 3", "not valid JSON"]);
}

#[test]
fn a_quantity_that_does_not_parse() {
    let pod = URGENT.replace(r#"cpu: "2""#, r#"cpu: "2x""#);
    let parts = ["document 4", "Pod default/urgent", "spec.containers[0].resources.requests.cpu", "\"2x\"", "500m"];
    refused(&[&question(), NODE, LOW, &pod], &parts);
}

#[test]
fn a_quantity_that_overflows() {
    let node = NODE.replace(r#"cpu: "2""#, r#"cpu: "9e30""#);
    let other = NODE.replace("node-1", "node-2");
    set_aside(
        &[&question(), &node, &other, LOW, URGENT],
        0,
        &["document 2", "Node node-1", "status.allocatable.cpu", "9e30", "2^53", "with 1 object that refers to it"],
    );
}

#[test]
fn requests_that_cannot_be_summed() {
    let pods: Vec<String> = (0..3)
        .map(|at| {
            LOW.replace("name: low", &format!("name: low-{at}"))
                .replace(r#"cpu: "2""#, r#"memory: "6000000000000000000""#)
        })
        .collect();
    let documents = [&question(), NODE, &pods[0], &pods[1], &pods[2], URGENT];
    set_aside(&documents, 4, &["Pod default/low-0", "requests.memory", "6000000000000000000", "2^53"]);
}

#[test]
fn a_negative_request() {
    let pod = LOW.replace(r#"cpu: "2""#, r#"cpu: "-1""#);
    let parts = ["Pod default/low", "requests.cpu", "-1", "negative"];
    set_aside(&[&question(), NODE, &pod, URGENT], 4, &parts);
}

/// A node with a bound pod whose requests are unknown offers nothing. The reason is that pod, not what the preemptor requests.
#[test]
fn the_room_beside_a_pod_without_readable_requests_is_unknown() {
    let broken = LOW.replace(r#"cpu: "2""#, r#"cpu: "-1""#).replace("name: low", "name: broken");
    let (folder, question) = (Folder::new(), question());
    for (pods, who) in [
        (vec![broken.clone()], "pod default/broken on it is set aside"),
        (
            vec![broken.clone(), broken.replace("broken", "other")],
            "pod default/broken and 1 other pod on it are set aside",
        ),
    ] {
        let documents: Vec<&str> =
            [question.as_str(), NODE, LOW, URGENT].into_iter().chain(pods.iter().map(String::as_str)).collect();
        let output = reprieve(&["plan", "-f"], &folder.file(&documents));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("the free room of the node is unknown, because {who}")), "{text}");
        assert!(!text.contains("more than the whole node") && !text.contains("short of"), "{text}");
    }
}

#[test]
fn two_objects_with_one_name() {
    let parts = ["document 4", "Pod default/low", "metadata.name", "document 3"];
    set_aside(&[&question(), NODE, LOW, LOW, URGENT], 2, &parts);
    refused(&[&question(), NODE, LOW, URGENT, URGENT], &["document 5", "Pod default/urgent", "document 4"]);
}

#[test]
fn a_field_of_the_wrong_type() {
    let pod = URGENT.replace("priority: 100", "priority: high");
    refused(
        &[&question(), NODE, LOW, &pod],
        &["document 4", "Pod default/urgent", "spec.priority", "high", "a whole number"],
    );
}

#[test]
fn object_without_kind_is_refused() {
    refused(&[&question(), NODE, "metadata: {name: x}"], &["document 3", "kind", "missing"]);
}

#[test]
fn a_pod_on_a_node_that_is_missing_is_a_warning() {
    let lost = LOW.replace("name: low", "name: lost").replace("node-1", "node-9");
    let folder = Folder::new();
    let file = folder.file(&[&question(), NODE, LOW, &lost, URGENT]);
    let test = reprieve(&["test"], &file);
    let text = String::from_utf8_lossy(&test.stdout).into_owned();
    assert_eq!(test.status.code(), Some(0), "{text}");
    let plan = reprieve(&["plan", "-f"], &file);
    let text = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert_eq!(plan.status.code(), Some(2), "{text}");
    assert!(text.contains("warning: Pod default/lost: spec.nodeName: node \"node-9\" is not in the input"), "{text}");
}

#[test]
fn a_preemptor_that_is_missing() {
    let question = test_document("{kind: Pod, namespace: default, name: ghost}", "{policy: Kubernetes}");
    let folder = Folder::new();
    let file = folder.file(&[&question, NODE, LOW, URGENT]);
    for (arguments, status) in [(["test"].as_slice(), 2), (["plan", "-f"].as_slice(), 1)] {
        let output = reprieve(arguments, &file);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains("preemptor: there is no running or pending pod default/ghost"), "{text}");
    }
}

#[test]
fn a_preemptor_that_already_runs() {
    let question = test_document("{kind: Pod, namespace: default, name: low}", "{policy: Kubernetes}");
    let folder = Folder::new();
    let file = folder.file(&[&question, NODE, LOW, URGENT]);
    let output = reprieve(&["test"], &file);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("already runs on node node-1"), "{text}");
}

#[test]
fn an_unknown_policy_or_argument() {
    for (profile, part) in [
        ("{policy: Fair}", "spec.profile.policy: \"Fair\" is not a policy"),
        ("{policy: Kubernetes, args: {speed: 9}}", "spec.profile.args.speed: policy Kubernetes has no such argument"),
        (
            "{policy: Kubernetes, args: {priorityCut: maybe}}",
            "spec.profile.args.priorityCut: \"maybe\" is not valid; write true or false",
        ),
        (
            "{policy: Kubernetes, args: {maxPreemptionPriorityExcess: -1}}",
            "spec.profile.args.maxPreemptionPriorityExcess: -1 is not a whole number from 0",
        ),
        (
            "{policy: Kubernetes, args: {compatibility: 1.36}}",
            "spec.profile.args.compatibility: 1.36 is not valid; write \"1.37\"",
        ),
        (
            "{policy: Kubernetes, args: {search: Fast}}",
            "spec.profile.args.search: \"Fast\" is not valid; write \"Complete\" or \"Greedy\"",
        ),
        (
            "{policy: Kubernetes, args: {gangsFromOwners: [Job]}}",
            "spec.profile.args.gangsFromOwners: \"Job\" is not valid; the kinds are JobSet, LeaderWorkerSet, MPIJob",
        ),
    ] {
        let question = test_document("{kind: Pod, namespace: default, name: urgent}", profile);
        let folder = Folder::new();
        let output = reprieve(&["test"], &folder.file(&[&question, NODE, LOW, URGENT]));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_unknown_field_of_the_test() {
    let question = question().replace("  preemptor:", "  preempter: x\n  preemptor:");
    refused(&[&question, NODE, LOW, URGENT], &["document 1", "PreemptionTest case", "spec", "preempter"]);
}

#[test]
fn a_priority_class_that_nothing_defines() {
    let pod = URGENT.replace("priority: 100", "priorityClassName: gold");
    refused(
        &[&question(), NODE, LOW, &pod],
        &["Pod default/urgent", "spec.priorityClassName", "\"gold\"", "is not in the input"],
    );
}

#[test]
fn cyclic_yaml_aliases_are_refused() {
    refused(
        &[&question(), NODE, "apiVersion: v1\nkind: Pod\nmetadata: &m\n  name: x\n  labels: *m\n"],
        &["document 3"],
    );
}

#[test]
fn exponential_yaml_aliases_are_refused() {
    let mut bomb =
        String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nl0: &l0 [a, a, a, a, a, a, a, a, a, a]\n");
    for level in 1..12 {
        let below = format!("*l{}", level - 1);
        bomb += &format!("l{level}: &l{level} [{}]\n", vec![below; 10].join(", "));
    }
    refused(&[&question(), NODE, &bomb], &["document 3"]);
}

#[test]
fn very_long_string_is_refused() {
    let folder = Folder::new();
    let path = folder.path("case.yaml");
    let mut file = File::create(&path).expect("the file is made");
    file.write_all(
        format!("{}\n---\n{NODE}\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: \"", question()).as_bytes(),
    )
    .unwrap();
    let block = vec![b'a'; 1 << 20];
    for _ in 0..1024 {
        file.write_all(&block).expect("there is room on the disk");
    }
    file.write_all(b"\"\n").unwrap();
    drop(file);
    let output = reprieve(&["plan", "-f"], &path);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("document 3") && text.contains("bytes"), "{text}");
}

#[test]
fn an_empty_folder() {
    let folder = Folder::new();
    let test = reprieve(&["test"], folder.0.path());
    assert_eq!(test.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&test.stderr).contains("no PreemptionTest file"));
    let plan = reprieve(&["plan", "--for", "pod/x", "-f"], folder.0.path());
    assert_eq!(plan.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&plan.stderr).contains("no .yaml, .yml or .json file"));
}

#[test]
fn missing_and_binary_files_are_errors() {
    let folder = Folder::new();
    let missing = reprieve(&["plan", "--for", "pod/x", "-f"], &folder.path("no.yaml"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no.yaml"));
    let binary = folder.path("binary.yaml");
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).expect("the file is written");
    let output = reprieve(&["plan", "--for", "pod/x", "-f"], &binary);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not UTF-8"));
}

#[test]
fn wrong_flags_never_look_like_an_answer() {
    let folder = Folder::new();
    let file = folder.file(&[&question(), NODE, LOW, URGENT]);
    for arguments in [
        ["plan", "--nonsense", "-f"].as_slice(),
        ["plan", "--for", "deployment/x", "-f"].as_slice(),
        ["plan", "--arg", "priorityCut", "-f"].as_slice(),
        ["plan", "--now", "yesterday", "-f"].as_slice(),
        ["nonsense"].as_slice(),
    ] {
        assert_eq!(reprieve(arguments, &file).status.code(), Some(1), "{arguments:?}");
    }
    assert_eq!(reprieve(&["test", "--nonsense"], &file).status.code(), Some(2));
    assert_eq!(reprieve(&["test", "--run", "other-*"], &file).status.code(), Some(2));
}

//! Bad input under policy Koordinator gets one clear error that names the file, the object, the field and what would be right; never
//! a panic. 2 is the status of `test`, 1 that of `plan` and `compare`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "2", pods: "10"}}
"#;

const TEAM: &str = r#"
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {namespace: default, name: team}
spec: {min: {cpu: "2"}, max: {cpu: "4"}}
"#;

const CHILD: &str = r#"
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {namespace: default, name: child, labels: {quota.scheduling.koordinator.sh/parent: team}}
spec: {min: {cpu: "2"}, max: {cpu: "4"}}
"#;

const LOW: &str = r#"
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: low, labels: {quota.scheduling.koordinator.sh/name: child}}
spec: {nodeName: node-1, priority: 10, containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
status: {phase: Running}
"#;

const URGENT: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  namespace: default
  name: urgent
  labels: {quota.scheduling.koordinator.sh/name: child, pod-group.scheduling.sigs.k8s.io: job}
spec: {priority: 100, containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
status: {phase: Pending}
"#;

const JOB: &str = r#"
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {namespace: default, name: job}
spec: {minMember: 1}
"#;

const PARENT_FIELD: &str = "metadata.labels[quota.scheduling.koordinator.sh/parent]";
const NAME_FIELD: &str = "metadata.labels[quota.scheduling.koordinator.sh/name]";
const PREEMPTIBLE_FIELD: &str = "metadata.labels[quota.scheduling.koordinator.sh/preemptible]";

fn question(args: &str) -> String {
    format!(
        r#"apiVersion: reprieve.dev/v1alpha1
kind: PreemptionTest
metadata: {{name: case}}
spec:
  profile: {{policy: Koordinator, args: {args}}}
  preemptor: {{kind: Pod, namespace: default, name: urgent}}
  expect: {{outcome: Preempt, victims: [{{pod: default/low}}]}}
"#
    )
}

fn reprieve(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.args(arguments).arg(file).stdin(Stdio::null()).output().expect("reprieve runs")
}

/// What `test`, `plan` and `compare` print of these documents, each with its status.
fn outputs(documents: &[&str]) -> [(Option<i32>, String); 3] {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("case.yaml");
    std::fs::write(&file, documents.join("\n---\n")).expect("the file is written");
    [["test"].as_slice(), ["plan", "-f"].as_slice(), ["compare", "-f"].as_slice()].map(|arguments| {
        let output = reprieve(arguments, &file);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    })
}

/// All refuse the documents, in words that hold all of `parts`.
fn refused(documents: &[&str], parts: &[&str]) {
    for ((status, text), wanted) in outputs(documents).into_iter().zip([2, 1, 1]) {
        assert_eq!(status, Some(wanted), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        for part in parts.iter().chain(&["case.yaml"]) {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }
}

/// `plan` decides without the broken object, and warns in words that hold all of `parts`.
fn set_aside(documents: &[&str], parts: &[&str]) {
    let [_, (status, text), _] = outputs(documents);
    assert_ne!(status, Some(1), "{text}");
    for part in parts.iter().chain(&["warning: ", "case.yaml", "set aside"]) {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

/// The documents with one of them in other words.
fn refused_with(document: &str, changed: &str, parts: &[&str]) {
    let question = question("{}");
    let documents = [question.as_str(), NODE, TEAM, CHILD, LOW, JOB, URGENT];
    assert!(documents.contains(&document) && document != changed, "a document of the case is changed");
    refused(&documents.map(|known| if known == document { changed } else { known }), parts);
}

#[test]
fn unchanged_documents_are_accepted() {
    let [(test, output), (plan, _), (compare, _)] = outputs(&[&question("{}"), NODE, TEAM, CHILD, LOW, JOB, URGENT]);
    assert_eq!(test, Some(0), "{output}");
    assert_eq!((plan, compare), (Some(2), Some(0)));
}

#[test]
fn a_min_above_its_max() {
    let quota = CHILD.replace(r#"min: {cpu: "2"}"#, r#"min: {cpu: "4500m"}"#);
    refused_with(
        CHILD,
        &quota,
        &["document 4", "ElasticQuota default/child", "spec.min.cpu", "above spec.max", "lower the one"],
    );
}

#[test]
fn an_amount_that_does_not_parse_or_is_negative() {
    let quota = CHILD.replace(r#"max: {cpu: "4"}"#, r#"max: {cpu: "4x"}"#);
    refused_with(CHILD, &quota, &["document 4", "ElasticQuota default/child", "spec.max.cpu", "\"4x\"", "500m"]);
    let quota = CHILD.replace(r#"min: {cpu: "2"}"#, r#"min: {cpu: "-2"}"#);
    refused_with(CHILD, &quota, &["document 4", "ElasticQuota default/child", "spec.min.cpu", "-2", "negative"]);
}

#[test]
fn a_quota_that_is_its_own_ancestor() {
    let quota = CHILD.replace("parent: team", "parent: child");
    let parts = [
        "document 4",
        "ElasticQuota default/child",
        PARENT_FIELD,
        "\"child\"",
        "ancestor of itself",
        "break the cycle",
    ];
    refused_with(CHILD, &quota, &parts);
    let quota = TEAM.replace("name: team", "name: team, labels: {quota.scheduling.koordinator.sh/parent: child}");
    refused_with(TEAM, &quota, &["ElasticQuota", PARENT_FIELD, "ancestor of itself", "break the cycle"]);
}

#[test]
fn a_parent_that_is_missing() {
    let quota = CHILD.replace("parent: team", "parent: ghost");
    let parts = ["document 4", "ElasticQuota default/child", PARENT_FIELD, "\"ghost\"", "not in the input", "add it"];
    refused_with(CHILD, &quota, &parts);
}

#[test]
fn a_pod_of_a_quota_that_is_missing() {
    let pod = LOW.replace("name: child", "name: ghost");
    let parts = ["document 5", "Pod default/low", NAME_FIELD, "\"ghost\"", "not in the input", "add it"];
    set_aside(&[&question("{}"), NODE, TEAM, CHILD, &pod, JOB, URGENT], &parts);
    let pod = URGENT.replace("name: child", "name: ghost");
    refused_with(URGENT, &pod, &["document 7", "Pod default/urgent", NAME_FIELD, "\"ghost\"", "add it"]);
}

#[test]
fn a_job_whose_pods_disagree_on_being_preemptible() {
    let second = URGENT
        .replace("name: urgent", "name: second")
        .replace("labels: {", "labels: {quota.scheduling.koordinator.sh/preemptible: \"false\", ");
    let documents = [&question("{}"), NODE, TEAM, CHILD, LOW, JOB, URGENT, &second];
    let parts = [
        "Pod default/",
        "document",
        PREEMPTIBLE_FIELD,
        "of job default/job",
        "give all pods of job default/job the same value",
    ];
    refused(&documents, &parts);
}

#[test]
fn two_quotas_with_one_name() {
    let parts = ["document 5", "ElasticQuota default/child", "metadata.name", "document 4"];
    set_aside(&[&question("{}"), NODE, TEAM, CHILD, CHILD, LOW, JOB, URGENT], &parts);
}

#[test]
fn a_job_that_needs_a_negative_number_of_pods() {
    let job = JOB.replace("minMember: 1", "minMember: -1");
    refused_with(JOB, &job, &["document 6", "PodGroup default/job", "spec.minMember", "-1", "0 or more"]);
}

#[test]
fn a_field_of_the_wrong_type() {
    let job = JOB.replace("minMember: 1", "minMember: many");
    refused_with(JOB, &job, &["document 6", "PodGroup default/job", "spec.minMember", "many"]);
}

#[test]
fn an_argument_that_is_unknown_or_of_the_wrong_type() {
    for (args, parts) in [
        ("{speed: 9}", ["spec.profile.args.speed", "has no such argument", "podShouldBeDeletedWhenPreempted"]),
        (
            "{disableDefaultPreemptible: maybe}",
            ["spec.profile.args.disableDefaultPreemptible", "\"maybe\"", "write true or false"],
        ),
        (
            "{podShouldBeDeletedWhenPreempted: 1}",
            ["spec.profile.args.podShouldBeDeletedWhenPreempted", "1", "write true or false"],
        ),
    ] {
        refused(&[&question(args), NODE, TEAM, CHILD, LOW, JOB, URGENT], &parts);
    }
}

#[test]
fn error_about_a_flag_names_the_flag_and_not_the_file() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("case.yaml");
    let documents = [&question("{}"), NODE, TEAM, CHILD, LOW, JOB, URGENT];
    std::fs::write(&file, documents.join("\n---\n")).expect("the file is written");
    for (arguments, part) in [
        (&["plan", "--arg", "speed=9", "-f"][..], "error: --arg speed: policy Koordinator has no such argument"),
        (&["plan", "--policy", "Nomad", "-f"], "error: --policy: \"Nomad\" is not a policy"),
        (&["plan", "--now", "noon", "-f"], "error: --now: \"noon\" is not a time"),
        (&["compare", "--now", "noon", "-f"], "error: --now: \"noon\" is not a time"),
        (&["plan", "--for", "pod/ghost", "-f"], "error: --for: there is no running or pending pod default/ghost"),
        (&["compare", "--for", "pod/ghost", "-f"], "error: --for: there is no running or pending pod default/ghost"),
    ] {
        let output = reprieve(arguments, &file);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(part), "{part:?} is missing in {text}");
        assert!(!text.contains("case.yaml"), "{text}");
    }
}

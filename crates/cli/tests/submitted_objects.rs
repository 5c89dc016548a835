//! Hand-written objects in `reprieve plan` and `reprieve compare`: templates, namespaces, generated names, typing errors, and control
//! characters.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 8, pods: 10}}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: research}
spec: {nodeName: node-1, priority: 10, containers: [{name: c, resources: {requests: {cpu: 8}}}]}
status: {phase: Running, startTime: '2026-01-01T00:00:00Z'}
";

/// The arguments behind the files, and what came of them.
fn plan(cluster: &str, submitted: &str, more: &[&str]) -> Output {
    let folder = TempDir::new().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("cluster.yaml"), cluster).expect("it is written");
    std::fs::write(path("new.yaml"), submitted).expect("it is written");
    let (cluster, new) = (path("cluster.yaml"), path("new.yaml"));
    let mut arguments = vec!["plan", "--now", "2026-01-01T01:00:00Z", "-f", &cluster];
    if !submitted.is_empty() {
        arguments.extend(["--submit", &new]);
    }
    arguments.extend(more);
    Command::new(env!("CARGO_BIN_EXE_reprieve")).args(arguments).output().expect("reprieve runs")
}

fn json(cluster: &str, submitted: &str, more: &[&str]) -> Value {
    let output = plan(cluster, submitted, &[more, &["-o", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn error(cluster: &str, submitted: &str, more: &[&str]) -> String {
    let output = plan(cluster, submitted, more);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    stderr(&output)
}

fn templated(api_version: &str, kind: &str, template: &str) -> String {
    format!(
        "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: new}}, spec: {{template: {{spec: {{priority: 100, {template}}}}}}}}}"
    )
}

const CONTAINERS: &str = "containers: [{name: c, resources: {requests: {cpu: 1}}}]";

fn job(metadata: &str) -> String {
    templated("batch/v1", "Job", CONTAINERS).replace("metadata: {name: new}", &format!("metadata: {{{metadata}}}"))
}

#[test]
fn an_unknown_volume_source_of_a_template_is_refused() {
    let template = format!("volumes: [{{name: a, futureDisk: {{}}}}], {CONTAINERS}");
    for (api_version, kind) in
        [("batch/v1", "Job"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")]
    {
        let answer = json(CLUSTER, &templated(api_version, kind, &template), &[]);
        assert_eq!(answer["explanation"]["law"]["name"], "Unsupported", "{kind}: {answer:#}");
        assert_eq!(answer["explanation"]["law"]["field"], "spec.volumes[0].futureDisk", "{kind}");
        assert!(!answer["warnings"].to_string().contains("unknown field"), "{}", answer["warnings"]);
    }
}

#[test]
fn a_job_of_another_api_group_is_skipped() {
    let text = error(CLUSTER, &templated("batch.volcano.sh/v1alpha1", "Job", CONTAINERS), &[]);
    assert!(text.contains("skipped 1 batch.volcano.sh/v1alpha1 Job"), "{text}");
}

#[test]
fn namespace_flag_applies_to_submitted_objects() {
    let preemptor = |metadata: &str, more: &[&str]| json(CLUSTER, &job(metadata), more)["preemptor"].to_string();
    assert!(preemptor("name: new", &["-n", "research"]).contains("research/new-0"));
    assert!(preemptor("name: new, namespace: research", &["-n", "research"]).contains("research/new-0"));
    assert!(preemptor("name: new, namespace: research", &[]).contains("research/new-0"));
    assert!(preemptor("name: new", &[]).contains("default/new-0"));
    let text = error(CLUSTER, &job("name: new, namespace: research"), &["-n", "other"]);
    assert!(text.contains("metadata.namespace: \"research\" is not the namespace \"other\" given with -n"), "{text}");
}

#[test]
fn a_generated_name_is_completed() {
    let answer = json(CLUSTER, &job("generateName: sample-job-"), &[]);
    assert!(answer["preemptor"].to_string().contains("default/sample-job-new-0"), "{answer:#}");
}

#[test]
fn warnings_go_to_standard_error_where_the_output_has_no_place_for_them() {
    let template =
        format!("toleration: [], volumes: [{{name: a, persistentVolumeClaim: {{claimName: a}}}}], {CONTAINERS}");
    let submitted = templated("batch/v1", "Job", &template);
    for form in ["name", "test"] {
        let output = plan(CLUSTER, &submitted, &["--assume", "volumes,claims", "-o", form]);
        let text = stderr(&output);
        assert!(text.contains("warning: the preemptor's claims and volumes are assumed to be satisfied"), "{text}");
        assert!(text.contains("warning: Job default/new: spec.template.spec.toleration: unknown field"), "{text}");
        let recorded = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(recorded.contains("reprieve.dev/assumed: claims,volumes"), form == "test", "{recorded}");
    }
}

#[test]
fn a_job_in_a_queue_or_suspended_comes_with_a_warning() {
    let queued = job("name: new, labels: {kueue.x-k8s.io/queue-name: team-a}");
    let warnings = json(CLUSTER, &queued, &[])["warnings"].to_string();
    assert!(warnings.contains("is not evaluated under policy Kubernetes"), "{warnings}");
    let suspended = job("name: new").replace("spec: {template", "spec: {suspend: true, template");
    let warnings = json(CLUSTER, &suspended, &[])["warnings"].to_string();
    assert!(warnings.contains("creates no pods until it is resumed"), "{warnings}");
    let text = error(CLUSTER, &queued, &["--policy", "Kueue"]);
    assert!(text.contains("policy Kueue decides about Workloads, not about a Pod"), "{text}");
    let text = error(CLUSTER, "", &["--for", "workload/a"]);
    assert!(text.contains("add --policy Kueue"), "{text}");
}

#[test]
fn one_of_several_submitted_preemptors_is_chosen() {
    let two = format!("{}\n---\n{}", job("name: a"), job("name: b, namespace: research"));
    let text = error(CLUSTER, &two, &[]);
    assert!(text.contains("name it with --for: pod/a-0, pod/b-0 -n research"), "{text}");
    let answer = json(CLUSTER, &two, &["--for", "pod/a-0"]);
    assert!(answer["preemptor"].to_string().contains("default/a-0"), "{answer:#}");
}

#[test]
fn error_mentions_a_pod_of_the_same_name_in_another_namespace() {
    let text = error(CLUSTER, "", &["--for", "pod/low"]);
    assert!(text.contains("there is one in namespace research (-n research)"), "{text}");
}

#[test]
fn errors_do_not_show_internals_of_the_parser() {
    let documents = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n";
    for (submitted, problem) in [
        (documents, "the key apiVersion occurs twice; put --- between two documents"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, name: b}\n", "the key name occurs twice; remove one"),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\": \"v1\"}",
            "there is more text after the end of the object; put --- between two documents",
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, volumeMounts: [7]}]}}",
            "expected a mapping of fields",
        ),
    ] {
        let text = error(CLUSTER, submitted, &[]);
        assert!(text.contains(problem), "{text}");
        for word in ["Options", "struct", "trailing"] {
            assert!(!text.contains(word), "{text}");
        }
    }
}

#[test]
fn a_limit_that_cannot_be_read_is_named_as_it_is_written() {
    let limits = "containers: [{name: c, resources: {limits: {memory: 4GB}}}]";
    let text = error(CLUSTER, &templated("batch/v1", "Job", limits), &[]);
    assert!(text.contains("spec.containers[0].resources.limits.memory"), "{text}");
    let requests = "containers: [{name: c, resources: {requests: {memory: 4GB}, limits: {memory: 8G}}}]";
    let text = error(CLUSTER, &templated("batch/v1", "Job", requests), &[]);
    assert!(text.contains("spec.containers[0].resources.requests.memory"), "{text}");
}

#[test]
fn input_without_a_running_pod_comes_with_a_warning() {
    let warning = "no running Pod in the input";
    let nodes = CLUSTER.split("---").next().expect("a node");
    assert!(json(nodes, &job("name: new"), &[])["warnings"].to_string().contains(warning));
    assert!(!json(CLUSTER, &job("name: new"), &[])["warnings"].to_string().contains(warning));
}

#[test]
fn unknown_fields_are_cut_in_length_and_number() {
    let many: Vec<String> = (0..30).map(|at| format!("zz{at}: 1")).collect();
    let template = format!("{}: 1, {}, {CONTAINERS}", "k".repeat(900), many.join(", "));
    let answer = json(CLUSTER, &templated("batch/v1", "Job", &template), &[]);
    let warnings = answer["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.len(), 21, "{warnings:#?}");
    assert!(warnings.iter().all(|warning| warning.as_str().expect("text").len() < 250), "{warnings:#?}");
    assert!(answer["warnings"].to_string().contains("and 11 more"), "{warnings:#?}");
}

#[test]
fn control_characters_of_names_are_escaped() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {priority: 100, \"x\\ny\": 1, schedulingGates: [{name: \
               \"a\\nSCHEDULE  \\e[31m\"}], containers: [{name: c, resources: {requests: {cpu: 1}}}]}}";
    let output = plan(CLUSTER, pod, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(text.contains("a\\nSCHEDULE  \\u{1b}[31m"), "{text}");
    assert!(text.contains("spec.x\\ny: unknown field"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("SCHEDULE")), "{text}");
}

#[test]
fn a_comparison_names_the_law_that_refuses_the_preemptor() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("cluster.yaml");
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {priority: 100, schedulingGates: [{name: example.com/wait}], \
               containers: [{name: c}]}}";
    std::fs::write(&path, format!("{CLUSTER}---\n{pod}\n")).expect("it is written");
    let file = path.display().to_string();
    let arguments = ["compare", "-f", &file, "--for", "pod/new", "-o", "json"];
    let output = Command::new(env!("CARGO_BIN_EXE_reprieve")).args(arguments).output().expect("reprieve runs");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let law = &answer["results"][0]["law"];
    assert_eq!(law["gates"], serde_json::json!(["example.com/wait"]), "{answer:#}");
    assert!(law["name"].is_string() && law["text"].is_string(), "{law}");
}

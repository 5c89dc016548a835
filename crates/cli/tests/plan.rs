//! Output and input formats of `reprieve plan`, `test`, `compare` and `demo`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use reprieve::input::{self, Input};
use reprieve_api::record::record;
use reprieve_loader::LoadScope;
use reprieve_loader::build::{OnInvalid, load_as};
use reprieve_loader::policy::{Question, policy};
use reprieve_report::answer::answer;
use serde_json::Value;
use tempfile::TempDir;

fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

fn reprieve(arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("reprieve runs");
    child.stdin.take().expect("it has an input").write_all(stdin.as_bytes()).expect("it reads its input");
    child.wait_with_output().expect("it ends")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: 4, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: low-1}
spec: {nodeName: node-1, priority: 10, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Running, startTime: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: low-2}
spec: {nodeName: node-1, priority: 10, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Running, startTime: "2026-01-01T00:30:00Z"}
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: urgent}
spec: {priority: 100, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
status: {phase: Pending}
---
apiVersion: example.com/v1
kind: Foreign
metadata: {name: whatever}
"#;

#[test]
fn every_recorded_case_decides_as_it_did() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut recorded = 0;
    for file in input::files(&conformance()).expect("the cases are there") {
        let Input { objects, test } = input::read(&[file]).expect("a case can be read");
        let spec = test.expect("a case is a test").object.spec.clone();
        let policy = policy(&spec.profile).expect("a case has a policy");
        let scope = LoadScope::of_profile(&spec.profile).expect("the profile is valid");
        let mut loaded = load_as(&objects, OnInvalid::Quarantine, &policy, &scope).expect("a case can be loaded");
        let question = Question::new(&spec, &loaded).expect("a case asks something");
        let answer = answer(&question, &mut loaded);
        let text = record(&objects, |pod| loaded.names.pod_id(pod).is_some(), &spec, &answer, &[])
            .expect("a case can be recorded");
        recorded += 1;
        std::fs::write(folder.path().join(format!("{recorded}.yaml")), text).expect("it is written");
    }
    assert!(recorded > 300);
    let output = reprieve(&["test", &folder.path().display().to_string()], "");
    assert_eq!(text(&output).trim(), format!("{recorded} passed, 0 failed"));
}

#[test]
fn json_has_the_fields_of_a_preemption_test() {
    let output =
        reprieve(&["plan", "-f", "-", "--for", "pod/urgent", "--now", "2026-01-01T01:00:00Z", "-o", "json"], CLUSTER);
    assert_eq!(output.status.code(), Some(2));
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(json["apiVersion"], "reprieve.dev/v1alpha1");
    assert_eq!(json["outcome"], "Preempt");
    assert_eq!(json["victims"], serde_json::json!([{ "pod": "default/low-2" }]));
    assert_eq!(json["nominated"], serde_json::json!({ "default/urgent": "node-1" }));
    assert_eq!(json["explanation"]["victims"][0]["filter"], "Resources");
    assert_eq!(json["explanation"]["spared"][0]["law"], "Reprieved");
    assert_eq!(json["warnings"][0], "skipped objects that no decision reads: 1 example.com/v1 Foreign");
}

#[test]
fn yaml_and_json_say_the_same() {
    let arguments = |form| ["plan", "-f", "-", "--for", "pod/urgent", "--now", "2026-01-01T01:00:00Z", "-o", form];
    let json: Value = serde_json::from_slice(&reprieve(&arguments("json"), CLUSTER).stdout).expect("it is JSON");
    let yaml = text(&reprieve(&arguments("yaml"), CLUSTER));
    let yaml: Value = serde_saphyr::from_str(&yaml).expect("it is YAML");
    assert_eq!(json, yaml);
}

#[test]
fn output_name_prints_one_name_per_line() {
    let output = reprieve(&["plan", "-f", "-", "--for", "pod/urgent", "-o", "name"], CLUSTER);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "default/low-2\n");
    let warning = "warning: skipped objects that no decision reads: 1 example.com/v1 Foreign\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), warning);
}

#[test]
fn a_list_and_a_typed_list_are_read_like_a_stream() {
    let documents: Vec<Value> =
        CLUSTER.split("---").map(|document| serde_saphyr::from_str(document).expect("a document")).collect();
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": documents });
    let arguments = ["plan", "-f", "-", "--for", "pod/urgent", "-o", "name"];
    let names = reprieve(&arguments, &list.to_string()).stdout;
    assert_eq!(String::from_utf8_lossy(&names), "default/low-2\n");
    let mut pods: Vec<Value> = documents.iter().filter(|document| document["kind"] == "Pod").cloned().collect();
    for pod in &mut pods {
        let pod = pod.as_object_mut().expect("an object");
        pod.remove("kind");
        pod.remove("apiVersion");
    }
    let typed = serde_json::json!({ "items": pods, "apiVersion": "v1", "kind": "PodList" });
    let stream = format!("{}\n---\n{typed}", documents[0]);
    assert_eq!(text(&reprieve(&arguments, &stream)), "default/low-2\n");
}

fn submitted(object: &str) -> Output {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("new.yaml");
    std::fs::write(&file, object).expect("it is written");
    reprieve(&["plan", "-f", "-", "--submit", &file.display().to_string(), "-o", "json"], CLUSTER)
}

#[test]
fn what_is_submitted_asks() {
    let template = "template: {spec: {priority: 100, containers: [{name: c, resources: {requests: {cpu: '2'}}}]}}";
    for (object, status, name, pods) in [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {priority: 100, containers: [{name: c, resources: {requests: {cpu: '2'}}}]}".to_owned(), 2, "default/new", 1),
        (format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{replicas: 3, {template}}}"), 2, "default/web-new", 1),
        (format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: one}}\nspec: {{{template}}}"), 2, "default/one-0", 1),
        (format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: gang}}\nspec: {{parallelism: 2, completions: 2, completionMode: Indexed, {template}}}"), 2, "default/gang", 2),
        (format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: big}}\nspec: {{parallelism: 3, completions: 3, completionMode: Indexed, {template}}}"), 4, "default/big", 3),
        (format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: some}}\nspec: {{parallelism: 3, {template}}}"), 2, "default/some", 3),
    ] {
        let output = submitted(&object);
        assert_eq!(output.status.code(), Some(status), "{object}: {}", text(&output));
        let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(json["preemptor"]["name"], name);
        assert_eq!(json["preemptor"]["pods"].as_array().map(Vec::len), Some(pods));
    }
    let output = submitted("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("no object creates a pod"));
}

#[test]
fn a_failing_test_shows_the_difference_in_every_form() {
    let folder = TempDir::new().expect("a temporary folder");
    let case = conformance().join("kubernetes-pod/lowest-of-three-is-enough.yaml");
    let case =
        std::fs::read_to_string(case).expect("the case is there").replace("outcome: Preempt", "outcome: Schedule");
    std::fs::write(folder.path().join("wrong.yaml"), case).expect("it is written");
    let path = folder.path().display().to_string();
    for (form, parts) in [
        ("table", ["outcome: expected Schedule, decided Preempt", "0 passed, 1 failed"]),
        ("json", ["\"result\": \"Failed\"", "\"decision\""]),
        ("junit", ["<testsuite ", "outcome: expected Schedule"]),
    ] {
        let output = reprieve(&["test", &path, "-o", form], "");
        assert_eq!(output.status.code(), Some(1));
        for part in parts {
            assert!(text(&output).contains(part), "{form}: {part} is missing in {}", text(&output));
        }
    }
}

#[test]
fn every_policy_decides_on_queues_of_every_kind() {
    for case in [
        "yunikorn/sibling-over-guarantee-loses-newest-pod.yaml",
        "koordinator/lower-priority-in-the-same-quota-falls.yaml",
    ] {
        let file = conformance().join(case).display().to_string();
        let output = reprieve(&["compare", "-f", &file, "-o", "json"], "");
        let json: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{case}: {}", text(&output)));
        let results = json["results"].as_array().expect("a list");
        assert_eq!(results.len(), 5, "{case}");
        for result in results {
            assert!(result["outcome"].is_string(), "{case}: {result}");
        }
        let page = text(&reprieve(&["compare", "-f", &file, "-o", "html"], ""));
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        assert!(!page.contains("http:") && !page.contains("https:"), "the page needs nothing from outside");
    }
}

#[test]
fn demo_evicts_a_whole_gang_spares_by_toleration_and_writes_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_reprieve"))
        .arg("demo")
        .env("TMPDIR", folder.path())
        .output()
        .expect("reprieve runs");
    assert_eq!(output.status.code(), Some(0));
    let text = text(&output);
    let (decision, day) = text.split_once("A simulated day").expect("a day follows");
    for part in ["PREEMPT", "ml/finetune (2 pods)", "Toleration", "Priority", "GPUs before"] {
        assert!(decision.contains(part), "{part} is missing in {decision}");
    }
    assert!(decision.lines().count() <= 45, "it is one screen");
    let page =
        day.lines().find_map(|line| line.strip_prefix("Report with plots and the explanation of every decision: "));
    let page = std::fs::read_to_string(page.expect("the page is named")).expect("the page is there");
    assert!(page.contains("<h1>Simulation of day</h1>"));
}

fn cycle(arguments: &[&str]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/kueue-cycle.yaml");
    let example = example.display().to_string();
    reprieve(&[&["plan", "--cycle", "-f", &example, "--now", "2026-01-01T01:00:00Z"], arguments].concat(), "")
}

#[test]
fn cycle_has_every_output_format_and_its_exit_status_shows_victims() {
    let json: Value = serde_json::from_slice(&cycle(&["-o", "json"]).stdout).expect("it is JSON");
    let yaml: Value = serde_saphyr::from_slice(&cycle(&["-o", "yaml"]).stdout).expect("it is YAML");
    assert_eq!(json, yaml);
    let results: Vec<&str> =
        json["heads"].as_array().into_iter().flatten().filter_map(|head| head["result"].as_str()).collect();
    assert_eq!(results, ["Preempt", "Schedule", "Skipped", "Skipped"]);
    assert_eq!(json["heads"][0]["admission"]["podSetAssignments"][0]["flavors"]["nvidia.com/gpu"], "a100");
    assert_eq!(text(&cycle(&["-o", "name"])), "default/sweep\n");
    let (table, wide) = (cycle(&[]), cycle(&["-o", "wide"]));
    assert!(
        text(&wide).starts_with(&text(&table)) && text(&wide).contains("8 nvidia.com/gpu of a100"),
        "{}",
        text(&wide)
    );
    assert_eq!(table.status.code(), Some(2));
}

#[test]
fn cycle_is_refused_under_policies_without_cycles() {
    for (arguments, problem) in [
        (["--policy", "YuniKorn"], "only policy Kueue decides in cycles"),
        (["-o", "test"], "a PreemptionTest holds one decision"),
        (["--for", "workload/llama"], "cannot be used with"),
    ] {
        let output = cycle(&arguments);
        assert!(output.status.code() == Some(1) && text(&output).contains(problem), "{}", text(&output));
    }
}

#[test]
fn a_candidate_that_is_too_large_for_the_guarantee_is_spared_by_name() {
    let input = r#"
{apiVersion: v1, kind: Node, metadata: {name: node}, status: {allocatable: {cpu: 6, pods: 9}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - {name: root, queues: [{name: a, resources: {guaranteed: {vcore: 4}}}, {name: b}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small, namespace: default, labels: {queue: root.b, applicationId: b}}
spec: {nodeName: node, priority: 5, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: default, labels: {queue: root.b, applicationId: b}}
spec: {nodeName: node, priority: 5, containers: [{name: c, resources: {requests: {cpu: 5}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: default, labels: {queue: root.a, applicationId: a}}
spec: {priority: 5, containers: [{name: c, resources: {requests: {cpu: 3}}}]}
"#;
    let settings = ["--policy", "YuniKorn", "--arg", "compatibility=1.8"];
    let output = reprieve(&[&["plan", "-f", "-", "--for", "pod/urgent"][..], &settings].concat(), input);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let text = text(&output);
    let line = text.lines().find(|line| line.starts_with("default/large")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("ExceedsGuaranteeHeadroom")
            && line.ends_with("larger than the guarantee left to queue root.a: 3 cpu"),
        "{text}"
    );
}

fn decision(case: &str) -> Value {
    let file = conformance().join(case).display().to_string();
    serde_json::from_slice(&reprieve(&["plan", "-f", &file, "-o", "json"], "").stdout).expect("it is JSON")
}

#[test]
fn workload_plan_shows_the_cohort_path_and_the_quota_tree() {
    let decision = decision("kueue-cohort/tree-reclaims-across-two-cohorts.yaml");
    let explanation = &decision["explanation"];
    let way: Vec<&str> =
        explanation["victims"][0]["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(way, ["cq-left", "cohort-left", "root", "cohort-right", "cq-right"]);
    let of = |name: &str| {
        let mut quotas = explanation["quotas"].as_array().into_iter().flatten();
        quotas.find(|queue| queue["name"] == name).map(|queue| queue["quota"][0].clone()).expect("the queue is there")
    };
    let (lender, borrower) = (of("cohort-left"), of("cq-right"));
    for (cell, field, amount) in [
        (&lender, "nominal", "10"),
        (&lender, "used", "0"),
        (&lender, "lent", "5"),
        (&lender, "lentAfter", "0"),
        (&lender, "after", "8"),
        (&borrower, "borrowed", "5"),
        (&borrower, "borrowedAfter", "0"),
    ] {
        assert_eq!(cell[field], amount, "{field} of {cell}");
    }
    assert_eq!(explanation["admission"]["podSetAssignments"][0]["resourceUsage"]["cpu"], "8");
}

#[test]
fn elastic_quotas_are_shown_below_their_parents_by_their_whole_names() {
    const QUOTAS: &str = r#"
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {namespace: default, name: team.z}
spec: {min: {cpu: 1}, max: {cpu: 4}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {namespace: default, name: a.child, labels: {quota.scheduling.koordinator.sh/parent: team.z}}
spec: {min: {cpu: 1}, max: {cpu: 2}}
"#;
    let objects = format!("{CLUSTER}{QUOTAS}");
    let arguments = ["plan", "-f", "-", "--for", "pod/urgent", "--policy", "Koordinator", "-o", "wide"];
    let wide = text(&reprieve(&arguments, &objects));
    let tree: Vec<&str> = wide.lines().skip_while(|line| !line.starts_with("QUEUE")).skip(1).take(2).collect();
    let names: Vec<&str> = tree.iter().filter_map(|line| line.split(" cpu").next()).map(str::trim_end).collect();
    assert_eq!(names, ["team.z", "  a.child"], "{wide}");
}

#[test]
fn under_fair_sharing_the_shares_are_shown() {
    let decision = decision("kueue-cohort/fair-tree-deep-cohort-weights-decide.yaml");
    let quotas = decision["explanation"]["quotas"].as_array().expect("it has quotas");
    let of = |name: &str| quotas.iter().find(|queue| queue["name"] == name).expect("the cohort is there");
    assert_eq!((&of("a")["share"], &of("a")["shareAfter"]), (&"0".into(), &"990".into()));
    assert_eq!((&of("b")["share"], &of("b")["shareAfter"]), (&"1010".into(), &"0".into()));
    assert_eq!(of("root")["share"], Value::Null);
}

/// Two queues in which preemption is disabled, each with a running pod, and a preemptor of a third queue.
const DISABLED_QUEUES: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {namespace: yunikorn, name: yunikorn-configs}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - name: a
          resources: {guaranteed: {vcore: 3}}
        - name: b
          properties: {preemption.policy: disabled}
        - name: c
          properties: {preemption.policy: disabled}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: low-1, namespace: default, uid: l1, labels: {queue: root.b, applicationId: b}}
spec: {nodeName: n1, priority: 0, containers: [{name: main, resources: {requests: {cpu: 2}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
---
apiVersion: v1
kind: Pod
metadata: {name: low-2, namespace: default, uid: l2, labels: {queue: root.c, applicationId: c}}
spec: {nodeName: n1, priority: 0, containers: [{name: main, resources: {requests: {cpu: 2}}}]}
status: {phase: Running, startTime: 2026-01-01T00:00:00Z}
---
apiVersion: v1
kind: Pod
metadata: {name: high, namespace: default, uid: h, labels: {queue: root.a, applicationId: a}}
spec: {priority: 10, containers: [{name: main, resources: {requests: {cpu: 3}}}]}
"#;

#[test]
fn units_spared_by_one_law_share_a_row_only_if_the_sentence_is_true_of_each() {
    let arguments = ["plan", "-f", "-", "--for", "pod/high", "--policy", "YuniKorn", "--now", "2026-01-01T01:00:00Z"];
    let table = text(&reprieve(&arguments, DISABLED_QUEUES));
    for (pod, queue) in [("default/low-1", "root.b"), ("default/low-2", "root.c")] {
        let row = table.lines().find(|line| line.starts_with(pod)).unwrap_or_else(|| panic!("{pod}: {table}"));
        assert!(row.ends_with(&format!("preemption of pods in queue {queue} is disabled")), "{table}");
    }
}

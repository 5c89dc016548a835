//! `reprieve plan --submit` applies the defaults of the API server to submitted objects before it decides.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A node with 8 GPUs, all of them taken by a pod of priority 10 that writes them under limits.
const FULL: &str = "
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: 8, nvidia.com/gpu: 8, pods: 10}}}
---
apiVersion: v1
kind: Pod
metadata: {name: low}
spec: {nodeName: node-1, priority: 10, containers: [{name: c, resources: {requests: {cpu: 2}, limits: {nvidia.com/gpu: 8}}}]}
status: {phase: Running, startTime: '2026-01-01T00:00:00Z'}
";

struct Asked {
    folder: TempDir,
}

impl Asked {
    fn new(cluster: &str, submitted: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        std::fs::write(folder.path().join("cluster.yaml"), cluster).expect("it is written");
        std::fs::write(folder.path().join("new.yaml"), submitted).expect("it is written");
        Self { folder }
    }

    fn plan(&self, form: &str) -> Output {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let now = "2026-01-01T01:00:00Z";
        run(&["plan", "-f", &path("cluster.yaml"), "--submit", &path("new.yaml"), "--now", now, "-o", form])
    }

    fn json(&self) -> Value {
        let output = self.plan("json");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
    }

    /// The recorded question, which decides the same.
    fn recorded(&self) -> String {
        let recorded = String::from_utf8_lossy(&self.plan("test").stdout).into_owned();
        let file = self.folder.path().join("recorded.yaml");
        std::fs::write(&file, &recorded).expect("it is written");
        let output = run(&["test", &file.display().to_string()]);
        assert_eq!(text(&output).trim(), "1 passed, 0 failed", "{recorded}");
        recorded
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reprieve")).args(arguments).output().expect("reprieve runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn job(pods: u32, template: &str) -> String {
    format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: new}}, spec: {{parallelism: {pods}, template: {{spec: {{{template}}}}}}}}}"
    )
}

/// What is decided, and the warnings.
fn decided(cluster: &str, submitted: &str) -> (String, Vec<String>) {
    let asked = Asked::new(cluster, submitted);
    let json = asked.json();
    asked.recorded();
    let warnings = json["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.map(|warning| warning.as_str().expect("text").to_owned()).collect();
    (json["outcome"].as_str().expect("an outcome").to_owned(), warnings)
}

#[test]
fn template_with_limits_only_requests_its_limits() {
    let gpus = "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]";
    let keeper = |kind: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: new}}, spec: {{template: {{spec: {{priority: 100, {gpus}}}}}}}}}"
        )
    };
    let urgent = format!("priority: 100, {gpus}");
    for submitted in [
        job(1, &urgent),
        keeper("Deployment"),
        keeper("ReplicaSet"),
        keeper("StatefulSet"),
        format!("{{apiVersion: v1, kind: Pod, metadata: {{name: new}}, spec: {{{urgent}}}}}"),
    ] {
        let asked = Asked::new(FULL, &submitted);
        assert_eq!(asked.json()["victims"], serde_json::json!([{"pod": "default/low"}]), "{submitted}");
        let recorded = asked.recorded();
        assert_eq!(recorded.matches("requests:").count(), 2, "both pods are recorded with requests: {recorded}");
    }
    assert_eq!(decided(FULL, &job(1, &format!("priority: 10, {gpus}"))).0, "Unschedulable");
}

#[test]
fn a_limit_range_completes_what_is_submitted() {
    let limits = |namespace: &str, cpu: &str| {
        format!(
            "{{apiVersion: v1, kind: LimitRange, metadata: {{namespace: {namespace}, name: limits}}, spec: {{limits: [{{type: Container, \
             default: {{cpu: {cpu}}}}}]}}}}"
        )
    };
    let nothing = job(1, "priority: 100, containers: [{name: c}]");
    let limit = job(1, "priority: 100, containers: [{name: c, resources: {limits: {cpu: 3}}}]");
    for (cluster, submitted, outcome) in [
        (FULL.to_owned(), nothing.clone(), "Schedule"),
        (format!("{FULL}---\n{}", limits("default", "7")), nothing.clone(), "Preempt"),
        (format!("{FULL}---\n{}", limits("other", "7")), nothing.clone(), "Schedule"),
        (format!("{FULL}---\n{}", limits("default", "9")), nothing.clone(), "Unschedulable"),
        // In the submitted file itself.
        (FULL.to_owned(), format!("{}\n---\n{nothing}", limits("default", "7")), "Preempt"),
        // The pod's own limit counts, not the default.
        (format!("{FULL}---\n{}", limits("default", "7")), limit, "Schedule"),
    ] {
        assert_eq!(decided(&cluster, &submitted), (outcome.to_owned(), Vec::new()), "{cluster}{submitted}");
    }
}

#[test]
fn a_pod_that_the_api_server_would_refuse_comes_with_a_warning() {
    let limits = "{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, max: {cpu: 1}}]}}";
    let three = job(3, "priority: 100, containers: [{name: c, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]");
    let (_, warnings) = decided(&format!("{FULL}---\n{limits}"), &three);
    assert_eq!(
        warnings,
        [
            "Pod default/new-0: spec.containers[c].resources: the request of cpu exceeds its limit; lower the request or raise the limit",
            "Pod default/new-0: spec.containers[c]: 2 cpu is above the max of 1 for a container; change it or the LimitRange",
        ]
    );
}

#[test]
fn a_runtime_class_completes_what_is_submitted() {
    let class = |rest: &str| {
        format!(
            "{FULL}---\n{{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {{name: sandbox}}, handler: sandbox, {rest}}}"
        )
    };
    let tainted = "---\n{apiVersion: v1, kind: Node, metadata: {name: node-2, labels: {runtime: sandbox}}, spec: {taints: [{key: runtime, \
                   effect: NoSchedule}]}, status: {allocatable: {cpu: 8, pods: 10}}}";
    let submitted = |cpu: u32| {
        job(
            1,
            &format!(
                "priority: 100, runtimeClassName: sandbox, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]"
            ),
        )
    };
    let selector = "scheduling: {nodeSelector: {runtime: sandbox}}";
    let both = "scheduling: {nodeSelector: {runtime: sandbox}, tolerations: [{key: runtime, operator: Exists}]}";
    for (cluster, cpu, outcome) in [
        (class(""), 6, "Schedule"),
        (class("overhead: {podFixed: {cpu: 1}}"), 6, "Preempt"),
        (class("overhead: {podFixed: {cpu: 3}}"), 6, "Unschedulable"),
        (class(selector), 6, "Unschedulable"),
        (class(selector) + "\n" + tainted, 6, "Unschedulable"),
        (class(both) + "\n" + tainted, 6, "Schedule"),
        (class(both) + "\n" + tainted, 8, "Schedule"),
    ] {
        assert_eq!(decided(&cluster, &submitted(cpu)), (outcome.to_owned(), Vec::new()), "{cluster}");
    }
    let (outcome, warnings) = decided(FULL, &submitted(6));
    assert_eq!(outcome, "Schedule");
    assert_eq!(
        warnings,
        [
            "Pod default/new-0: spec.runtimeClassName: RuntimeClass \"sandbox\" is not in the input, so its overhead, node selector and \
          tolerations are unknown; add the output of kubectl get runtimeclasses -o yaml"
        ]
    );
}

#[test]
fn default_priority_class_applies_to_objects_without_one() {
    let class = |rest: &str| {
        format!(
            "{FULL}---\n{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: normal}}, globalDefault: true, {rest}}}"
        )
    };
    let one = job(1, "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]");
    let several = job(2, "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]");
    for (cluster, outcome) in [
        (FULL.to_owned(), "Unschedulable"),
        (class("value: 11"), "Preempt"),
        (class("value: 10"), "Unschedulable"),
        (class("value: 11, preemptionPolicy: Never"), "Unschedulable"),
    ] {
        for submitted in [&one, &several] {
            assert_eq!(decided(&cluster, submitted), (outcome.to_owned(), Vec::new()), "{cluster} {submitted}");
        }
    }
    let recorded = Asked::new(&class("value: 11"), &several).recorded();
    assert_eq!(recorded.matches("priorityClassName: normal").count(), 3, "two pods and their group: {recorded}");
}

#[test]
fn a_stateful_set_has_the_claims_of_its_templates() {
    let set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {template: {spec: {priority: 100, containers: [{name: \
               c, resources: {requests: {cpu: 1}}}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]}}";
    let (outcome, _) = decided(FULL, set);
    assert_eq!(outcome, "Unschedulable", "each of its pods has a PersistentVolumeClaim");
    let (outcome, _) = decided(FULL, &set.replace("volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]", ""));
    assert_eq!(outcome, "Schedule");
}

#[test]
fn invalid_limit_range_affects_only_its_namespace() {
    let broken = |namespace: &str| {
        format!(
            "{FULL}---\n{{apiVersion: v1, kind: LimitRange, metadata: {{name: broken, namespace: {namespace}}}, spec: {{limits: [{{type: \
             Container, default: {{cpu: a lot}}}}]}}}}"
        )
    };
    let one = job(1, "containers: [{name: c, resources: {limits: {cpu: 1}}}]");
    assert_eq!(decided(&broken("other"), &one).0, "Schedule");
    let output = Asked::new(&broken("default"), &one).plan("table");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("LimitRange default/broken: spec.limits[0].default.cpu"), "{}", text(&output));
}

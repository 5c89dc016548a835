//! The explanation of `reprieve plan`: violated budgets, the cost of other nodes, every resource that is short, and the decisive units.

mod budgets;
mod costs;
mod decisive;
mod shortages;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn reprieve(arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("reprieve runs");
    child.stdin.take().expect("it has an input").write_all(stdin.as_bytes()).expect("it reads its input");
    child.wait_with_output().expect("it ends")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A decision as a table and as JSON.
struct Decision {
    table: String,
    json: Value,
}

impl Decision {
    fn new(documents: &[String], preemptor: &str, arguments: &[&str]) -> Self {
        let input = documents.join("\n---\n");
        let common = ["plan", "-f", "-", "--for", preemptor, "--now", "2026-01-01T01:00:00Z"];
        let arguments = [&common, arguments].concat();
        let table = text(&reprieve(&arguments, &input));
        let output = reprieve(&[&arguments[..], &["-o", "json"]].concat(), &input);
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        Self { table, json }
    }

    fn line(&self, start: &str) -> &str {
        let found = self.table.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line starts with {start:?}:\n{}", self.table))
    }

    fn explanation(&self) -> &Value {
        &self.json["explanation"]
    }

    fn victim(&self, pod: &str) -> &Value {
        let mut victims = self.explanation()["victims"].as_array().into_iter().flatten();
        let has = |victim: &&Value| victim["pods"].as_array().is_some_and(|pods| pods.contains(&pod.into()));
        victims.find(has).unwrap_or_else(|| panic!("{pod} is no victim: {}", self.table))
    }

    fn entry(&self, pod: &str) -> &Value {
        let mut spared = self.explanation()["spared"].as_array().into_iter().flatten();
        let has = |unit: &&Value| unit["pods"].as_array().is_some_and(|pods| pods.contains(&pod.into()));
        spared.find(has).unwrap_or_else(|| panic!("{pod} is not spared: {}", self.table))
    }

    fn place(&self, kind: &str, name: &str) -> &Value {
        let mut places = self.explanation()[kind].as_array().into_iter().flatten();
        places.find(|place| place["name"] == name).unwrap_or_else(|| panic!("no {name} in {kind}: {}", self.table))
    }

    fn node(&self, name: &str) -> &Value {
        self.place("nodes", name)
    }

    /// The text of a node that could be used, but was not chosen.
    fn other(&self, name: &str) -> &str {
        let place = self.node(name);
        let text = place["text"].as_str().expect("a place has a text");
        let result = if text.starts_with("equal cost") { "EqualCost" } else { "HigherCost" };
        assert_eq!(place["result"], result, "{place}");
        text
    }
}

fn node(name: &str, allocatable: &str) -> String {
    format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{{allocatable}}}}}}}")
}

/// A pod that runs on a node, with more of its metadata and spec.
fn running(name: &str, node: &str, priority: i64, requests: &str, metadata: &str, spec: &str) -> String {
    started(name, node, priority, requests, "2026-01-01T00:00:00Z", (metadata, spec))
}

fn started(name: &str, node: &str, priority: i64, requests: &str, start: &str, more: (&str, &str)) -> String {
    let (metadata, spec) = more;
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default, {metadata}}}, spec: {{nodeName: {node}, \
         priority: {priority}, {spec} containers: [{{name: c, resources: {{requests: {{{requests}}}}}}}]}}, \
         status: {{phase: Running, startTime: \"{start}\"}}}}"
    )
}

fn pending(name: &str, priority: i64, requests: &str, metadata: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default, {metadata}}}, spec: {{priority: {priority}, \
         {spec} containers: [{{name: c, resources: {{requests: {{{requests}}}}}}}]}}, status: {{phase: Pending}}}}"
    )
}

const WEB: &str = "labels: {app: web}";
const API: &str = "labels: {app: web, tier: api}";

fn budget(name: &str, labels: &str, allowed: i32) -> String {
    format!(
        "{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {name}, namespace: default}}, \
         spec: {{selector: {{matchLabels: {{{labels}}}}}}}, status: {{disruptionsAllowed: {allowed}}}}}"
    )
}

const QUEUES: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - {name: root, queues: [{name: a, resources: {guaranteed: {vcore: 8, memory: 64G}}}, {name: b, resources: {guaranteed: {vcore: 1}}}]}
"#;

fn quota(min: &str, max: &str) -> String {
    format!(
        "{{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {{namespace: default, name: q}}, \
         spec: {{min: {{{min}}}, max: {{{max}}}}}}}"
    )
}

const IN_QUOTA: &str = "labels: {app: web, quota.scheduling.koordinator.sh/name: q}";

fn cluster_queue(name: &str, flavors: &[(&str, u32, u32)]) -> String {
    let flavor = |(name, cpu, gpus): &(&str, u32, u32)| {
        let cpu = format!("{{name: cpu, nominalQuota: {cpu}}}");
        format!("{{name: {name}, resources: [{cpu}, {{name: nvidia.com/gpu, nominalQuota: {gpus}}}]}}")
    };
    let flavors: Vec<String> = flavors.iter().map(flavor).collect();
    let group = format!("{{coveredResources: [cpu, nvidia.com/gpu], flavors: [{}]}}", flavors.join(", "));
    format!(
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {name}}}, spec: {{resourceGroups: [{group}], \
         preemption: {{withinClusterQueue: LowerPriority}}}}}}\n---\n\
         {{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{namespace: default, name: {name}}}, \
         spec: {{clusterQueue: {name}}}}}"
    )
}

fn flavor(name: &str) -> String {
    format!("{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: {name}}}}}")
}

fn workload(name: &str, queue: &str, priority: i32, cpu: u32, gpus: u32, admitted_to: Option<&str>) -> String {
    let status = admitted_to.map(|flavor| {
        let condition = "{type: QuotaReserved, status: \"True\", lastTransitionTime: \"2026-01-01T00:05:00Z\", reason: r, message: \"\"}";
        format!(
            ", status: {{admission: {{clusterQueue: {queue}, podSetAssignments: [{{name: main, flavors: {{cpu: {flavor}, \
             nvidia.com/gpu: {flavor}}}, resourceUsage: {{cpu: \"{cpu}\", nvidia.com/gpu: \"{gpus}\"}}, count: 1}}]}}, \
             conditions: [{condition}]}}"
        )
    });
    format!(
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{namespace: default, name: {name}, uid: uid-{name}, \
         creationTimestamp: \"2026-01-01T00:00:00Z\"}}, spec: {{queueName: {queue}, priority: {priority}, podSets: [{{name: main, \
         count: 1, template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}, nvidia.com/gpu: {gpus}}}}}}}]}}}}}}]}}\
         {}}}",
        status.unwrap_or_default()
    )
}

impl Decision {
    /// The text of a spared unit, by its first pod or its workload.
    fn spared(&self, name: &str) -> &str {
        let mut spared = self.explanation()["spared"].as_array().into_iter().flatten();
        let found = spared.find(|spared| spared["pods"][0] == name || spared["workload"] == name);
        found
            .and_then(|spared| spared["text"].as_str())
            .unwrap_or_else(|| panic!("{name} is not spared: {}", self.table))
    }
}

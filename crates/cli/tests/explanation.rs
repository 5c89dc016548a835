//! What `reprieve plan` says about a plan: the budgets that it violates, what other places would cost, and every resource that is short.

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
        assert_eq!(place["verdict"], "Dearer", "{place}");
        place["text"].as_str().expect("a place has a text")
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

fn no_budget_is_mentioned(decision: &Decision) {
    assert!(!decision.table.contains("PodDisruptionBudget"), "{}", decision.table);
    assert_eq!(decision.explanation().get("budgets"), None);
    assert_eq!(decision.json["warnings"], json!([]));
    assert!(decision.explanation()["victims"].as_array().is_some_and(|victims| !victims.is_empty()));
    for victim in decision.explanation()["victims"].as_array().into_iter().flatten() {
        assert_eq!(victim.get("violates"), None);
    }
}

#[test]
fn a_violated_budget_is_in_the_second_line_in_the_victims_row_and_a_warning() {
    let cluster = [
        node("node-1", "cpu: 2, pods: 9"),
        running("low", "node-1", 10, "cpu: 2", WEB, ""),
        budget("web", "app: web", 0),
        pending("urgent", 100, "cpu: 2", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    let sentence =
        "violates PodDisruptionBudget default/web: it allows 0 more disruptions, the plan evicts 1 of its pods";
    assert_eq!(decision.table.lines().nth(1), Some(sentence), "{}", decision.table);
    assert!(decision.line("default/low").ends_with("; violates PodDisruptionBudget default/web"), "{}", decision.table);
    assert!(decision.table.trim_end().ends_with(&format!("warning: {sentence}")), "{}", decision.table);
    let budgets = json!([{ "name": "default/web", "allowed": 0, "evicted": 1 }]);
    assert_eq!(decision.explanation()["budgets"], budgets);
    assert_eq!(decision.victim("default/low")["violates"], json!(["default/web"]));
    assert_eq!(decision.json["warnings"], json!([sentence]));

    let input = cluster.join("\n---\n");
    let arguments = ["compare", "-f", "-", "--for", "pod/urgent", "-o"];
    let table = text(&reprieve(&[&arguments[..], &["table"]].concat(), &input));
    assert!(table.contains(&format!("warning: Kubernetes {sentence}\n")), "{table}");
    let output = reprieve(&[&arguments[..], &["json"]].concat(), &input);
    let comparison: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(comparison["verdicts"][0]["budgets"], budgets);
    let page = text(&reprieve(&[&arguments[..], &["html"]].concat(), &input));
    assert!(page.contains(sentence), "{page}");
}

#[test]
fn a_gang_violates_a_budget_with_all_its_pods_but_those_that_are_terminating() {
    let group = |name: &str, priority: i32, more: &str| {
        format!(
            "{{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {{namespace: default, name: {name}}}, \
             spec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}, {more} priority: {priority}}}}}"
        )
    };
    let of = |name: &str| format!("schedulingGroup: {{podGroupName: {name}}},");
    let mut cluster = vec![
        node("node-1", "cpu: 2, pods: 9"),
        node("node-2", "cpu: 2, pods: 9"),
        node("node-3", "cpu: 2, pods: 9"),
        group("gang", 10, "disruptionMode: {all: {}},"),
        group("urgent", 100, ""),
        running("gang-0", "node-1", 10, "cpu: 2", WEB, &of("gang")),
        running("gang-1", "node-2", 10, "cpu: 2", WEB, &of("gang")),
        running("gang-2", "node-3", 10, "cpu: 2", WEB, &of("gang")),
        budget("web", "app: web", 1),
        pending("urgent-0", 100, "cpu: 2", "", &of("urgent")),
        pending("urgent-1", 100, "cpu: 2", "", &of("urgent")),
    ];
    let decision = Decision::new(&cluster, "podgroup/urgent", &[]);
    let line = "violates PodDisruptionBudget default/web: it allows 1 more disruption, the plan evicts 3 of its pods";
    assert_eq!(decision.table.lines().nth(1), Some(line), "{}", decision.table);
    assert_eq!(decision.victim("default/gang-0")["violates"], json!(["default/web"]));
    let row = decision.line("default/gang (3 pods)");
    assert!(row.ends_with("; violates PodDisruptionBudget default/web"), "{row}");

    let deleted = format!("{WEB}, deletionTimestamp: \"2026-01-01T02:00:00Z\"");
    cluster[6] = running("gang-1", "node-2", 10, "cpu: 2", &deleted, &of("gang"));
    let decision = Decision::new(&cluster, "podgroup/urgent", &[]);
    assert_eq!(decision.explanation()["budgets"][0]["evicted"], 2, "{}", decision.table);
    cluster[7] = running("gang-2", "node-3", 10, "cpu: 2", &deleted, &of("gang"));
    no_budget_is_mentioned(&Decision::new(&cluster, "podgroup/urgent", &[]));
}

#[test]
fn of_two_budgets_each_victim_names_its_own() {
    let cluster = |first: i32| {
        [
            node("node-1", "cpu: 4, pods: 9"),
            running("low-1", "node-1", 10, "cpu: 2", API, ""),
            running("low-2", "node-1", 10, "cpu: 2", WEB, ""),
            budget("api", "tier: api", 0),
            budget("web", "app: web", first),
            pending("urgent", 100, "cpu: 4", "", ""),
        ]
    };
    let decision = Decision::new(&cluster(1), "pod/urgent", &[]);
    let lines: Vec<&str> = decision.table.lines().skip(1).take(3).collect();
    let expected = [
        "violates PodDisruptionBudget default/api: it allows 0 more disruptions, the plan evicts 1 of its pods",
        "violates PodDisruptionBudget default/web: it allows 1 more disruption, the plan evicts 2 of its pods",
        "",
    ];
    assert_eq!(lines, expected, "{}", decision.table);
    assert_eq!(decision.victim("default/low-1")["violates"], json!(["default/api", "default/web"]));
    assert_eq!(decision.victim("default/low-2")["violates"], json!(["default/web"]));
    let row = decision.line("default/low-1");
    assert!(row.ends_with("; violates PodDisruptionBudgets default/api and default/web"), "{row}");
    assert_eq!(decision.json["warnings"].as_array().map(Vec::len), Some(2));

    let decision = Decision::new(&cluster(2), "pod/urgent", &[]);
    assert_eq!(decision.explanation()["budgets"].as_array().map(Vec::len), Some(1));
    assert_eq!(decision.victim("default/low-2").get("violates"), None);
}

/// Both pods are charged before anybody is reprieved, so the less important one counts as a violation. It alone is evicted, and the
/// budget allows that.
#[test]
fn a_budget_that_is_charged_but_not_violated_is_not_mentioned() {
    let cluster = [
        node("node-1", "cpu: 4, pods: 9"),
        running("high", "node-1", 20, "cpu: 1", WEB, ""),
        running("low", "node-1", 10, "cpu: 3", WEB, ""),
        budget("web", "app: web", 1),
        pending("urgent", 100, "cpu: 3", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    assert_eq!(decision.json["victims"], json!([{ "pod": "default/low" }]));
    assert_eq!(decision.explanation()["cost"]["budgetViolations"], 1, "the cost is as kube-scheduler has it");
    no_budget_is_mentioned(&decision);
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

#[test]
fn yunikorn_names_budgets_and_shortages() {
    let queue = |queue: &str| format!("labels: {{app: web, queue: root.{queue}, applicationId: {queue}}}");
    let small = "cpu: 2, memory: 2Gi, example.com/license: 1";
    let cluster = [
        QUEUES.to_owned(),
        node("node-1", "cpu: 4, memory: 4Gi, example.com/license: 2, pods: 9"),
        node("node-2", "cpu: 1, memory: 1Gi, pods: 9"),
        running("first", "node-1", 5, small, &queue("b"), ""),
        running("second", "node-1", 5, small, &queue("b"), ""),
        budget("web", "app: web", 0),
        pending("urgent", 5, small, &queue("a"), ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn"]);
    let line = "violates PodDisruptionBudget default/web: it allows 0 more disruptions, the plan evicts 1 of its pods";
    assert_eq!(decision.table.lines().nth(1), Some(line), "{}", decision.table);
    let victim = &decision.explanation()["victims"][0];
    assert_eq!(victim["violates"], json!(["default/web"]));
    assert_eq!(victim["short"], json!({ "cpu": "2", "memory": "2Gi", "example.com/license": "1" }));
    let node = decision.node("node-2");
    assert_eq!(node["short"], json!({ "cpu": "1", "memory": "1Gi", "example.com/license": "1" }));
    let beyond = "(asks for more than the whole node has)";
    let text = format!("short of 1 cpu {beyond}, 1Gi memory {beyond} and 1 example.com/license {beyond}");
    assert_eq!(node["text"], text);
}

#[test]
fn yunikorn_says_by_what_a_node_ranks_lower_or_that_it_ranks_the_same() {
    let queue = |queue: &str| format!("labels: {{queue: root.{queue}, applicationId: {queue}}}");
    let out = "annotations: {yunikorn.apache.org/allow-preemption: \"false\"}";
    let created = "creationTimestamp: \"2026-01-01T00:30:00Z\"";
    let other = format!("{}, {created}", queue("b"));
    let node_of = |name: &str| node(name, "cpu: 2, pods: 9");
    let cluster = [
        QUEUES.to_owned(),
        node_of("node-1"),
        node_of("node-2"),
        node_of("node-3"),
        node_of("node-4"),
        node_of("node-5"),
        running("oldest", "node-1", 5, "cpu: 2", &queue("b"), ""),
        running("opted-out", "node-2", 5, "cpu: 2", &format!("{other}, {out}"), ""),
        running("half-1", "node-3", 5, "cpu: 1", &other, ""),
        running("half-2", "node-3", 5, "cpu: 1", &other, ""),
        running("one", "node-4", 5, "cpu: 2", &other, ""),
        running("two", "node-5", 5, "cpu: 2", &other, ""),
        pending("urgent", 5, "cpu: 2", &queue("a"), ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn"]);
    assert_eq!(decision.node("node-4")["verdict"], "Chosen", "{}", decision.table);
    let takes = |n: &str| format!("would take {n} of priority up to 5");
    let higher = "higher cost than node-4:";
    let one = takes("1 pod");
    assert_eq!(decision.other("node-1"), format!("{one}; {higher} a victim is the first pod of its application"));
    assert_eq!(decision.other("node-2"), format!("{one}; {higher} a victim opted out of being preempted"));
    assert_eq!(decision.other("node-3"), format!("{}; {higher} 2 pods instead of 1", takes("2 pods")));
    assert_eq!(decision.other("node-5"), format!("equal cost, first by name is node-4; {one}"));
    assert_eq!(decision.node("node-5")["equalCost"], true);
    assert_eq!(decision.node("node-3").get("equalCost"), None);
}

#[test]
fn yunikorn_names_every_resource_of_which_too_little_is_left_of_a_guarantee() {
    let queues = QUEUES.replace("{vcore: 1}", "{vcore: 2, memory: 8Gi, nvidia.com/gpu: 2}");
    let queue = |queue: &str| format!("labels: {{queue: root.{queue}, applicationId: {queue}}}");
    let cluster = [
        queues.clone(),
        node("node-1", "cpu: 4, memory: 8Gi, nvidia.com/gpu: 4, pods: 9"),
        running("own", "node-1", 5, "cpu: 1, nvidia.com/gpu: 1", &queue("b"), ""),
        running("large", "node-1", 5, "cpu: 3, memory: 1Gi, nvidia.com/gpu: 3", &queue("a"), ""),
        pending("urgent", 5, "cpu: 4, memory: 1Gi, nvidia.com/gpu: 3", &queue("b"), ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn"]);
    let law = &decision.explanation()["law"];
    let text = "queue root.b has too little left of its guarantee: 1 cpu of 4 asked and 1 nvidia.com/gpu of 3 asked";
    assert_eq!((&law["name"], &law["text"]), (&"NotUnderGuarantee".into(), &text.into()), "{}", decision.table);
}

/// Only the queue's maximum is short: any node with room does, and the same pods must go.
#[test]
fn yunikorn_says_so_where_only_quota_is_short() {
    let queues = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - name: top
          resources: {max: {vcore: 4, memory: 4Gi}}
          queues: [{name: a, resources: {guaranteed: {vcore: 2, memory: 2Gi}}}, {name: b, resources: {guaranteed: {vcore: 1}}}]
"#;
    let queue = |queue: &str| format!("labels: {{queue: root.top.{queue}, applicationId: {queue}}}");
    let size = "cpu: 2, memory: 2Gi";
    let cluster = [
        queues.to_owned(),
        node("node-1", "cpu: 4, memory: 4Gi, pods: 9"),
        node("node-2", "cpu: 2, memory: 2Gi, pods: 9"),
        node("node-3", "cpu: 2, memory: 2Gi, pods: 9"),
        node("node-4", "cpu: 3, memory: 3Gi, pods: 9"),
        running("first", "node-1", 5, size, &queue("b"), ""),
        running("second", "node-4", 5, size, &queue("b"), ""),
        pending("urgent", 5, size, &queue("a"), ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn"]);
    assert_eq!(decision.node("node-1")["text"], "costs least; equal cost, first by name", "{}", decision.table);
    assert!(decision.other("node-2").starts_with("equal cost, first by name is node-1; would take 1 pod"));
    assert!(decision.other("node-4").ends_with("; node-1 has room, and only quota is short"), "{}", decision.table);
    let why = decision.explanation()["victims"][0]["text"].as_str().unwrap_or_default();
    let over = "queue root.top would be over its maximum by 2 cpu and 2Gi memory";
    assert!(why.ends_with(over), "{why}");
}

/// A pod that would be small enough alone is too large once another uses up the guarantee; only the resource that is short is named.
#[test]
fn yunikorn_says_what_is_too_large_after_others_were_taken() {
    let queues =
        QUEUES.replace("{vcore: 8, memory: 64G}", "{vcore: 4, memory: 8Gi}").replace("{vcore: 1}", "{vcore: 0}");
    let queue = |queue: &str, created: &str| {
        format!(
            "creationTimestamp: \"2026-01-01T00:{created}:00Z\", labels: {{queue: root.{queue}, applicationId: {queue}}}"
        )
    };
    let cluster = [
        queues,
        node("node-1", "cpu: 6, memory: 16Gi, pods: 9"),
        node("node-2", "cpu: 1, memory: 16Gi, pods: 9"),
        running("oldest", "node-1", 5, "cpu: 1, memory: 1Gi", &queue("b", "01"), ""),
        running("older", "node-1", 5, "cpu: 1, memory: 1Gi", &queue("b", "02"), ""),
        running("newer", "node-1", 5, "cpu: 2, memory: 3Gi", &queue("b", "03"), ""),
        running("newest", "node-1", 5, "cpu: 2, memory: 6Gi", &queue("b", "04"), ""),
        running("elsewhere", "node-2", 5, "cpu: 1", &queue("b", "05"), ""),
        pending("urgent", 5, "cpu: 4, memory: 1Gi", &queue("a", "06"), ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn"]);
    assert_eq!(decision.json["outcome"], "Unschedulable", "{}", decision.table);
    let newer = decision.entry("default/newer");
    let text = "it is larger than what queue root.a has left of its guarantee: 2Gi memory";
    assert_eq!((&newer["law"], &newer["text"]), (&"TooLarge".into(), &text.into()), "{}", decision.table);
    assert_eq!(decision.entry("default/newest")["law"], "InVain", "{}", decision.table);
    for behind in ["default/older", "default/oldest", "default/elsewhere"] {
        assert_eq!(decision.entry(behind)["law"], "NotReached", "{}", decision.table);
    }
    assert!(decision.line("3 units").contains("NotReached"), "{}", decision.table);
    assert_eq!(decision.node("node-1")["short"], json!({ "cpu": "2" }), "{}", decision.table);
}

/// What lies on a node that costs more, or that refuses the pod whatever runs there, plays no part.
#[test]
fn what_is_not_decisive_is_marked() {
    let cluster = [
        node("node-1", "cpu: 2, pods: 9"),
        node("node-2", "cpu: 2, pods: 9"),
        node("node-3", "cpu: 1, pods: 9"),
        running("low", "node-1", 10, "cpu: 1", "", ""),
        running("stays", "node-1", 200, "cpu: 1", "", ""),
        running("middle", "node-2", 20, "cpu: 2", "", ""),
        running("small", "node-3", 10, "cpu: 1", "", ""),
        pending("urgent", 100, "cpu: 1", "", ""),
        pending("large", 100, "cpu: 3", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    for (node, decisive) in [("node-1", true), ("node-2", false), ("node-3", false)] {
        assert_eq!(decision.node(node)["decisive"], decisive, "{node}");
    }
    for (pod, law, decisive) in [
        ("default/stays", "Priority", true),
        ("default/middle", "Reprieved", false),
        ("default/small", "Reprieved", false),
    ] {
        let entry = decision.entry(pod);
        assert_eq!((&entry["law"], &entry["decisive"]), (&law.into(), &decisive.into()), "{}", decision.table);
    }
    let decision = Decision::new(&cluster, "pod/large", &[]);
    assert_eq!(decision.json["outcome"], "Unschedulable", "{}", decision.table);
    for node in ["node-1", "node-2", "node-3"] {
        assert_eq!(decision.node(node)["decisive"], false, "no node is large enough, whatever runs there");
    }
    assert_eq!(decision.entry("default/low")["law"], "NotReached");
    assert!(!decision.table.contains("NotReached"), "a table of units that were not looked at says nothing");
}

fn quota(min: &str, max: &str) -> String {
    format!(
        "{{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {{namespace: default, name: q}}, \
         spec: {{min: {{{min}}}, max: {{{max}}}}}}}"
    )
}

const IN_QUOTA: &str = "labels: {app: web, quota.scheduling.koordinator.sh/name: q}";

#[test]
fn koordinator_names_budgets_and_shortages() {
    let cluster = [
        quota("cpu: 8", "cpu: 80"),
        node("node-1", "cpu: 2, memory: 2Gi, pods: 9"),
        running("low", "node-1", 5, "cpu: 2, memory: 2Gi", IN_QUOTA, ""),
        budget("web", "app: web", 0),
        pending("urgent", 10, "cpu: 2, memory: 1Gi", IN_QUOTA, ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "Koordinator"]);
    let line = "violates PodDisruptionBudget default/web: it allows 0 more disruptions, the plan evicts 1 of its pods";
    assert_eq!(decision.table.lines().nth(1), Some(line), "{}", decision.table);
    let victim = decision.victim("default/low");
    assert_eq!(victim["violates"], json!(["default/web"]));
    assert_eq!(victim["short"], json!({ "cpu": "2", "memory": "1Gi" }));
    let text = victim["text"].as_str().unwrap_or_default();
    assert!(text.ends_with("short of 2 cpu and 1Gi memory"), "{text}");
}

#[test]
fn koordinator_names_every_resource_over_a_limit() {
    let quoted = |preemptible: bool| {
        let preemptible = format!("quota.scheduling.koordinator.sh/preemptible: \"{preemptible}\"");
        format!("labels: {{quota.scheduling.koordinator.sh/name: q, {preemptible}}}")
    };
    let cluster = |preemptible: bool| {
        [
            quota("cpu: 4, memory: 4Gi", "cpu: 4, memory: 4Gi"),
            node("node-1", "cpu: 20, memory: 20Gi, pods: 9"),
            running("low", "node-1", 5, "cpu: 3, memory: 3Gi", &quoted(true), ""),
            pending("urgent", 10, "cpu: 2, memory: 3Gi", &quoted(preemptible), ""),
        ]
    };
    let decision = Decision::new(&cluster(true), "pod/urgent", &["--policy", "Koordinator"]);
    let law = &decision.explanation()["law"];
    let text = "its job would pass the limit of quota q by 1 cpu and 2Gi memory";
    assert_eq!((&law["name"], &law["text"]), (&"QuotaLimit".into(), &text.into()), "{}", decision.table);

    let decision = Decision::new(&cluster(false), "pod/urgent", &["--policy", "Koordinator"]);
    let victim = decision.victim("default/low");
    let text = "default/urgent would not fit on node-1: queue q would be over its maximum by 1 cpu and 2Gi memory";
    assert_eq!((&victim["filter"], &victim["text"]), (&"Ceiling".into(), &text.into()));
    assert_eq!(victim.get("short"), None, "the node is short of nothing");
}

/// A workload yields with all its pods, on whichever node they are, and so does the budget count them.
#[test]
fn kueue_counts_the_pods_of_workloads_where_they_are_known() {
    let case = "../../conformance/kueue-joint/own-joint-a-workload-yields-all-its-pods.yaml";
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join(case);
    let case = std::fs::read_to_string(case).expect("the case is there");
    let case = case.replace("name: spread-0,", "name: spread-0, labels: {app: web},");
    let case = case.replace("name: spread-1,", "name: spread-1, labels: {app: web},");
    let input = format!("{case}\n---\n{}", budget("web", "app: web", 1));
    let output = reprieve(&["plan", "-f", "-", "-o", "json"], &input);
    let decision: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let budgets = json!([{ "name": "default/web", "allowed": 1, "evicted": 2 }]);
    assert_eq!(decision["explanation"]["budgets"], budgets);
    for victim in decision["explanation"]["victims"].as_array().into_iter().flatten() {
        let violates = (victim["workload"] == "default/spread").then(|| json!(["default/web"]));
        assert_eq!(victim.get("violates"), violates.as_ref(), "{victim}");
    }

    let table = text(&reprieve(&["plan", "--cycle", "-f", "-"], &input));
    let line = "violates PodDisruptionBudget default/web: it allows 1 more disruption, the cycle evicts 2 of its pods";
    assert_eq!(table.lines().nth(1), Some(line), "{table}");
    assert!(table.trim_end().ends_with(&format!("warning: {line}")), "{table}");
    assert!(table.contains("once its victims are gone; violates PodDisruptionBudget default/web\n"), "{table}");
    let output = reprieve(&["plan", "--cycle", "-f", "-", "-o", "json"], &input);
    let cycle: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&cycle["budgets"], &cycle["warnings"]), (&budgets, &json!([line])));

    let evicted = r#"conditions: [{type: Evicted, status: "True", lastTransitionTime: "2026-01-01T00:50:00Z", reason: Preempted, message: ""}, "#;
    let (before, after) = case.split_once("conditions: [").expect("spread has conditions");
    let input = format!("{before}{evicted}{after}\n---\n{}", budget("web", "app: web", 1));
    let output = text(&reprieve(&["plan", "-f", "-"], &input));
    assert!(output.contains("default/spread") && !output.contains("PodDisruptionBudget"), "evicted before: {output}");
}

/// With quota alone a decision does not read pods, but the report counts the pods of its victims against their budgets.
#[test]
fn kueue_names_violated_budgets_with_quota_alone() {
    let case = "../../conformance/kueue-joint/own-joint-a-workload-yields-all-its-pods.yaml";
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join(case);
    let case = std::fs::read_to_string(case).expect("the case is there");
    let case = case.replace("args: {placement: Joint}", "args: {placement: QuotaOnly}");
    let case = case.replace("name: spread-0,", "name: spread-0, labels: {app: web},");
    let case = case.replace("name: spread-1,", "name: spread-1, labels: {app: web},");
    // The owner of the pods, instead of the annotation, says which workload they belong to.
    let owner = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: spread, uid: u, controller: true}]";
    let by_owner = case.replace("annotations: {kueue.x-k8s.io/workload: spread}", owner);
    let by_owner = by_owner.replace("name: spread, creation", &format!("name: spread, {owner}, creation"));
    for case in [case.clone(), by_owner] {
        let input = format!("{case}\n---\n{}", budget("web", "app: web", 1));
        let output = reprieve(&["plan", "-f", "-", "-o", "json"], &input);
        let decision: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        let budgets = json!([{ "name": "default/web", "allowed": 1, "evicted": 2 }]);
        assert_eq!(decision["explanation"]["budgets"], budgets, "{decision}");
        let victim = &decision["explanation"]["victims"][0];
        assert_eq!((&victim["workload"], &victim["violates"]), (&"default/spread".into(), &json!(["default/web"])));
        assert_eq!(victim["pods"], json!([]), "with quota alone a workload is no set of pods");
        let table = text(&reprieve(&["plan", "-f", "-"], &input));
        let line =
            "violates PodDisruptionBudget default/web: it allows 1 more disruption, the plan evicts 2 of its pods";
        assert_eq!(table.lines().nth(1), Some(line), "{table}");
        let table = text(&reprieve(&["plan", "--cycle", "-f", "-"], &input));
        let line =
            "violates PodDisruptionBudget default/web: it allows 1 more disruption, the cycle evicts 2 of its pods";
        assert_eq!(table.lines().nth(1), Some(line), "{table}");

        let input = format!("{case}\n---\n{}", budget("web", "app: web", 2));
        let output = text(&reprieve(&["plan", "-f", "-"], &input));
        assert!(output.contains("default/spread") && !output.contains("PodDisruptionBudget"), "{output}");
    }
    let evicted = r#"conditions: [{type: Evicted, status: "True", lastTransitionTime: "2026-01-01T00:50:00Z", reason: Preempted, message: ""}, "#;
    let (before, after) = case.split_once("conditions: [").expect("spread has conditions");
    let input = format!("{before}{evicted}{after}\n---\n{}", budget("web", "app: web", 1));
    let output = text(&reprieve(&["plan", "-f", "-"], &input));
    assert!(output.contains("default/spread") && !output.contains("PodDisruptionBudget"), "evicted before: {output}");
}

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

#[test]
fn kueue_names_every_resource_that_is_short_in_a_flavor() {
    let cluster = [
        flavor("a-small"),
        flavor("b-full"),
        cluster_queue("q", &[("a-small", 3, 2), ("b-full", 8, 8)]),
        workload("low", "q", 0, 6, 7, Some("b-full")),
        workload("urgent", "q", 10, 4, 4, None),
    ];
    let decision = Decision::new(&cluster, "workload/urgent", &["--policy", "Kueue"]);
    let small = &decision.explanation()["flavors"][0];
    assert_eq!((&small["name"], &small["mode"]), (&"a-small".into(), &"NoFit".into()), "{}", decision.table);
    assert_eq!(small["short"], json!({ "cpu": "1", "nvidia.com/gpu": "2" }));
    let full = &decision.explanation()["flavors"][1];
    assert_eq!((&full["name"], &full["mode"]), (&"b-full".into(), &"Preempt".into()), "{}", decision.table);
    assert_eq!(full["short"], json!({ "cpu": "2", "nvidia.com/gpu": "3" }));
    assert!(decision.line("FLAVOR").trim_end().ends_with("SHORT OF"), "{}", decision.table);
    assert!(decision.line("a-small").trim_end().ends_with("1 cpu, 2 nvidia.com/gpu"), "{}", decision.table);
    assert!(decision.line("b-full").trim_end().ends_with("2 cpu, 3 nvidia.com/gpu"), "{}", decision.table);
}

#[test]
fn resources_that_are_short_are_named_where_a_host_port_is_taken() {
    let port = "containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: 3, memory: 3Gi}}}]";
    let with_port = |name: &str, node: &str, priority: i64| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default}}, \
             spec: {{{node} priority: {priority}, {port}}}, status: {{phase: Pending}}}}"
        )
    };
    let cluster = [
        node("node-1", "cpu: 4, memory: 4Gi, pods: 9"),
        node("node-2", "cpu: 6, memory: 5Gi, pods: 9"),
        with_port("peer-1", "nodeName: node-1,", 100),
        with_port("peer-2", "nodeName: node-2,", 100),
        running("low", "node-2", 10, "cpu: 3, memory: 1Gi", "", ""),
        with_port("urgent", "", 100),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    let place = decision.node("node-1");
    assert_eq!((&place["filter"], &place["short"]), (&"Ports".into(), &json!({ "cpu": "2", "memory": "2Gi" })));
    let text =
        "a host port that it needs is taken, and it is short of 2 cpu and 2Gi memory, and nobody there may be taken";
    assert_eq!(place["text"], text, "{}", decision.table);
    let place = decision.node("node-2");
    assert_eq!(place["short"], json!({ "memory": "1Gi" }), "with `low` gone there is enough cpu: {}", decision.table);
}

#[test]
fn equal_cost_on_two_nodes_is_said_as_such() {
    let cluster = [
        node("node-1", "cpu: 2, pods: 9"),
        node("node-2", "cpu: 2, pods: 9"),
        node("node-3", "cpu: 2, pods: 9"),
        node("node-4", "cpu: 2, pods: 9"),
        running("a", "node-1", 20, "cpu: 2", "", ""),
        running("b", "node-2", 10, "cpu: 2", "", ""),
        running("c", "node-3", 10, "cpu: 2", "", ""),
        running("d", "node-4", 10, "cpu: 2", "", ""),
        pending("urgent", 100, "cpu: 2", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    assert_eq!(decision.node("node-2")["text"], "costs least; equal cost, first by name");
    for equal in ["node-3", "node-4"] {
        let text = "equal cost, first by name is node-2; would take 1 pod of priority up to 10";
        assert_eq!(decision.other(equal), text);
        assert_eq!(decision.node(equal)["equalCost"], true);
    }
    assert_eq!(decision.node("node-1").get("equalCost"), None);
    let row: Vec<&str> = decision.line("node-3, node-4").split_whitespace().take(3).collect();
    assert_eq!(row, ["node-3,", "node-4", "Equal"]);
    let row: Vec<&str> = decision.line("node-1").split_whitespace().take(2).collect();
    assert_eq!(row, ["node-1", "Dearer"]);
    let wide = text(&reprieve(&["plan", "-f", "-", "--for", "pod/urgent", "-o", "wide"], &cluster.join("\n---\n")));
    let rows = wide.lines().filter(|line| line.starts_with("node-") && line.contains("Equal"));
    assert_eq!(rows.count(), 2, "{wide}");
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

const FITS: &str = "the preemptor fits without taking it";

#[test]
fn koordinator_says_that_a_spared_pod_on_another_node_costs_the_same() {
    let cluster = [
        quota("cpu: 8", "cpu: 80"),
        node("node-1", "cpu: 2, pods: 9"),
        node("node-2", "cpu: 2, pods: 9"),
        node("node-3", "cpu: 2, pods: 9"),
        node("node-4", "cpu: 2, pods: 9"),
        running("a", "node-1", 6, "cpu: 2", IN_QUOTA, ""),
        running("b", "node-2", 5, "cpu: 2", IN_QUOTA, ""),
        running("c", "node-3", 5, "cpu: 2", IN_QUOTA, ""),
        running("d", "node-4", 5, "cpu: 1", IN_QUOTA, ""),
        pending("urgent", 10, "cpu: 2", IN_QUOTA, ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "Koordinator"]);
    assert_eq!(decision.json["victims"], json!([{ "pod": "default/b" }]), "{}", decision.table);
    assert_eq!(decision.spared("default/c"), format!("{FITS}; equal cost to default/b, first by name is node-2"));
    assert_eq!(decision.spared("default/a"), FITS, "its priority is higher");
    assert_eq!(decision.spared("default/d"), FITS, "it asks for less, so nothing is claimed");
    let row = decision.line("default/a, default/c, default/d");
    assert!(row.ends_with("the preemptor fits without taking them; equal cost for 1 of them"), "{row}");
}

#[test]
fn a_group_says_that_a_spared_pod_on_another_node_costs_the_same() {
    let group = "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {namespace: default, name: urgent}, \
                 spec: {schedulingPolicy: {gang: {minCount: 2}}, priority: 100}}";
    let member = |name: &str| pending(name, 100, "cpu: 2", "", "schedulingGroup: {podGroupName: urgent},");
    let cluster = [
        node("node-1", "cpu: 2, pods: 9"),
        node("node-2", "cpu: 2, pods: 9"),
        node("node-3", "cpu: 2, pods: 9"),
        node("node-4", "cpu: 2, pods: 9"),
        node("node-5", "cpu: 1, pods: 9"),
        running("a", "node-1", 10, "cpu: 1", "", ""),
        running("b", "node-2", 10, "cpu: 1", "", ""),
        running("c", "node-3", 10, "cpu: 1", "", ""),
        running("d", "node-4", 20, "cpu: 1", "", ""),
        running("e", "node-5", 10, "cpu: 1", "", ""),
        group.to_owned(),
        member("urgent-0"),
        member("urgent-1"),
    ];
    let decision = Decision::new(&cluster, "podgroup/urgent", &[]);
    let victims = json!([{ "pod": "default/a" }, { "pod": "default/b" }]);
    assert_eq!(decision.json["victims"], victims, "{}", decision.table);
    assert_eq!(decision.spared("default/c"), format!("{FITS}; equal cost to default/a, first by name is node-1"));
    assert_eq!(decision.spared("default/d"), FITS, "its priority is higher");
    assert_eq!(decision.spared("default/e"), FITS, "its node is too small");
}

#[test]
fn kueue_says_that_a_spared_workload_costs_the_same() {
    let cluster = [
        flavor("f"),
        cluster_queue("q", &[("f", 8, 8)]),
        workload("a", "q", 0, 2, 2, Some("f")),
        workload("b", "q", 0, 2, 2, Some("f")),
        workload("c", "q", 0, 2, 1, Some("f")),
        workload("d", "q", 5, 2, 2, Some("f")),
        workload("urgent", "q", 10, 2, 2, None),
    ];
    let decision = Decision::new(&cluster, "workload/urgent", &["--policy", "Kueue"]);
    let victims = decision.json["victims"].as_array().expect("there are victims");
    assert_eq!((victims.len(), &victims[0]["workload"]), (1, &"default/a".into()), "{}", decision.table);
    assert_eq!(decision.spared("default/b"), format!("{FITS}; equal cost to default/a, the order of uids decides"));
    let not_reached = "the search ended before it looked at it";
    assert_eq!(decision.spared("default/c"), not_reached, "it holds less");
    assert_eq!(decision.spared("default/d"), not_reached, "its priority is higher");
}

#[test]
fn a_higher_cost_names_the_criterion_that_decides() {
    let lowest = i64::from(i32::MIN);
    // By criterion: the victims on node-1, which is not chosen, and on node-2, which is.
    let victim =
        |name: &str, node: &str, priority: i64, cpu: u32| running(name, node, priority, &format!("cpu: {cpu}"), "", "");
    let late = |name: &str, node: &str| started(name, node, 10, "cpu: 4", "2026-01-01T00:30:00Z", ("", ""));
    for (why, takes, victims) in [
        (
            "1 pod counts against a PodDisruptionBudget instead of 0",
            "1 pod of priority up to 10, which violates PodDisruptionBudget default/web",
            vec![
                running("a", "node-1", 10, "cpu: 4", WEB, ""),
                victim("b", "node-2", 20, 4),
                budget("web", "app: web", 0),
            ],
        ),
        (
            "highest priority 20 instead of 10",
            "1 pod of priority up to 20",
            vec![victim("a", "node-1", 20, 4), victim("b", "node-2", 10, 2), victim("c", "node-2", 10, 2)],
        ),
        (
            "sum of priorities 15 instead of 14",
            "2 pods of priority up to 10",
            vec![
                victim("a", "node-1", 10, 2),
                victim("b", "node-1", 5, 2),
                victim("c", "node-2", 10, 2),
                victim("d", "node-2", 4, 2),
            ],
        ),
        (
            "sum of the priorities of 2 pods instead of 1",
            "2 pods of priority up to 0",
            vec![victim("a", "node-1", 0, 2), victim("b", "node-1", 0, 2), victim("c", "node-2", 0, 4)],
        ),
        (
            "sum of (priority + 2^31) 4294967311 instead of 4294967310",
            "2 pods of priority up to 10",
            vec![
                victim("a", "node-1", 10, 2),
                victim("b", "node-1", 5, 2),
                victim("c", "node-2", 10, 2),
                victim("d", "node-2", 4, 1),
                victim("e", "node-2", lowest, 1),
            ],
        ),
        (
            "2 pods instead of 1",
            "2 pods of priority up to 10",
            vec![victim("a", "node-1", 10, 2), victim("b", "node-1", lowest, 2), victim("c", "node-2", 10, 4)],
        ),
        (
            "earliest start of its victims of priority 10 2026-01-01T00:00:00Z instead of 2026-01-01T00:30:00Z",
            "1 pod of priority up to 10",
            vec![victim("a", "node-1", 10, 4), late("b", "node-2")],
        ),
    ] {
        let nodes = [node("node-1", "cpu: 4, pods: 9"), node("node-2", "cpu: 4, pods: 9")];
        let cluster = [&nodes[..], &victims, &[pending("urgent", 100, "cpu: 4", "", "")]].concat();
        let decision = Decision::new(&cluster, "pod/urgent", &[]);
        assert_eq!(decision.other("node-1"), format!("would take {takes}; higher cost than node-2: {why}"));
        assert_eq!(decision.node("node-2")["text"], "costs least");
    }
}

const BEYOND: &str = "(asks for more than the whole node has)";

#[test]
fn every_resource_that_is_short_is_named_before_and_after_candidates_are_gone() {
    let gpu_node = |name: &str| node(name, "cpu: 8, memory: 8Gi, nvidia.com/gpu: 8, pods: 9");
    let cluster = [
        node("a-closed", "cpu: 8, memory: 8Gi, nvidia.com/gpu: 8, pods: 9"),
        node("b-cleared", "cpu: 8, memory: 8Gi, nvidia.com/gpu: 8, pods: 9"),
        node("c-small", "cpu: 8, memory: 2Gi, nvidia.com/gpu: 4, pods: 9"),
        gpu_node("d-chosen"),
        // Nobody on a-closed may be taken.
        running("peer", "a-closed", 100, "cpu: 4, memory: 4Gi, nvidia.com/gpu: 6", "", ""),
        // With `low` gone, b-cleared lacks 2 cpu and 8 GPUs less the 6 that `low` held; before it lacks memory, too.
        running("kept", "b-cleared", 100, "cpu: 2, nvidia.com/gpu: 2", "", ""),
        running("low", "b-cleared", 10, "cpu: 1, memory: 4Gi, nvidia.com/gpu: 6", "", ""),
        running("tiny", "c-small", 10, "cpu: 1", "", ""),
        running("full", "d-chosen", 10, "cpu: 1, memory: 3Gi, nvidia.com/gpu: 1", "", ""),
        pending("urgent", 100, "cpu: 8, memory: 6Gi, nvidia.com/gpu: 8", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    for (node, short, text) in [
        (
            "a-closed",
            json!({ "cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "6" }),
            "short of 4 cpu, 2Gi memory and 6 nvidia.com/gpu, and nobody there may be taken".to_owned(),
        ),
        (
            "b-cleared",
            json!({ "cpu": "2", "nvidia.com/gpu": "2" }),
            "short of 2 cpu and 2 nvidia.com/gpu, even with every candidate gone".to_owned(),
        ),
        (
            "c-small",
            json!({ "cpu": "1", "memory": "4Gi", "nvidia.com/gpu": "4" }),
            format!("short of 1 cpu, 4Gi memory {BEYOND} and 4 nvidia.com/gpu {BEYOND}"),
        ),
    ] {
        let place = decision.node(node);
        assert_eq!((&place["filter"], &place["short"]), (&"Resources".into(), &short), "{}", decision.table);
        assert_eq!(place["text"], text, "{}", decision.table);
    }
    let victim = decision.victim("default/full");
    assert_eq!(victim["short"], json!({ "cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1" }));
    let text = victim["text"].as_str().unwrap_or_default();
    assert!(text.ends_with("on d-chosen: short of 1 cpu, 1Gi memory and 1 nvidia.com/gpu"), "{text}");
    assert_eq!(decision.node("d-chosen").get("short"), None);
}

#[test]
fn what_a_nominated_pod_holds_is_short_too() {
    let nominee = "{apiVersion: v1, kind: Pod, metadata: {name: nominee, namespace: default}, spec: {priority: 100, containers: \
                   [{name: c, resources: {requests: {cpu: 2, memory: 1Gi}}}]}, status: {phase: Pending, nominatedNodeName: node-1}}";
    let cluster = [
        node("node-1", "cpu: 4, memory: 4Gi, pods: 9"),
        running("low", "node-1", 10, "cpu: 2, memory: 2Gi", "", ""),
        nominee.to_owned(),
        pending("urgent", 100, "cpu: 3, memory: 4Gi", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    assert_eq!(decision.node("node-1")["short"], json!({ "cpu": "1", "memory": "1Gi" }), "{}", decision.table);
}

#[test]
fn a_domain_names_every_resource_that_each_node_lacks() {
    let in_zone = |name: &str, zone: &str, allocatable: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{zone: {zone}}}}}, \
             status: {{allocatable: {{{allocatable}}}}}}}"
        )
    };
    let group = "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {namespace: default, name: urgent}, spec: \
                 {schedulingPolicy: {gang: {minCount: 2}}, priority: 100, schedulingConstraints: {topology: [{key: zone}]}}}";
    let member =
        |name: &str| pending(name, 100, "cpu: 4, nvidia.com/gpu: 8", "", "schedulingGroup: {podGroupName: urgent},");
    let full = "cpu: 4, nvidia.com/gpu: 8, pods: 9";
    let low =
        |name: &str, node: &str, priority: i64| running(name, node, priority, "cpu: 2, nvidia.com/gpu: 8", "", "");
    let mut cluster = vec![
        in_zone("a-1", "a", full),
        in_zone("a-2", "a", "cpu: 3, nvidia.com/gpu: 4, pods: 9"),
        in_zone("b-1", "b", full),
        in_zone("b-2", "b", full),
        in_zone("c-1", "c", full),
        in_zone("c-2", "c", full),
        in_zone("d-1", "d", full),
        in_zone("d-2", "d", full),
        group.to_owned(),
        member("urgent-0"),
        member("urgent-1"),
    ];
    for (pod, node, priority) in [
        ("low-a1", "a-1", 10),
        ("peer-b1", "b-1", 100),
        ("peer-b2", "b-2", 100),
        ("low-c1", "c-1", 10),
        ("low-c2", "c-2", 10),
        ("low-d1", "d-1", 10),
        ("low-d2", "d-2", 10),
    ] {
        cluster.push(low(pod, node, priority));
    }
    let decision = Decision::new(&cluster, "podgroup/urgent", &[]);
    let domain = |name: &str| decision.place("domains", name);
    assert_eq!(domain("c")["text"], "costs least; equal cost, first by name", "{}", decision.table);
    assert_eq!(domain("d")["equalCost"], true);
    assert_eq!(domain("d")["text"], "equal cost, first by name is c; would take 2 pods of priority up to 10");
    let lacks = format!("short of 1 cpu {BEYOND} and 4 nvidia.com/gpu {BEYOND}");
    assert_eq!(domain("a")["nodes"]["a-2"], lacks.as_str());
    assert_eq!(domain("a")["nodes"]["a-1"], "short of 4 cpu and 8 nvidia.com/gpu", "urgent-0 is placed there");
    let text = "nobody there may be taken, and 0 of the 2 pods that it needs fit; default/urgent-0 finds no place";
    assert_eq!(domain("b")["text"], text);
    for node in ["b-1", "b-2"] {
        assert_eq!(domain("b")["nodes"][node], "short of 2 cpu and 8 nvidia.com/gpu");
    }
}

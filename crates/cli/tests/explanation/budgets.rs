//! The budgets that a plan violates.

use super::*;

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
fn violated_budget_is_shown_below_the_first_line_in_the_row_of_the_victim_and_as_a_warning() {
    let cluster = [
        node("node-1", "cpu: 2, pods: 9"),
        running("low", "node-1", 10, "cpu: 2", WEB, ""),
        budget("web", "app: web", 0),
        pending("urgent", 100, "cpu: 2", "", ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &[]);
    let sentence =
        "violates PodDisruptionBudget default/web: 0 more disruptions allowed, the plan evicts 1 of its pods";
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
    assert_eq!(comparison["results"][0]["budgets"], budgets);
    let page = text(&reprieve(&[&arguments[..], &["html"]].concat(), &input));
    assert!(page.contains(sentence), "{page}");
}

#[test]
fn gang_violates_a_budget_with_all_pods_except_terminating_ones() {
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
    let line = "violates PodDisruptionBudget default/web: 1 more disruption allowed, the plan evicts 3 of its pods";
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
fn each_victim_lists_its_own_violated_budget() {
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
        "violates PodDisruptionBudget default/api: 0 more disruptions allowed, the plan evicts 1 of its pods",
        "violates PodDisruptionBudget default/web: 1 more disruption allowed, the plan evicts 2 of its pods",
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

/// Both pods are charged before a pod is reprieved, so the less important one counts as a violation. It alone is evicted, and the
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
    let line = "violates PodDisruptionBudget default/web: 0 more disruptions allowed, the plan evicts 1 of its pods";
    assert_eq!(decision.table.lines().nth(1), Some(line), "{}", decision.table);
    let victim = &decision.explanation()["victims"][0];
    assert_eq!(victim["violates"], json!(["default/web"]));
    assert_eq!(victim["short"], json!({ "cpu": "2", "memory": "2Gi", "example.com/license": "1" }));
    let node = decision.node("node-2");
    assert_eq!(node["short"], json!({ "cpu": "1", "memory": "1Gi", "example.com/license": "1" }));
    let beyond = "(requests more than the whole node has)";
    let text = format!("short of 1 cpu {beyond}, 1Gi memory {beyond} and 1 example.com/license {beyond}");
    assert_eq!(node["text"], text);
}

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
    let line = "violates PodDisruptionBudget default/web: 0 more disruptions allowed, the plan evicts 1 of its pods";
    assert_eq!(decision.table.lines().nth(1), Some(line), "{}", decision.table);
    let victim = decision.victim("default/low");
    assert_eq!(victim["violates"], json!(["default/web"]));
    assert_eq!(victim["short"], json!({ "cpu": "2", "memory": "1Gi" }));
    let text = victim["text"].as_str().unwrap_or_default();
    assert!(text.ends_with("short of 2 cpu and 1Gi memory"), "{text}");
}

/// A workload is evicted with all its pods, on whichever nodes they are, and the budget counts all of them.
#[test]
fn kueue_counts_known_pods_of_workloads_for_budgets() {
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
    let line = "violates PodDisruptionBudget default/web: 1 more disruption allowed, the cycle evicts 2 of its pods";
    assert_eq!(table.lines().nth(1), Some(line), "{table}");
    assert!(table.trim_end().ends_with(&format!("warning: {line}")), "{table}");
    assert!(table.contains("after the victims are evicted; violates PodDisruptionBudget default/web\n"), "{table}");
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
fn kueue_reports_violated_budgets_without_placement() {
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
        let line = "violates PodDisruptionBudget default/web: 1 more disruption allowed, the plan evicts 2 of its pods";
        assert_eq!(table.lines().nth(1), Some(line), "{table}");
        let table = text(&reprieve(&["plan", "--cycle", "-f", "-"], &input));
        let line =
            "violates PodDisruptionBudget default/web: 1 more disruption allowed, the cycle evicts 2 of its pods";
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

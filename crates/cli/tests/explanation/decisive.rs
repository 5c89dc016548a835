//! Why units are spared, and whether the decision depends on them.

use serde_json::json;

use super::*;

/// A pod that would be small enough alone is too large once another uses up the guarantee; only the resource that is short is named.
#[test]
fn yunikorn_reports_candidates_too_large_after_earlier_victims() {
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
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn", "--arg", "compatibility=1.8"]);
    assert_eq!(decision.json["outcome"], "Unschedulable", "{}", decision.table);
    let newer = decision.entry("default/newer");
    let text = "larger than the guarantee left to queue root.a: 2Gi memory";
    assert_eq!(
        (&newer["law"], &newer["text"]),
        (&"ExceedsGuaranteeHeadroom".into(), &text.into()),
        "{}",
        decision.table
    );
    assert_eq!(decision.entry("default/newest")["law"], "NotEnough", "{}", decision.table);
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
    let counted = "4 units   NotReached   the search ended before these units";
    assert!(decision.table.contains(counted), "the table accounts for every unit: {}", decision.table);
}

/// A pod that grows in place cannot be asked about without the node on which it runs.
#[test]
fn node_of_a_resized_pod_is_decisive() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/kubernetes-pod/resize-preemption-disabled-on-node.yaml");
    let output = reprieve(&["plan", "-f", case.to_str().expect("a path"), "-o", "json"], "");
    let decision: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let own = decision["explanation"]["nodes"].as_array().into_iter().flatten().filter(|node| node["decisive"] == true);
    assert_eq!(own.count(), 1, "{decision}");
}

/// A pod of a DaemonSet takes whatever is on its node, whether a queue uses more than it is guaranteed or not. What is done already is no
/// action.
#[test]
fn actions_have_a_reason_and_omit_completed_ones() {
    let queue = |queue: &str, more: &str| format!("labels: {{queue: root.{queue}, applicationId: {queue}}}{more}");
    let daemon =
        ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]".to_owned();
    // Only a pod that names its node, as the DaemonSet's controller does, counts as one of a DaemonSet.
    let field = "matchFields: [{key: metadata.name, operator: In, values: [node-1]}]";
    let on_node = format!(
        "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{{field}}}]}}}}}},"
    );
    let cluster = [
        QUEUES.to_owned(),
        node("node-1", "cpu: 2, pods: 9"),
        node("node-2", "cpu: 9, pods: 9"),
        running("low", "node-1", 5, "cpu: 2", &queue("b", ""), ""),
        pending("daemon", 50, "cpu: 1", &queue("a", &daemon), &on_node),
    ];
    let decision = Decision::new(&cluster, "pod/daemon", &["--policy", "YuniKorn"]);
    let actions = decision.explanation()["actions"].to_string();
    assert!(actions.contains("a DaemonSet pod needs the node"), "{}", decision.table);
    assert!(!actions.contains("guarantee"), "{actions}");
}

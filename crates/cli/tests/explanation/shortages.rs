//! Lists of the resources that are short.

use super::*;

#[test]
fn yunikorn_lists_every_resource_with_too_little_guarantee_left() {
    let queues = QUEUES.replace("{vcore: 1}", "{vcore: 2, memory: 8Gi, nvidia.com/gpu: 2}");
    let queue = |queue: &str| format!("labels: {{queue: root.{queue}, applicationId: {queue}}}");
    let cluster = [
        queues.clone(),
        node("node-1", "cpu: 4, memory: 8Gi, nvidia.com/gpu: 4, pods: 9"),
        running("own", "node-1", 5, "cpu: 1, nvidia.com/gpu: 1", &queue("b"), ""),
        running("large", "node-1", 5, "cpu: 3, memory: 1Gi, nvidia.com/gpu: 3", &queue("a"), ""),
        pending("urgent", 5, "cpu: 4, memory: 1Gi, nvidia.com/gpu: 3", &queue("b"), ""),
    ];
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn", "--arg", "compatibility=1.8"]);
    let law = &decision.explanation()["law"];
    let text =
        "queue root.b has too little of its guarantee left: 1 cpu of 4 requested and 1 nvidia.com/gpu of 3 requested";
    assert_eq!((&law["name"], &law["text"]), (&"NotUnderGuarantee".into(), &text.into()), "{}", decision.table);
}

/// Only the queue's maximum is short: any node with room does, and the same pods must go.
#[test]
fn yunikorn_reports_that_only_quota_is_short() {
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
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn", "--arg", "compatibility=1.8"]);
    assert_eq!(decision.node("node-1")["text"], "equal cost, first by name", "{}", decision.table);
    assert!(decision.other("node-2").starts_with("equal cost, but node-1 is first by name; would evict 1 pod"));
    assert!(decision.other("node-4").ends_with("; node-1 has room, only quota is short"), "{}", decision.table);
    let why = decision.explanation()["victims"][0]["text"].as_str().unwrap_or_default();
    let over = "queue root.top would exceed its maximum by 2 cpu and 2Gi memory";
    assert!(why.ends_with(over), "{why}");
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
    let text = "the job would exceed the limit of quota q by 1 cpu and 2Gi memory";
    assert_eq!((&law["name"], &law["text"]), (&"QuotaLimit".into(), &text.into()), "{}", decision.table);

    let decision = Decision::new(&cluster(false), "pod/urgent", &["--policy", "Koordinator"]);
    let victim = decision.victim("default/low");
    let text = "default/urgent would not fit on node-1: queue q would exceed its maximum by 1 cpu and 2Gi memory";
    assert_eq!((&victim["filter"], &victim["text"]), (&"QueueLimit".into(), &text.into()));
    assert_eq!(victim.get("short"), None, "the node is short of nothing");
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
fn short_resources_are_listed_with_a_host_port_in_use() {
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
    let text = "a required host port is in use; short of 2 cpu and 2Gi memory, and no pod there may be evicted";
    assert_eq!(place["text"], text, "{}", decision.table);
    let place = decision.node("node-2");
    assert_eq!(place["short"], json!({ "memory": "1Gi" }), "with `low` gone there is enough cpu: {}", decision.table);
}

const BEYOND: &str = "(requests more than the whole node has)";

#[test]
fn every_short_resource_is_listed_with_and_without_candidates() {
    let gpu_node = |name: &str| node(name, "cpu: 8, memory: 8Gi, nvidia.com/gpu: 8, pods: 9");
    let cluster = [
        node("a-closed", "cpu: 8, memory: 8Gi, nvidia.com/gpu: 8, pods: 9"),
        node("b-cleared", "cpu: 8, memory: 8Gi, nvidia.com/gpu: 8, pods: 9"),
        node("c-small", "cpu: 8, memory: 2Gi, nvidia.com/gpu: 4, pods: 9"),
        gpu_node("d-chosen"),
        // No pod on a-closed may be evicted.
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
            "short of 4 cpu, 2Gi memory and 6 nvidia.com/gpu, and no pod there may be evicted".to_owned(),
        ),
        (
            "b-cleared",
            json!({ "cpu": "2", "nvidia.com/gpu": "2" }),
            "short of 2 cpu and 2 nvidia.com/gpu, even without all candidates".to_owned(),
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
fn infeasible_domain_lists_every_missing_resource_of_each_node() {
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
    assert_eq!(domain("c")["text"], "equal cost, first by name", "{}", decision.table);
    assert_eq!(domain("d")["result"], "EqualCost");
    assert_eq!(domain("d")["text"], "equal cost, but c is first by name; would evict 2 pods of priority up to 10");
    let lacks = format!("short of 1 cpu {BEYOND} and 4 nvidia.com/gpu {BEYOND}");
    assert_eq!(domain("a")["nodes"]["a-2"], lacks.as_str());
    assert_eq!(domain("a")["nodes"]["a-1"], "short of 4 cpu and 8 nvidia.com/gpu", "urgent-0 is placed there");
    let text = "0 of 2 required pods fit, and no pod there may be evicted; no node for default/urgent-0";
    assert_eq!(domain("b")["text"], text);
    for node in ["b-1", "b-2"] {
        assert_eq!(domain("b")["nodes"][node], "short of 2 cpu and 8 nvidia.com/gpu");
    }
}

//! The cost of the nodes and domains that are not chosen.

use super::*;

#[test]
fn yunikorn_reports_why_a_node_costs_more_or_the_same() {
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
    let decision = Decision::new(&cluster, "pod/urgent", &["--policy", "YuniKorn", "--arg", "podOptOut=true"]);
    assert_eq!(decision.node("node-4")["result"], "Chosen", "{}", decision.table);
    let takes = |n: &str| format!("would evict {n} of priority up to 5");
    let higher = "higher cost than node-4:";
    let one = takes("1 pod");
    assert_eq!(decision.other("node-1"), format!("{one}; {higher} a victim is the first pod of its application"));
    assert_eq!(decision.other("node-2"), format!("{one}; {higher} a victim has opted out of preemption"));
    assert_eq!(decision.other("node-3"), format!("{}; {higher} 2 pods instead of 1", takes("2 pods")));
    assert_eq!(decision.other("node-5"), format!("equal cost, but node-4 is first by name; {one}"));
    assert_eq!(decision.node("node-5")["result"], "EqualCost");
    assert_eq!(decision.node("node-3")["result"], "HigherCost");
}

#[test]
fn nodes_of_equal_cost_are_reported_as_such() {
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
    assert_eq!(decision.node("node-2")["text"], "equal cost, first by name");
    for equal in ["node-3", "node-4"] {
        let text = "equal cost, but node-2 is first by name; would evict 1 pod of priority up to 10";
        assert_eq!(decision.other(equal), text);
        assert_eq!(decision.node(equal)["result"], "EqualCost");
    }
    assert_eq!(decision.node("node-1")["result"], "HigherCost");
    let row: Vec<&str> = decision.line("node-3, node-4").split_whitespace().take(3).collect();
    assert_eq!(row, ["node-3,", "node-4", "EqualCost"]);
    let row: Vec<&str> = decision.line("node-1").split_whitespace().take(2).collect();
    assert_eq!(row, ["node-1", "HigherCost"]);
    let wide = text(&reprieve(&["plan", "-f", "-", "--for", "pod/urgent", "-o", "wide"], &cluster.join("\n---\n")));
    let rows = wide.lines().filter(|line| line.starts_with("node-") && line.contains("Equal"));
    assert_eq!(rows.count(), 2, "{wide}");
}

const FITS: &str = "the preemptor fits without evicting it";

#[test]
fn koordinator_reports_equal_cost_of_a_spared_pod_on_another_node() {
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
    assert_eq!(decision.spared("default/c"), format!("{FITS}; equal cost to default/b, node-2 is first by name"));
    assert_eq!(decision.spared("default/a"), FITS, "its priority is higher");
    assert_eq!(decision.spared("default/d"), FITS, "it asks for less, so nothing is claimed");
    let row = decision.line("default/a, default/c, default/d");
    assert!(row.ends_with("the preemptor fits without evicting them; equal cost for 1 of them"), "{row}");
}

#[test]
fn group_reports_equal_cost_of_a_spared_pod_on_another_node() {
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
    assert_eq!(decision.spared("default/c"), format!("{FITS}; equal cost to default/a, node-1 is first by name"));
    assert_eq!(decision.spared("default/d"), FITS, "its priority is higher");
    assert_eq!(decision.spared("default/e"), FITS, "its node is too small");
}

/// A group that is placed in one zone, with this number of pods of 2 cpus.
fn zonal_group(pods: usize) -> Vec<String> {
    let group = format!(
        "{{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {{namespace: default, name: urgent}}, \
         spec: {{schedulingPolicy: {{gang: {{minCount: {pods}}}}}, priority: 100, \
         schedulingConstraints: {{topology: [{{key: zone}}]}}}}}}"
    );
    let member =
        |index| pending(&format!("urgent-{index}"), 100, "cpu: 2", "", "schedulingGroup: {podGroupName: urgent},");
    [group].into_iter().chain((0..pods).map(member)).collect()
}

fn zonal_node(name: &str, zone: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{zone: {zone}}}}}, \
         status: {{allocatable: {{cpu: 2, pods: 9}}}}}}"
    )
}

#[test]
fn no_pod_in_an_infeasible_domain_is_of_equal_cost() {
    let cluster = [
        zonal_node("node-1", "z"),
        zonal_node("node-2", "z"),
        zonal_node("node-3", "z"),
        zonal_node("node-4", "small"),
        running("a", "node-1", 10, "cpu: 1", "", ""),
        running("b", "node-2", 10, "cpu: 1", "", ""),
        running("c", "node-3", 10, "cpu: 1", "", ""),
        running("d", "node-4", 10, "cpu: 1", "", ""),
    ];
    let decision = Decision::new(&[&cluster[..], &zonal_group(2)].concat(), "podgroup/urgent", &[]);
    let victims = json!([{ "pod": "default/a" }, { "pod": "default/b" }]);
    assert_eq!(decision.json["victims"], victims, "{}", decision.table);
    assert_eq!(decision.spared("default/c"), format!("{FITS}; equal cost to default/a, node-1 is first by name"));
    assert_eq!(decision.spared("default/d"), FITS, "zone small has no room for two members");
}

#[test]
fn the_name_decides_between_two_domains_of_equal_cost() {
    for (first, second) in [("node-1", "node-2"), ("node-2", "node-1")] {
        let cluster = [
            zonal_node(first, "north"),
            zonal_node(second, "south"),
            running("a", first, 10, "cpu: 1", "", ""),
            running("b", second, 10, "cpu: 1", "", ""),
        ];
        let decision = Decision::new(&[&cluster[..], &zonal_group(1)].concat(), "podgroup/urgent", &[]);
        assert_eq!(decision.json["victims"], json!([{ "pod": "default/a" }]), "{}", decision.table);
        let text = format!("{FITS}; equal cost to default/a, domain north is first by name");
        assert_eq!(decision.spared("default/b"), text, "{first}");
    }
}

#[test]
fn kueue_reports_equal_cost_of_a_spared_workload() {
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
    let not_reached = "the search ended before this unit";
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
            "1 violation of a PodDisruptionBudget instead of 0",
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
            "sum of priorities over 2 pods instead of 1",
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
            "earliest start of a victim of priority 10: 2026-01-01T00:00:00Z instead of 2026-01-01T00:30:00Z",
            "1 pod of priority up to 10",
            vec![victim("a", "node-1", 10, 4), late("b", "node-2")],
        ),
    ] {
        let nodes = [node("node-1", "cpu: 4, pods: 9"), node("node-2", "cpu: 4, pods: 9")];
        let cluster = [&nodes[..], &victims, &[pending("urgent", 100, "cpu: 4", "", "")]].concat();
        let decision = Decision::new(&cluster, "pod/urgent", &[]);
        assert_eq!(decision.other("node-1"), format!("would evict {takes}; higher cost than node-2: {why}"));
        assert_eq!(decision.node("node-2")["text"], "lowest cost");
    }
}

//! Cycles of policy Kueue over several ClusterQueues: the order of the heads, their admissions, and the heads that are skipped.

use std::fmt::Write as _;

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_engine::Timestamp;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{FairSharing, Kueue, PlacementMode, Strategy};
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::time::timestamp;
use reprieve_report::cycle::{CycleReport, HeadReport, cycle_report};

/// A cluster of one flavor and one resource, written a line at a time.
#[derive(Default)]
struct ClusterYaml(String);

impl ClusterYaml {
    fn new() -> Self {
        Self("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: default}\n".to_owned())
    }

    /// A queue of cohort `all`, with a LocalQueue of its own name.
    fn queue(mut self, name: &str, nominal: u32, spec: &str) -> Self {
        let quota = format!("{{name: default, resources: [{{name: cpu, nominalQuota: {nominal}}}]}}");
        let _ = write!(
            self.0,
            "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {name}}}\nspec:\n  cohortName: all\n  \
             resourceGroups: [{{coveredResources: [cpu], flavors: [{quota}]}}]\n{spec}\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: \
             LocalQueue\nmetadata: {{namespace: default, name: {name}}}\nspec: {{clusterQueue: {name}}}\n"
        );
        self
    }

    fn workload(mut self, name: &str, queue: &str, cpu: u32, priority: i32, rest: &str) -> Self {
        let _ = write!(
            self.0,
            "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {{namespace: default, name: {name}, \
             creationTimestamp: \"2026-01-01T00:00:00Z\"}}\nspec:\n  queueName: {queue}\n  priority: {priority}\n  podSets: [{{name: main, \
             count: {cpu}, template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}}}]\n{rest}\n"
        );
        self
    }

    fn running(self, name: &str, queue: &str, cpu: u32, priority: i32) -> Self {
        let held = format!("{{name: main, flavors: {{cpu: default}}, resourceUsage: {{cpu: {cpu}}}, count: {cpu}}}");
        let status = format!(
            "status:\n  admission: {{clusterQueue: {queue}, podSetAssignments: [{held}]}}\n  conditions: [{{type: QuotaReserved, \
             status: \"True\", lastTransitionTime: \"2026-01-01T00:00:00Z\", reason: r, message: \"\"}}]"
        );
        self.workload(name, queue, cpu, priority, &status)
    }

    fn pending(self, name: &str, queue: &str, cpu: u32, priority: i32) -> Self {
        self.workload(name, queue, cpu, priority, "")
    }

    fn node(mut self, name: &str, cpu: u32) -> Self {
        let offers = format!("status: {{allocatable: {{cpu: {cpu}, pods: 10}}}}");
        let _ = write!(self.0, "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n{offers}\n");
        self
    }

    fn cycle(&self) -> CycleReport {
        self.cycle_under(Kueue::default())
    }

    fn cycle_under(&self, policy: Kueue) -> CycleReport {
        let mut objects = ObjectSet::default();
        for document in documents("synthetic", &self.0) {
            document.read(&mut objects).expect("valid document");
        }
        let loaded = load_for(&objects, OnInvalid::Reject, &Policy::Kueue(policy)).expect("valid objects");
        cycle_report(&loaded, &policy, now())
    }

    /// `WORKLOAD RESULT [REASON]`, in the order of the decisions.
    fn heads(&self) -> Vec<String> {
        self.heads_under(Kueue::default())
    }

    fn heads_under(&self, policy: Kueue) -> Vec<String> {
        let line = |head: &HeadReport| {
            let name = head.workload.trim_start_matches("default/");
            let reason = head.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
            format!("{name} {:?}{reason}", head.result)
        };
        self.cycle_under(policy).heads.iter().map(line).collect()
    }
}

fn now() -> Timestamp {
    timestamp("2026-01-01T01:00:00Z".parse().expect("valid time"))
}

const STRICT: &str = "  queueingStrategy: StrictFIFO";
const RECLAIMS: &str = "  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}";

#[test]
fn heads_are_ordered_by_borrowing_level_then_priority_then_age() {
    let cluster = ClusterYaml::new().queue("a", 4, "").queue("b", 4, "").queue("c", 4, "").queue("d", 0, "");
    let cluster = cluster.pending("borrows", "d", 1, 100).pending("low", "a", 1, 1).pending("high", "b", 1, 10);
    let cluster = cluster.pending("old", "c", 1, 1);
    let old = "name: old, creationTimestamp: \"2026";
    let cluster = ClusterYaml(cluster.0.replace(old, &old.replace("2026", "2025")));
    assert_eq!(cluster.heads(), ["high Schedule", "old Schedule", "low Schedule", "borrows Skipped BorrowingBlocked"]);
}

#[test]
fn heads_may_borrow_when_no_head_needs_its_own_quota() {
    let cluster = ClusterYaml::new().queue("a", 4, "").queue("b", 0, "").queue("c", 0, "");
    let cluster = cluster.pending("first", "b", 3, 2).pending("second", "c", 1, 1);
    assert_eq!(cluster.heads(), ["first Schedule", "second Schedule"]);
}

#[test]
fn quota_is_not_assigned_twice() {
    let cluster = ClusterYaml::new().queue("a", 4, "").queue("b", 0, "").queue("c", 0, "");
    let cluster = cluster.pending("first", "b", 3, 2).pending("second", "c", 2, 1);
    assert_eq!(cluster.heads(), ["first Schedule", "second Skipped QuotaTaken"]);
}

#[test]
fn preemptor_that_does_not_borrow_blocks_borrowing_heads() {
    let cluster = ClusterYaml::new().queue("a", 4, RECLAIMS).queue("b", 2, "").queue("c", 0, "");
    let cluster = cluster.running("loan", "b", 4, 0).pending("owner", "a", 3, 0).pending("borrower", "c", 1, 100);
    let report = cluster.cycle();
    assert_eq!(cluster.heads(), ["owner Preempt", "borrower Skipped BorrowingBlocked"]);
    assert_eq!(report.heads[0].victims[0].workload.as_deref(), Some("default/loan"));
}

#[test]
fn workload_is_not_a_victim_of_two_heads() {
    let cluster = ClusterYaml::new().queue("a", 2, RECLAIMS).queue("b", 2, RECLAIMS).queue("c", 0, "");
    let cluster = cluster.running("loan", "c", 4, 0).pending("first", "a", 2, 2).pending("second", "b", 2, 1);
    assert_eq!(cluster.heads(), ["first Preempt", "second Skipped VictimTaken"]);
}

#[test]
fn only_a_strict_queue_blocks_behind_its_head() {
    let waits_behind = |strategy: &str| {
        let cluster = ClusterYaml::new().queue("a", 4, strategy).running("runs", "a", 2, 0);
        cluster.pending("large", "a", 4, 10).pending("small", "a", 1, 5).heads()
    };
    assert_eq!(waits_behind(STRICT), ["large Unschedulable"]);
    assert_eq!(waits_behind(""), ["small Schedule", "large Unschedulable"]);
}

#[test]
fn waiting_head_of_a_strict_queue_reserves_its_quota() {
    let borrower_gets = |strategy: &str| {
        let cluster = ClusterYaml::new().queue("a", 4, strategy).queue("b", 0, "").running("runs", "a", 2, 0);
        cluster.pending("large", "a", 4, 10).pending("borrower", "b", 1, 5).heads()
    };
    assert!(borrower_gets(STRICT).contains(&"borrower Skipped QuotaTaken".to_owned()), "{:?}", borrower_gets(STRICT));
    assert!(borrower_gets("").contains(&"borrower Schedule".to_owned()));
}

/// Queues `a` and `c` lend their quota to `b`, which cannot be made to return it; 2 cpus are left.
fn lent(strategy: &str) -> ClusterYaml {
    let cluster = ClusterYaml::new().queue("a", 4, strategy).queue("b", 0, "").queue("c", 4, "").queue("d", 0, "");
    cluster.running("loan", "b", 6, 0)
}

/// docs/rules/kueue.md#ka1
#[test]
fn waiting_head_within_nominal_quota_stops_borrowing_under_both_strategies() {
    for strategy in [STRICT, ""] {
        let cluster = lent(strategy).pending("owner", "a", 4, 0).pending("borrower", "d", 1, 100);
        let heads = ["owner Unschedulable", "borrower Skipped BorrowingBlocked"];
        assert_eq!(cluster.heads(), heads, "{strategy}");
        assert_eq!(cluster.heads_under(fair())[1..], heads[1..], "{strategy}");
    }
}

/// docs/rules/kueue.md#ka1
#[test]
fn waiting_head_within_nominal_quota_keeps_what_is_left_of_it() {
    for strategy in [STRICT, ""] {
        let cluster = lent(strategy).pending("owner", "a", 4, 9).pending("lender", "c", 2, 0);
        let heads = ["owner Unschedulable", "lender Skipped QuotaTaken"];
        assert_eq!(cluster.heads(), heads, "{strategy}");
        let before = lent(strategy).pending("owner", "a", 4, 0).pending("lender", "c", 2, 9);
        assert_eq!(before.heads(), ["lender Schedule", "owner Unschedulable"], "{strategy}");
    }
}

/// docs/rules/kueue.md#ka1
#[test]
fn quota_that_a_waiting_head_keeps_is_free_for_its_own_best_effort_queue() {
    let cluster = lent("").pending("owner", "a", 4, 9).pending("small", "a", 1, 5);
    assert_eq!(cluster.heads(), ["owner Unschedulable", "small Schedule"]);
    let cluster = cluster.pending("lender", "c", 1, 0);
    let heads = ["owner Unschedulable", "small Schedule", "lender Skipped QuotaTaken"];
    assert_eq!(cluster.heads(), heads, "the rest is kept");
    let mut under_fair_sharing = cluster.heads_under(fair());
    under_fair_sharing.sort_unstable();
    assert_eq!(under_fair_sharing.len(), 3, "{under_fair_sharing:?}");
    assert_eq!(under_fair_sharing[2], "small Schedule");
}

/// docs/rules/kueue.md#ka1
#[test]
fn a_head_that_its_queue_can_never_hold_keeps_nothing() {
    let strict = lent(STRICT).pending("huge", "a", 20, 9).pending("owner", "a", 4, 5).pending("borrower", "d", 1, 0);
    assert_eq!(strict.heads(), ["borrower Schedule", "huge Unschedulable"]);
    let cluster = lent("").pending("huge", "a", 20, 9).pending("borrower", "d", 1, 0);
    assert_eq!(cluster.heads(), ["borrower Schedule", "huge Unschedulable"]);
    let heads = ["owner Unschedulable", "borrower Skipped BorrowingBlocked", "huge Unschedulable"];
    assert_eq!(cluster.pending("owner", "a", 4, 5).heads(), heads);
}

/// docs/rules/kueue.md#ka1: quota would not help it.
#[test]
fn a_best_effort_head_that_lacks_only_nodes_keeps_nothing() {
    let cluster = ClusterYaml::new().queue("a", 4, "").queue("b", 0, "").node("only", 2);
    let cluster = cluster.pending("large", "a", 3, 9).pending("borrower", "b", 1, 0);
    let joint = Kueue { placement: PlacementMode::Joint, ..Kueue::default() };
    assert_eq!(cluster.heads_under(joint), ["large Unschedulable", "borrower Schedule"]);
}

#[test]
fn admission_has_flavor_amount_and_count_of_each_pod_set() {
    let cluster = ClusterYaml::new().queue("a", 4, "").running("runs", "a", 1, 0);
    let partial = ClusterYaml(
        cluster.0.clone()
            + &ClusterYaml::default().pending("elastic", "a", 6, 0).0.replace("count: 6,", "count: 6, minCount: 1,"),
    );
    let report = partial.cycle();
    let admission = report.heads[0].admission.as_ref().expect("admission");
    assert_eq!(admission.cluster_queue, "a");
    let [set] = admission.pod_set_assignments.as_slice() else { panic!("one pod set") };
    assert_eq!((set.name.as_str(), set.count), ("main", Some(3)));
    assert_eq!((set.flavors["cpu"].as_str(), set.resource_usage["cpu"].as_str()), ("default", Some("3")));
}

#[test]
fn finished_and_inactive_workloads_neither_hold_nor_request_quota() {
    let cluster = ClusterYaml::new().queue("a", 4, "").pending("waits", "a", 4, 0).pending("held", "a", 1, 9);
    let held = ClusterYaml(
        cluster
            .0
            .replace("name: held, ", "name: held, labels: {}, ")
            .replace("priority: 9\n", "priority: 9\n  active: false\n"),
    );
    let done = held.running("done", "a", 4, 0);
    let done = ClusterYaml(done.0.replace(
        "[{type: QuotaReserved",
        "[{type: Finished, status: \"True\", lastTransitionTime: \
         \"2026-01-01T00:00:00Z\", reason: r, message: \"\"}, {type: QuotaReserved",
    ));
    assert_eq!(done.heads(), ["waits Schedule"]);
}

#[test]
fn preemptor_waits_for_the_preemption_delay_of_its_queue() {
    let heads = |refused_at: &str| {
        let rules = "  preemption: {withinClusterQueue: LowerPriority, triggerAfterWorkloadWaitingSeconds: 600}";
        let refused = format!(
            "status: {{conditions: [{{type: QuotaReserved, status: \"False\", lastTransitionTime: \"{refused_at}\", reason: Pending, \
             message: \"\"}}]}}"
        );
        let cluster = ClusterYaml::new().queue("a", 4, rules).running("low", "a", 4, 0);
        cluster.workload("urgent", "a", 2, 10, &refused).heads()
    };
    assert_eq!(heads("2026-01-01T00:50:01Z"), ["urgent Wait PreemptionDelay"]);
    assert_eq!(heads("2026-01-01T00:50:00Z"), ["urgent Preempt"]);
}

#[test]
fn nodes_are_not_assigned_twice_under_joint_placement() {
    let cluster = ClusterYaml::new().queue("a", 4, "").queue("b", 4, "").node("only", 4);
    let cluster = cluster.pending("first", "a", 3, 2).pending("second", "b", 2, 1);
    let joint = Kueue { placement: PlacementMode::Joint, ..Kueue::default() };
    assert_eq!(cluster.heads(), ["first Schedule", "second Schedule"]);
    assert_eq!(cluster.heads_under(joint), ["first Schedule", "second Skipped QuotaTaken"]);
    let more = cluster.node("other", 2);
    assert_eq!(more.heads_under(joint), ["first Schedule", "second Schedule"]);
}

fn fair() -> Kueue {
    let strategies = FairSharing { first: Strategy::LessThanOrEqualToFinalShare, second: None };
    Kueue { fair_sharing: Some(strategies), ..Kueue::default() }
}

#[test]
fn under_fair_sharing_the_head_with_the_least_share_comes_first() {
    let cluster = ClusterYaml::new().queue("a", 8, "").queue("b", 0, "").queue("c", 0, "").running("has", "b", 3, 0);
    let cluster = cluster.pending("more", "b", 1, 100).pending("first", "c", 1, 1);
    assert_eq!(cluster.heads(), ["more Schedule", "first Schedule"]);
    assert_eq!(cluster.heads_under(fair()), ["first Schedule", "more Schedule"]);
}

#[test]
fn under_fair_sharing_each_choice_counts_the_usage_of_the_previous_ones() {
    let cluster = ClusterYaml::new().queue("a", 8, "").queue("b1", 0, "").queue("b2", 0, "").queue("c", 0, "");
    let cluster = cluster.pending("high", "b1", 1, 9).pending("mid", "b2", 1, 8).pending("low", "c", 1, 7);
    assert_eq!(cluster.heads_under(fair()), ["high Schedule", "mid Schedule", "low Schedule"]);
    let in_cohort = |name: &str| format!("metadata: {{name: {name}}}\nspec:\n  cohortName: ");
    let left = |text: String, name: &str| text.replace(&(in_cohort(name) + "all"), &(in_cohort(name) + "left"));
    let cohort =
        "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: left}\nspec: {parentName: all}\n";
    let tree = ClusterYaml(left(left(cluster.0, "b1"), "b2") + cohort);
    assert_eq!(tree.heads_under(fair()), ["high Schedule", "low Schedule", "mid Schedule"]);
}

#[test]
fn workload_that_waits_for_terminating_pods_reserves_quota_and_nodes() {
    let cluster = ClusterYaml::new().queue("a", 4, "").queue("b", 4, "").node("only", 8);
    let cluster = cluster.pending("waits", "a", 4, 2).pending("behind", "a", 1, 1).pending("other", "b", 3, 1);
    let terminating = "---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: default, name: terminating, deletionTimestamp: \"2026-01-01T01:00:30Z\"}\n\
                   spec: {nodeName: only, containers: [{name: c, resources: {requests: {cpu: 5}}}]}\nstatus: {phase: Running}\n";
    let joint = Kueue { placement: PlacementMode::Joint, ..Kueue::default() };
    let cluster = ClusterYaml(cluster.0 + terminating);
    assert_eq!(cluster.heads_under(joint), ["waits Wait PreemptionInProgress", "other Skipped QuotaTaken"]);
}

#[test]
fn workload_of_an_unselected_namespace_does_not_block_a_strict_queue() {
    let selects = format!("{STRICT}\n  namespaceSelector: {{matchLabels: {{team: a}}}}");
    let cluster = ClusterYaml::new().queue("a", 4, &selects).pending("stranger", "a", 4, 100);
    assert_eq!(cluster.heads(), ["stranger Unschedulable NamespaceNotSelected"]);
    let cluster = cluster.pending("own", "a", 4, 0);
    let own = cluster.0.replace("namespace: default, name: own", "namespace: own, name: own");
    let queue = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {namespace: own, name: a}\nspec: {clusterQueue: a}\n";
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: own, labels: {team: a}}\n";
    let cluster = ClusterYaml(format!("{own}{queue}{namespace}"));
    assert_eq!(cluster.heads(), ["own/own Schedule", "stranger Unschedulable NamespaceNotSelected"]);
}

//! Preemption under policy YuniKorn does not loop. A victim is recreated as a pending pod, as a ReplicaSet does, and every pending pod is decided
//! again, round after round, until nothing changes. Three known cases end, and so does every random tree.

mod replay;

use replay::Replay;
use reprieve_testkit::random_queues::cluster;

/// Two sibling queues with guarantees on one full node; pods of queue `prod` are pending.
fn replica_sets(prod_guarantee: usize, test_guarantee: usize, prod_pending: usize, test_running: usize) -> String {
    let mut documents = vec![
        "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionTest\nmetadata: {name: replica-sets}\nspec:\n  now: \
         \"2026-01-01T01:00:00Z\"\n  profile: {policy: YuniKorn}\n  preemptor: {kind: Pod, namespace: default, name: prod-0}\n"
            .to_owned(),
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: yunikorn-configs, namespace: yunikorn}}\ndata:\n  queues.yaml: \
             |\n    partitions:\n    - name: default\n      queues:\n      - name: root\n        queues:\n        - name: parent\n          \
             queues:\n          - {{name: prod, resources: {{guaranteed: {{vcore: \"{prod_guarantee}\"}}}}}}\n          - {{name: \
             test, resources: {{guaranteed: {{vcore: \"{test_guarantee}\"}}}}}}\n"
        ),
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: node-1}}\nstatus: {{allocatable: {{cpu: \"{test_running}\", pods: \
             \"110\"}}}}\n"
        ),
    ];
    let pod = |set: &str, index: usize, place: &str, phase: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {set}-{index}, namespace: default, creationTimestamp: \
             \"2026-01-01T00:{:02}:00Z\", labels: {{queue: root.parent.{set}, applicationId: {set}}}}}\nspec: \
             {{{place}containers: [{{name: main, resources: {{requests: {{cpu: \"1\"}}}}}}]}}\nstatus: {{phase: {phase}}}\n",
            10 + index
        )
    };
    documents.extend((0..test_running).map(|index| pod("test", index, "nodeName: node-1, ", "Running")));
    documents.extend((0..prod_pending).map(|index| pod("prod", index, "", "Pending")));
    documents.join("---\n")
}

#[test]
fn case_1_prod_reaches_its_guarantee_with_one_preemption() {
    let mut replay = Replay::new(&replica_sets(1, 2, 3, 4));
    assert!(replay.reaches_a_fixed_point());
    assert_eq!(replay.running(), ["prod-0", "test-0", "test-1", "test-2"]);
    assert_eq!(replay.preemptions, 1);
}

#[test]
fn case_2_test_keeps_its_guarantee() {
    let mut replay = Replay::new(&replica_sets(1, 4, 3, 4));
    assert!(replay.reaches_a_fixed_point());
    assert_eq!(replay.running(), ["test-0", "test-1", "test-2", "test-3"]);
    assert_eq!(replay.preemptions, 0);
}

#[test]
fn case_3_prod_preempts_until_it_has_its_guarantee() {
    let mut replay = Replay::new(&replica_sets(3, 1, 5, 6));
    assert!(replay.reaches_a_fixed_point());
    assert_eq!(replay.running(), ["prod-0", "prod-1", "prod-2", "test-0", "test-1", "test-2"]);
    assert_eq!(replay.preemptions, 3);
}

/// Every second tree has further pending pods. A seed that loops becomes a case; the first ten thousand do not.
#[test]
fn random_trees_reach_a_fixed_point() {
    let mut with_preemptions = 0;
    for seed in 0..300 {
        let text = cluster(seed);
        let mut replay = Replay::new(&text);
        if seed % 2 == 1 {
            replay.add_pending_copies();
        }
        assert!(replay.reaches_a_fixed_point(), "seed {seed} loops:\n{text}");
        with_preemptions += usize::from(replay.preemptions > 0);
    }
    assert!(with_preemptions > 30, "only {with_preemptions} trees have preemptions");
}

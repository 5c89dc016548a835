//! Preemption under policy YuniKorn does not loop. A victim is recreated as a pending pod, as a ReplicaSet does, and every pending pod is decided
//! again, round after round, until nothing changes. Three known cases end, and so does every random tree.

mod replay;

use replay::Replay;
use reprieve_testkit::random_queues::cluster;

/// The arguments that decide as the design, and as the code of YuniKorn.
const SETTINGS: [&str; 2] = ["", "compatibility: \"1.8\""];

/// Two sibling queues with guarantees on one full node; pods of queue `prod` are pending.
fn replica_sets(
    arguments: &str,
    [prod_guarantee, test_guarantee]: [&str; 2],
    prod_pending: usize,
    test_running: usize,
) -> String {
    let mut documents = vec![
        format!(
            "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionTest\nmetadata: {{name: replica-sets}}\nspec:\n  now: \
             \"2026-01-01T01:00:00Z\"\n  profile: {{policy: YuniKorn, args: {{{arguments}}}}}\n  preemptor: {{kind: Pod, namespace: \
             default, name: prod-0}}\n"
        ),
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

/// Replays until nothing changes; returns the running pods and the number of preemptions.
fn end_of(arguments: &str, guarantees: [&str; 2], prod_pending: usize, test_running: usize) -> (Vec<String>, usize) {
    let mut replay = Replay::new(&replica_sets(arguments, guarantees, prod_pending, test_running));
    assert!(replay.reaches_a_fixed_point());
    (replay.running(), replay.preemptions)
}

#[test]
fn case_1_prod_reaches_its_guarantee_with_one_preemption() {
    for arguments in SETTINGS {
        let (running, preemptions) = end_of(arguments, ["1", "2"], 3, 4);
        assert_eq!((running.join(" ").as_str(), preemptions), ("prod-0 test-0 test-1 test-2", 1), "{arguments}");
    }
}

/// Both queues end up above their guarantees, and neither takes anything back.
#[test]
fn case_1_the_last_request_may_exceed_the_guarantee() {
    let (running, preemptions) = end_of(SETTINGS[0], ["1500m", "1500m"], 4, 4);
    assert_eq!((running.join(" ").as_str(), preemptions), ("prod-0 prod-1 test-0 test-1", 2));
    let (running, preemptions) = end_of(SETTINGS[1], ["1500m", "1500m"], 4, 4);
    assert_eq!((running.join(" ").as_str(), preemptions), ("prod-0 test-0 test-1 test-2", 1));
}

#[test]
fn case_2_test_keeps_its_guarantee() {
    for arguments in SETTINGS {
        for guarantee in ["4", "3500m"] {
            let (running, preemptions) = end_of(arguments, ["1", guarantee], 3, 4);
            assert_eq!((running.join(" ").as_str(), preemptions), ("test-0 test-1 test-2 test-3", 0), "{arguments}");
        }
    }
}

#[test]
fn case_3_prod_preempts_until_it_has_its_guarantee() {
    for arguments in SETTINGS {
        let (running, preemptions) = end_of(arguments, ["3", "1"], 5, 6);
        assert_eq!(running, ["prod-0", "prod-1", "prod-2", "test-0", "test-1", "test-2"], "{arguments}");
        assert_eq!(preemptions, 3, "{arguments}");
    }
}

/// Every second tree has further pending pods, and about a third of the trees follow the code of YuniKorn. A seed that loops becomes a case; the first ten thousand do not.
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

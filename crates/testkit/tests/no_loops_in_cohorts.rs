//! Preemption under policy Kueue does not loop. In each cycle the head of every queue is decided: admitted workloads hold quota, preempted
//! workloads become pending again, and preemptors are admitted in a later cycle, until no cycle changes anything. Four known loops of Kueue end,
//! and so do random cohorts.

mod cohort_replay;

use cohort_replay::Replay;
use reprieve_testkit::random_cohorts::{Kind, cluster};

fn known(name: &str) -> Replay {
    let file = format!("{}/../../conformance/kueue-cohort/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    Replay::new(&std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}")))
}

/// kueue#3779: a queue with the larger share preempted one with the smaller share, which was then admitted first, in a loop.
#[test]
fn larger_share_does_not_preempt_a_smaller_one() {
    let mut replay = known("own-loop-larger-share-takes-nothing");
    assert!(replay.reaches_a_fixed_point());
    assert_eq!(replay.preemptions, 0);
    assert_eq!(replay.admitted(), ["a1", "best-effort"]);
}

/// kueue#2821: an older workload of lower priority was admitted again before the preemptor that had evicted it.
#[test]
fn victim_of_a_borrower_is_not_admitted_before_it() {
    let mut replay = known("own-loop-borrower-before-the-older-it-preempted");
    assert!(replay.reaches_a_fixed_point());
    assert_eq!(replay.preemptions, 1);
    assert_eq!(replay.admitted(), ["b1", "in"]);
}

/// kueue#6947: behind a workload that can never be admitted, another reclaimed its quota and lost it again, in a loop.
#[test]
fn head_that_can_never_be_admitted_blocks_no_other_queue() {
    let mut replay = known("own-loop-hopeless-head-holds-up-nobody");
    assert!(replay.reaches_a_fixed_point());
    assert_eq!(replay.preemptions, 1);
    assert_eq!(replay.admitted(), ["in"]);
}

/// kueue#14543: victims in the preemptor's own queue made victims in other queues lawful, and were then given back.
#[test]
fn reprieve_in_the_own_queue_makes_no_other_victim_unlawful() {
    let mut replay = known("own-loop-given-back-at-home");
    assert!(replay.reaches_a_fixed_point());
}

/// One cluster loops: with fair sharing, a queue reclaims quota of one resource while it borrows another, so its share is the larger one and
/// its victim is admitted before it.
const LOOPING: [&str; 1] = ["fair 200017"];

/// Every second cluster has further pending workloads. A seed that loops becomes a case.
#[test]
fn random_cohorts_reach_a_fixed_point() {
    let (mut with_preemptions, mut looping) = (0, Vec::new());
    for seed in 200_000..200_200 {
        for kind in Kind::ALL {
            let mut replay = Replay::new(&cluster(kind, seed));
            if seed % 2 == 1 {
                replay.add_pending_copies();
            }
            if !replay.reaches_a_fixed_point() {
                looping.push(format!("{} {seed}", kind.name()));
            }
            with_preemptions += usize::from(replay.preemptions > 0);
        }
    }
    assert_eq!(looping, LOOPING, "clusters that loop");
    assert!(with_preemptions > 60, "only {with_preemptions} clusters have preemptions");
}

//! Wrong answers, each derived from the right one of a conformance case, and the finding that the checker must report.

use reprieve_api::test_file::OutcomeName::{Preempt, Schedule, Unschedulable, Wait};
use reprieve_checker::Finding;

use crate::case::Case;

/// The case's answer, made wrong, draws the finding.
fn assert_finds(name: &str, make_wrong: impl FnOnce(&mut Case), expected: impl Fn(&Finding) -> bool) {
    let mut case = Case::named(name);
    assert_eq!(case.findings(), [], "{name}: the right answer is accepted");
    make_wrong(&mut case);
    let findings = case.findings();
    assert!(findings.iter().any(expected), "{name}: {findings:?}");
}

#[test]
fn missing_victim_is_rejected() {
    assert_finds(
        "kubernetes-pod/nominated-room-counts-during-reprieve",
        |case| case.drop_victim("default/victim-4"),
        |finding| matches!(finding, Finding::DoesNotFit { node, .. } if node == "node"),
    );
    assert_finds(
        "kubernetes-group/gang-takes-two-nodes-of-three",
        |case| case.drop_victim("default/pod3"),
        |finding| matches!(finding, Finding::DoesNotFit { node, .. } if node == "node3"),
    );
    assert_finds(
        "kubernetes-pod/resize-preempts-on-its-own-node",
        |case| case.drop_victim("default/victim-1"),
        |finding| matches!(finding, Finding::DoesNotFit { node, .. } if node == "preempt-node"),
    );
}

#[test]
fn victim_that_is_not_needed_is_rejected() {
    assert_finds(
        "kubernetes-pod/lowest-of-three-is-enough",
        |case| case.add_victim("default/mid-prio"),
        |finding| matches!(finding, Finding::SpareVictim { pods } if pods == &["default/mid-prio"]),
    );
    assert_finds(
        "kubernetes-pod/lowest-of-three-is-enough",
        |case| case.add_victim("default/mid-prio"),
        |finding| matches!(finding, Finding::WrongVictims { expected, .. } if expected == &["default/low-prio"]),
    );
    assert_finds(
        "kubernetes-group/two-oldest-of-four-are-reprieved",
        |case| case.add_victim("default/p1"),
        |finding| matches!(finding, Finding::SpareVictim { pods } if pods == &["default/p1"]),
    );
    assert_finds(
        "kubernetes-group/two-oldest-of-four-are-reprieved",
        |case| {
            case.drop_victim("default/p4");
            case.add_victim("default/p1");
        },
        |finding| matches!(finding, Finding::WrongVictimsOfPlacement { expected } if expected == &["default/p3", "default/p4"]),
    );
}

#[test]
fn other_victim_of_the_same_size_is_rejected() {
    assert_finds(
        "kubernetes-pod/lowest-of-three-is-enough",
        |case| {
            case.drop_victim("default/low-prio");
            case.add_victim("default/mid-prio");
        },
        |finding| matches!(finding, Finding::WrongVictims { expected, .. } if expected == &["default/low-prio"]),
    );
}

#[test]
fn part_of_a_gang_as_victim_is_rejected() {
    assert_finds(
        "kubernetes-group/gang-goes-whole-across-nodes",
        |case| {
            case.nominate("default/p", "node1");
            case.drop_victim("default/p2");
        },
        |finding| matches!(finding, Finding::TakenInPart { taken, left } if taken == "default/p1" && left == "default/p2"),
    );
}

#[test]
fn the_wrong_node() {
    assert_finds(
        "kubernetes-pod/score-lowest-top-victim",
        |case| {
            case.answer.victims.clear();
            case.add_victim("default/p2.1");
            case.add_victim("default/p2.2");
            case.nominate("default/p", "node2");
        },
        |finding| matches!(finding, Finding::WrongNode { best, .. } if best == "node3"),
    );
    assert_finds(
        "kubernetes-pod/nominated-node-is-free-now",
        |case| case.nominate("default/preemptor-pod", "node-2"),
        |finding| matches!(finding, Finding::NominatedNodeSkipped { node } if node == "node-1"),
    );
    assert_finds(
        "kubernetes-group/single-mode-member-on-other-node-stays",
        |case| case.add_victim("default/pg-single-multi-node2"),
        |finding| matches!(finding, Finding::VictimElsewhere { node, .. } if node == "node1"),
    );
}

#[test]
fn a_victim_that_is_spared_by_a_law() {
    assert_finds(
        "kubernetes-group/equal-priority-is-safe-from-a-group",
        |case| {
            case.claim(Preempt);
            case.add_victim("default/p1");
            case.nominate("default/p", "node1");
        },
        |finding| matches!(finding, Finding::VictimNotLower { priority: 100, preemptor: 100, .. }),
    );
    assert_finds(
        "toleration/high-takes-low-and-leaves-the-exempt-pod",
        |case| {
            case.drop_victim("default/plain");
            case.add_victim("default/exempt");
        },
        |finding| matches!(finding, Finding::VictimTolerates { pod } if pod == "default/exempt"),
    );
    assert_finds(
        "toleration/missing-class-object-rules-its-node-out",
        |case| {
            case.claim(Preempt);
            case.add_victim("default/orphan");
            case.nominate("default/preemptor", "node-1");
        },
        |finding| matches!(finding, Finding::UnknownClassOnNode { node, .. } if node == "node-1"),
    );
    assert_finds(
        "kubernetes-pod/fits-now-without-a-victim",
        |case| {
            case.claim(Preempt);
            case.add_victim("default/p");
            case.nominate("default/p", "node1");
        },
        |finding| matches!(finding, Finding::VictimNotBound { pod } if pod == "default/p"),
    );
}

#[test]
fn a_preemptor_that_may_not_preempt() {
    assert_finds(
        "kubernetes-group/group-that-never-preempts",
        |case| {
            case.claim(Preempt);
            for at in 1..=3 {
                case.add_victim(&format!("default/low-{at}"));
                case.nominate(&format!("default/high-{at}"), "node1");
            }
        },
        |finding| matches!(finding, Finding::MayNotPreempt { .. }),
    );
}

#[test]
fn the_wrong_outcome() {
    let fits_now = "kubernetes-pod/fits-now-without-a-victim";
    for outcome in [Unschedulable, Wait] {
        assert_finds(fits_now, |case| case.claim(outcome), |finding| matches!(finding, Finding::FitsNow { .. }));
    }
    assert_finds(fits_now, |case| case.claim(Wait), |finding| *finding == Finding::NothingInProgress);
    let waits = "kubernetes-pod/wait-while-victim-terminates-on-nominated-node";
    assert_finds(
        waits,
        |case| case.claim(Unschedulable),
        |finding| matches!(finding, Finding::StillTerminating { .. }),
    );
    assert_finds(
        waits,
        |case| {
            case.claim(Preempt);
            case.add_victim("default/p1");
            case.nominate("default/p", "node1");
        },
        |finding| matches!(finding, Finding::StillTerminating { .. }),
    );
    assert_finds(waits, |case| case.claim(Wait), |finding| matches!(finding, Finding::Nominations { .. }));
    assert_finds(
        "kubernetes-pod/lowest-of-three-is-enough",
        |case| case.claim(Unschedulable),
        |finding| matches!(finding, Finding::LawfulPlan { victims, .. } if victims == &["default/low-prio"]),
    );
    assert_finds(
        "kubernetes-group/gang-takes-two-nodes-of-three",
        |case| case.claim(Unschedulable),
        |finding| matches!(finding, Finding::LawfulPlanForGroup { members: 2 }),
    );
    assert_finds(
        "kubernetes-group/gang-takes-two-nodes-of-three",
        |case| case.answer.outcome = Schedule,
        |finding| matches!(finding, Finding::NeedlessVictims { .. }),
    );
}

#[test]
fn a_group_that_is_placed_wrongly() {
    assert_finds(
        "kubernetes-group/gang-takes-two-nodes-of-three",
        |case| {
            case.answer.nominated.remove("default/preemptor-2");
        },
        |finding| matches!(finding, Finding::TooFewPlaced { running: 0, placed: 1, min_count: 2 }),
    );
    assert_finds(
        "kubernetes-group/zone-constraint-clears-one-zone-never-halves",
        |case| {
            case.claim(Preempt);
            case.add_victim("default/low-1");
            case.add_victim("default/low-3");
            case.nominate("default/high-1", "node1");
            case.nominate("default/high-2", "node3");
        },
        |finding| matches!(finding, Finding::OutsideDomain { .. }),
    );
    assert_finds(
        "kubernetes-group/own-two-low-victims-before-one-higher",
        |case| {
            case.claim(Preempt);
            case.add_victim("default/mid");
            case.nominate("default/urgent-1", "node1");
            case.nominate("default/urgent-2", "node1");
        },
        |finding| matches!(finding, Finding::AboveTheCut { pod, priority: 50 } if pod == "default/mid"),
    );
    assert_finds(
        "kubernetes-group/basic-group-binds-what-fits-before-it-preempts",
        |case| {
            let first = case.answer.nominated.keys().next().cloned().unwrap_or_default();
            case.answer.nominated.remove(&first);
        },
        |finding| matches!(finding, Finding::MemberLeftOut { .. } | Finding::TooFewPlaced { placed: 0, .. }),
    );
}

#[test]
fn unknown_victim_is_rejected() {
    assert_finds(
        "kubernetes-pod/lowest-of-three-is-enough",
        |case| case.add_victim("default/ghost"),
        |finding| matches!(finding, Finding::Unknown { name } if name == "default/ghost"),
    );
    assert_finds(
        "kubernetes-pod/lowest-of-three-is-enough",
        |case| case.nominate("default/mid-prio", "node1"),
        |finding| matches!(finding, Finding::NotOfThePreemptor { pod } if pod == "default/mid-prio"),
    );
    assert_finds(
        "kubernetes-pod/resize-preempts-on-its-own-node",
        |case| case.nominate("default/preemptor-pod", "preempt-node"),
        |finding| matches!(finding, Finding::Nominations { expected } if expected.is_empty()),
    );
}

//! The invariants detect every deliberate bug within 200 seeds.

use reprieve_scheduler::Bug;
use reprieve_simulator::campaign::setup;
use reprieve_simulator::faults::{Fault, Faults};
use reprieve_simulator::invariants::check;
use reprieve_simulator::shrink::shrink;

#[test]
fn every_bug_is_detected() {
    for (bug, policy) in [
        (Bug::SecondRound, "Kubernetes"),
        (Bug::HalfAGang, "Kubernetes"),
        (Bug::ForgottenNomination, "Kubernetes"),
        (Bug::TrustedTimeout, "Kubernetes"),
        (Bug::IgnoredFence, "YuniKorn"),
        (Bug::EarlyQuota, "Kueue"),
        (Bug::BrokenObjectStopsRebuild, "Kubernetes"),
        (Bug::ForgottenRelabelledPod, "YuniKorn"),
    ] {
        let caught = (0..200).find_map(|seed| {
            let mut setup = setup(seed, policy, Faults::SOME);
            setup.bug = Some(bug);
            check(setup).err().map(|violation| (seed, violation))
        });
        let (seed, violation) = caught.unwrap_or_else(|| panic!("{bug:?} was not detected in 200 seeds"));
        println!("{bug:?}: seed {seed}: {violation:?}");
    }
}

#[test]
fn a_violation_is_shrunk() {
    let mut large = setup(1, "Kubernetes", Faults::SOME);
    large.bug = Some(Bug::HalfAGang);
    let n = large.submissions.len();
    let violation = check(large.clone()).expect_err("seed 1 shows this bug");
    let small = shrink(large, (0..n).collect(), violation.clone(), 200);
    assert_eq!(small.violation.invariant, violation.invariant);
    assert_eq!(small.kept.len(), small.setup.submissions.len());
    assert!(
        small.kept.len() <= 4 && small.setup.faults == Faults::default(),
        "{:?} {:?}",
        small.kept,
        small.setup.faults
    );
}

#[test]
fn shrinking_keeps_only_the_necessary_faults() {
    let (large, violation) = (0..200)
        .find_map(|seed| {
            let mut setup = setup(seed, "Kubernetes", Faults::SOME);
            setup.bug = Some(Bug::TrustedTimeout);
            check(setup.clone()).err().map(|violation| (setup, violation))
        })
        .expect("a violation");
    let n = large.submissions.len();
    let small = shrink(large, (0..n).collect(), violation, 300);
    let mut faults = small.setup.faults;
    let left: Vec<Fault> = Fault::ALL.iter().copied().filter(|kind| *faults.rate(*kind) > 0).collect();
    assert!(left.len() <= 2 && small.kept.len() < n, "{left:?} {:?}", small.kept);
}

//! The checks bite: a scheduler with a bug that was put in on purpose is caught within 200 seeds.

use reprieve_scheduler::Bug;
use reprieve_simulator::campaign::setup;
use reprieve_simulator::faults::Faults;
use reprieve_simulator::invariants::check;

#[test]
fn every_bug_is_caught() {
    for (bug, policy) in [
        (Bug::SecondRound, "Kubernetes"),
        (Bug::HalfAGang, "Kubernetes"),
        (Bug::ForgottenNomination, "Kubernetes"),
        (Bug::TrustedTimeout, "Kubernetes"),
        (Bug::IgnoredFence, "YuniKorn"),
    ] {
        let caught = (0..200).find_map(|seed| {
            let mut setup = setup(seed, policy, Faults::SOME);
            setup.bug = Some(bug);
            check(setup).err().map(|violation| (seed, violation))
        });
        let (seed, violation) = caught.unwrap_or_else(|| panic!("{bug:?} went unnoticed in 200 seeds"));
        println!("{bug:?}: seed {seed}: {violation}");
    }
}

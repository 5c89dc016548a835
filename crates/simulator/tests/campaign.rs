//! A short campaign: random clusters under every policy, with and without faults, violate no invariant.

use reprieve_simulator::campaign::{POLICIES, setup};
use reprieve_simulator::faults::Faults;
use reprieve_simulator::invariants::check;

fn campaign(seeds: std::ops::Range<u64>, faults: Faults) {
    let mut preemptions = 0;
    for policy in POLICIES {
        for seed in seeds.clone() {
            let run = check(setup(seed, policy, faults))
                .unwrap_or_else(|violation| panic!("policy {policy}, seed {seed}: {violation:?}"));
            preemptions += run.preemptions.len();
        }
    }
    assert!(preemptions > 10, "only {preemptions}");
}

#[test]
fn no_invariant_is_violated_without_faults() {
    campaign(0..10, Faults::default());
}

#[test]
fn no_invariant_is_violated_with_faults() {
    campaign(0..10, Faults::SOME);
}

//! One seed, one run, to the byte, on every machine: what a day leaves behind is compared with a second run and with a digest that is
//! kept here. A change of the scheduler or of the scenario changes it; look at the run before you write the new one down.

use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_simulator::faults::Faults;
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::summary::summary;
use reprieve_simulator::virtual_cluster::VirtualCluster;

const DAY: &str = include_str!("../../cli/demo/day.yaml");

/// All that a run leaves behind, but how long decisions took.
fn bytes(policy: Policy, seed: u64) -> String {
    let mut blueprint = Scenario::read("day", DAY).unwrap().blueprint(seed);
    blueprint.end = blueprint.start.plus_micros(7 * 3_600_000_000);
    blueprint.faults = Faults::SOME;
    let mut world = VirtualCluster::new(blueprint.setup(policy).unwrap(), Box::new(|| 0));
    while world.advance(|_, _| ()) {}
    let run = world.finish();
    let summary = summary("p", &run, &blueprint.queues);
    serde_json::to_string(&(&run.jobs, &run.evictions, &run.samples, &run.counts, &summary)).unwrap()
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn one_seed_one_run() {
    let policies =
        [Policy::Kubernetes(Kubernetes::default()), Policy::YuniKorn, Policy::Koordinator(Koordinator::default())];
    let first: Vec<String> = policies.iter().map(|&policy| bytes(policy, 7)).collect();
    for (policy, first) in policies.iter().zip(&first) {
        assert_eq!(*first, bytes(*policy, 7), "{policy:?}");
    }
    assert_ne!(first[0], bytes(policies[0], 8), "another seed, another run");
    let digests: Vec<String> = first.iter().map(|text| format!("{:016x}", digest(text))).collect();
    assert_eq!(digests, ["2527f3b34bbf2f60", "2e037428ff599083", "9dfd6bd21ef552c8"]);
}

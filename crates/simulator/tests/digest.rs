//! The same seed gives the same run, to the byte, on every machine: the results of a day are compared with a second run and with a digest. A
//! change of the scheduler or of the scenario changes the digest; examine the run before you update it.

use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_simulator::faults::Faults;
use reprieve_simulator::scenario::Scenario;
use reprieve_simulator::summary::summary;
use reprieve_simulator::virtual_cluster::VirtualCluster;

const DAY: &str = include_str!("../../cli/demo/day.yaml");

/// The results of a run, except for the duration of decisions.
fn results(policy: Policy, seed: u64) -> String {
    let mut input = Scenario::read("day", DAY).unwrap().input(seed);
    input.end = input.start.plus_micros(7 * 3_600_000_000);
    // The faults that every day has; tenants have tests of their own.
    input.faults = Faults { hostile_objects: 0, relabelled_pods: 0, ..Faults::SOME };
    let mut cluster = VirtualCluster::new(input.setup(policy).unwrap(), Box::new(|| 0));
    while cluster.advance(|_, _| ()) {}
    let run = cluster.finish();
    let summary = summary("p", &run, &input.queues);
    serde_json::to_string(&(&run.jobs, &run.evictions, &run.samples, &run.counts, &summary)).unwrap()
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let policies = [
        Policy::Kubernetes(Kubernetes::default()),
        Policy::YuniKorn(YuniKorn::default()),
        Policy::Koordinator(Koordinator::default()),
    ];
    let first: Vec<String> = policies.iter().map(|&policy| results(policy, 7)).collect();
    for (policy, first) in policies.iter().zip(&first) {
        assert_eq!(*first, results(*policy, 7), "{policy:?}");
    }
    assert_ne!(first[0], results(policies[0], 8), "another seed gives another run");
    let digests: Vec<String> = first.iter().map(|text| format!("{:016x}", digest(text))).collect();
    assert_eq!(digests, ["ff266bda4105f69d", "ac50c9a3346d937e", "ab3d4f57cc2f6953"]);
}

//! A hostile tenant changes nothing for the others: their jobs run at the same times, and the same pods are evicted for the same preemptors.

use reprieve_simulator::campaign::{POLICIES, setup};
use reprieve_simulator::faults::Faults;
use reprieve_simulator::hostile::Hostile;
use reprieve_simulator::invariants::check;
use reprieve_simulator::run::Run;
use reprieve_simulator::virtual_cluster::RunConfig;

/// Only hostile objects, ten times as many as in a campaign.
const HOSTILE: Faults = Faults { hostile_objects: 10 * Faults::SOME.hostile_objects, ..NONE };
const NONE: Faults = Faults {
    lost_events: 0,
    repeated_events: 0,
    delayed_events: 0,
    conflicts: 0,
    failures: 0,
    lost_answers: 0,
    lost_requests: 0,
    slow_victims: 0,
    lost_nodes: 0,
    restarts: 0,
    hostile_objects: 0,
    relabelled_pods: 0,
};

/// The results of a run for the honest tenants.
fn results(config: RunConfig) -> String {
    let Run { jobs, evictions, preemptions, .. } = check(config).unwrap_or_else(|violation| panic!("{violation:?}"));
    serde_json::to_string_pretty(&(jobs, evictions, preemptions.len())).expect("a run is JSON")
}

#[test]
fn hostile_tenant_changes_nothing_for_others() {
    for policy in POLICIES {
        for seed in 0..2 {
            let mut alone = setup(seed, policy, NONE);
            // The node of the tenant is there in both runs.
            alone.objects.push(Hostile::node());
            let found = results(setup(seed, policy, HOSTILE));
            assert!(results(alone) == found, "{policy}, seed {seed}");
        }
    }
}

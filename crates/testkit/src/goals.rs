//! The benchmarks, their goals on one core, and the times of kube-scheduler 1.37.1 and Kueue 0.19.0 for the same decisions.

use std::time::Duration;

use crate::scale::{self, Cohorts, Scenario};

/// A benchmark of one decision: the snapshot exists, all nodes are considered, and no explanation is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark {
    /// The name on the command line.
    pub name: &'static str,
    /// The goal for the median, if there is one.
    pub goal: Option<Duration>,
    /// The time of kube-scheduler or Kueue, if it is known.
    pub peer: Option<Peer>,
    /// The cluster and the question.
    pub build: fn() -> Scenario,
}

/// The time of kube-scheduler or Kueue.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The median from the start of the attempt to the decision.
    pub median: Duration,
    /// How its work differs, if it does.
    pub note: &'static str,
}

/// The decisions with a goal, then variants without one.
pub const DECISIONS: &[Benchmark] = &[
    Benchmark {
        name: "pod-1000x10",
        goal: micros(50),
        peer: peer(2_400, "samples 100 nodes; 26 ms with all"),
        build: || scale::pod(1000, 10),
    },
    Benchmark {
        name: "pod-5000x20",
        goal: micros(500),
        peer: peer(27_000, "at 5000x10, samples 500 nodes"),
        build: || scale::pod(5000, 20),
    },
    Benchmark {
        name: "gang-10-on-1000x10",
        goal: micros(2_000),
        peer: peer(440_000, ""),
        build: || scale::gang(1000, 10),
    },
    Benchmark {
        name: "gang-100-on-1000x10",
        goal: micros(10_000),
        peer: peer(3_800_000, ""),
        build: || scale::gang(1000, 100),
    },
    Benchmark {
        name: "gang-100-clears-1000-pods",
        goal: micros(2_000),
        peer: peer(209_000, ""),
        build: || scale::gang_clears_pods(100),
    },
    Benchmark {
        name: "gang-100-clears-5-gangs",
        goal: micros(2_000),
        peer: peer(144_000, ""),
        build: || scale::gang_clears_gangs(100),
    },
    Benchmark {
        name: "gang-100-with-affinity",
        goal: micros(5_000),
        peer: peer(357_000, ""),
        build: || scale::gang_with_affinity(100),
    },
    Benchmark {
        name: "gang-100-against-1000-gangs",
        goal: micros(10_000),
        peer: None,
        build: || scale::gang_against_gangs(1000),
    },
    Benchmark {
        name: "pod-among-1000-queues-5000x20",
        goal: micros(5_000),
        peer: None,
        build: || scale::pod_among_queues(4, 5000, 20),
    },
    Benchmark {
        name: "pod-refused-by-1000-queues-5000x20",
        goal: micros(100),
        peer: None,
        build: || scale::pod_refused_by_queue(4, 5000, 20),
    },
    Benchmark {
        name: "job-100-among-1000-quotas-5000x20",
        goal: micros(20_000),
        peer: None,
        build: || scale::job_among_quotas(1000, 5000, 100),
    },
    Benchmark {
        name: "workload-reclaims-1000-queues-10000",
        goal: micros(1_000),
        peer: peer(37_000, "Kueue"),
        build: || scale::workload_reclaims(Cohorts::Flat, 1000, 10_000),
    },
    Benchmark {
        name: "workload-reclaims-1000-queues-50000",
        goal: micros(4_000),
        peer: None,
        build: || scale::workload_reclaims(Cohorts::Flat, 1000, 50_000),
    },
    Benchmark {
        name: "workload-shares-1000-queues-10000",
        goal: micros(1_500),
        peer: peer(53_500, "Kueue"),
        build: || scale::workload_shares(1000, 10_000),
    },
    variant("job-100-below-a-full-quota-5000x20", || scale::job_below_a_full_quota(1000, 5000, 100)),
    variant("pod-among-1000-queues-without-victims", || scale::pod_among_queues_without_victims(4, 5000, 20)),
    variant("gang-100-against-1000-scattered-gangs", || scale::gang_against_scattered_gangs(1000)),
    variant("gang-100-on-1000x10-priorities", || scale::gang_among_priorities(1000, 100)),
    variant("gang-100-in-one-of-20-zones", || scale::gang_in_a_zone(1000, 100)),
    variant("pod-1000x10-budgets", || scale::pod_among_budgets(1000)),
    variant("pod-1000x10-priorities", || scale::pod_among_priorities(1000)),
    variant("pod-1000x10-tolerations", || scale::pod_among_tolerations(1000)),
    variant("pod-against-1000-gangs", || scale::pod_against_gangs(1000)),
];

/// The decision for one pod, each time with twice the nodes.
pub const GROWTH: &[Benchmark] = &[
    variant("growth-1000x10", || scale::pod(1000, 10)),
    variant("growth-2000x10", || scale::pod(2000, 10)),
    variant("growth-4000x10", || scale::pod(4000, 10)),
    variant("growth-8000x10", || scale::pod(8000, 10)),
];

/// Pairs of a decision in one cohort and the same decision in a tree of cohorts.
pub const TREES: &[[Benchmark; 2]] = &[
    [
        variant("workload-reclaims-flat", || scale::workload_reclaims(Cohorts::Flat, 1000, 10_000)),
        variant("workload-reclaims-tree", || scale::workload_reclaims(Cohorts::Tree, 1000, 10_000)),
    ],
    [
        variant("workload-reclaims-by-share-flat", || scale::workload_reclaims_by_share(Cohorts::Flat, 1000, 10_000)),
        variant("workload-reclaims-by-share-tree", || scale::workload_reclaims_by_share(Cohorts::Tree, 1000, 10_000)),
    ],
];

/// The maximum ratio of the time in a tree of four levels to the time in one cohort.
pub const TREE_GOAL: f64 = 2.0;

/// A whole cycle with a head in each of 1,000 queues.
pub const CYCLES: &[Benchmark] = &[
    Benchmark {
        name: "cycle-1000-heads-reclaim",
        goal: micros(200_000),
        peer: None,
        build: || scale::heads_that_reclaim(1000, false),
    },
    Benchmark {
        name: "cycle-1000-heads-reclaim-by-share",
        goal: micros(200_000),
        peer: None,
        build: || scale::heads_that_reclaim(1000, true),
    },
];

/// The maximum ratio of times when the cluster doubles: 2, plus the effect of smaller cache hit rates.
pub const GROWTH_GOAL: f64 = 2.2;

/// The decisions whose explanation is timed as well.
pub const EXPLAINED: &[&str] = &["pod-1000x10", "pod-5000x20", "gang-100-on-1000x10"];

/// The goal for loading YAML into a snapshot, for 5,000 nodes and 100,000 pods.
pub const LOAD_YAML_GOAL: Duration = Duration::from_secs(10);
/// The goal for loading the same objects from JSON.
pub const LOAD_JSON_GOAL: Duration = Duration::from_secs(3);

/// The goal for the snapshot's bytes per pod, for 100,000 pods.
pub const BYTES_PER_POD_GOAL: usize = 1024;

/// The benchmark of this name.
pub fn benchmark(name: &str) -> Option<&'static Benchmark> {
    DECISIONS.iter().chain(GROWTH).chain(TREES.as_flattened()).find(|benchmark| benchmark.name == name)
}

const fn micros(micros: u64) -> Option<Duration> {
    Some(Duration::from_micros(micros))
}

const fn peer(micros: u64, note: &'static str) -> Option<Peer> {
    Some(Peer { median: Duration::from_micros(micros), note })
}

const fn variant(name: &'static str, build: fn() -> Scenario) -> Benchmark {
    Benchmark { name, goal: None, peer: None, build }
}

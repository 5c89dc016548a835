//! Any text as the queues of policy YuniKorn: nothing panics.

#![no_main]

#[path = "../../crates/testkit/tests/isolation/answers.rs"]
mod answers;
#[path = "../../crates/testkit/tests/isolation/operations.rs"]
#[allow(dead_code)]
mod operations;
#[path = "../../crates/testkit/tests/isolation/test_clusters.rs"]
#[allow(dead_code)]
mod test_clusters;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use reprieve_engine::policy::Policy;
use test_clusters::TestCluster;

static CLUSTER: LazyLock<Option<TestCluster>> =
    LazyLock::new(|| test_clusters::cases().into_iter().find(|cluster| cluster.policy == Policy::YuniKorn));

fuzz_target!(|text: &str| {
    if let Some(cluster) = &*CLUSTER {
        operations::queues(cluster, text);
    }
});

//! Bytes choose events for a scheduler, and the results of its actions: nothing panics.

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
use test_clusters::TestCluster;

static CLUSTERS: LazyLock<Vec<TestCluster>> = LazyLock::new(test_clusters::cases);

fuzz_target!(|bytes: &[u8]| operations::scheduler(&CLUSTERS, bytes));

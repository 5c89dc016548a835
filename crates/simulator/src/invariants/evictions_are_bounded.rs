//! Without faults, the number of evictions is bounded.

use super::{CheckResult, ensure};
use crate::virtual_cluster::VirtualCluster;

/// A pod may be evicted by several preemptors, and again after it was recreated, but not without end.
const MAX_EVICTIONS_PER_POD: usize = 8;

pub(super) fn check(cluster: &VirtualCluster) -> CheckResult {
    let pods: usize = cluster.setup.submissions.iter().map(|submission| submission.pods).sum();
    let evictions = cluster.statistics.run.evictions.len();
    let is_bounded = !cluster.setup.faults.is_none() || evictions <= MAX_EVICTIONS_PER_POD * pods;
    ensure(is_bounded, || format!("{evictions} evictions of {pods} pods"))
}

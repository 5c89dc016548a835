//! A run without injected faults has at most `MAX_MEAN_EVICTIONS_PER_POD` evictions per submitted pod on average. The number is not checked
//! in a run with faults.

use super::{CheckResult, ensure};
use crate::virtual_cluster::VirtualCluster;

/// An evicted pod is recreated and can be evicted again. Units that preempt each other endlessly exceed the bound.
const MAX_MEAN_EVICTIONS_PER_POD: usize = 8;

pub(super) fn check(cluster: &VirtualCluster) -> CheckResult {
    let pods: usize = cluster.setup.submissions.iter().map(|submission| submission.pods).sum();
    let evictions = cluster.statistics.run.evictions.len();
    let holds = !cluster.setup.faults.is_none() || evictions <= MAX_MEAN_EVICTIONS_PER_POD * pods;
    ensure(holds, || format!("{evictions} evictions of {pods} pods, more than {MAX_MEAN_EVICTIONS_PER_POD} per pod"))
}

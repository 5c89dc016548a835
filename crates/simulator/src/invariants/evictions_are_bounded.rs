//! A run without injected faults has at most `MAX_MEAN_EVICTIONS_PER_POD` evictions per submitted pod on average. The number is not checked
//! in a run with faults.

use super::{CheckResult, ensure};
use crate::virtual_cluster::VirtualCluster;

/// An evicted pod is recreated and can be evicted again by a later unit, so a mean above 1 is no error. The bound is a choice, not derived:
/// units that preempt each other in a loop exceed any small number, and correct runs stay far below it.
const MAX_MEAN_EVICTIONS_PER_POD: usize = 8;

pub(super) fn check(cluster: &VirtualCluster) -> CheckResult {
    let pods: usize = cluster.setup.submissions.iter().map(|submission| submission.pods).sum();
    let evictions = cluster.statistics.run.evictions.len();
    let holds = !cluster.setup.faults.is_none() || evictions <= MAX_MEAN_EVICTIONS_PER_POD * pods;
    ensure(holds, || format!("{evictions} evictions of {pods} pods, more than {MAX_MEAN_EVICTIONS_PER_POD} per pod"))
}

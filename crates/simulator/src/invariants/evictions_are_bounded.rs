//! Evictions are bounded: where nothing goes wrong there is no storm.

use super::Held;
use crate::virtual_cluster::VirtualCluster;

/// A job may be evicted by each that is above it, and again when it has come back; not for ever.
const PER_JOB: usize = 8;

pub(super) fn check(world: &VirtualCluster) -> Held {
    let pods: usize = world.setup.submissions.iter().map(|submission| submission.pods).sum();
    let evictions = world.statistics.run.evictions.len();
    match world.setup.faults.is_none() && evictions > PER_JOB * pods {
        true => Err(format!("{evictions} evictions among {pods} pods")),
        false => Ok(()),
    }
}

//! When the scheduler is idle, no pending unit fits: a new scheduler finds nothing to bind, except for units that wait for an older unit.

use reprieve_api::Kind;
use reprieve_scheduler::{Scheduler, StepOutcome, UnitRef, WaitReason};

use super::CheckResult;
use crate::virtual_cluster::{SCHEDULER, VirtualCluster};

pub(super) fn check(cluster: &VirtualCluster) -> CheckResult {
    if !cluster.process.is_at_rest() {
        return Ok(());
    }
    let mut fresh = Scheduler::new(SCHEDULER, cluster.setup.policy);
    for &kind in Kind::ALL {
        fresh.observe(cluster.api.list(kind), cluster.now());
    }
    let mut now = cluster.now();
    for _ in 0..10_000 {
        match fresh.step(now) {
            Some(step) => {
                if let (Some(unit), StepOutcome::Bind { placement }) = (&step.unit, &step.outcome) {
                    let reason =
                        cluster.scheduler().waiting().find(|(other, _)| *other == unit).map(|(_, reason)| reason);
                    let is_workload = matches!(unit, UnitRef::Workload(_));
                    if is_workload || reason != Some(WaitReason::WaitingForOlderUnit) {
                        return Err(format!("{unit} fits as {placement:?} and is pending: {reason:?}"));
                    }
                }
            }
            // A new scheduler lists some kinds again after a second.
            None if now == cluster.now() => now = now.plus_seconds(2),
            None => return Ok(()),
        }
    }
    Err("a new scheduler does not become idle".to_owned())
}

//! At rest, nothing that fits is pending: a scheduler that is started anew finds nothing to bind.

use reprieve_api::kinds::Kind;
use reprieve_scheduler::{Scheduler, StepOutcome, UnitRef, WaitReason};

use super::Held;
use crate::virtual_cluster::{SCHEDULER, VirtualCluster};

pub(super) fn check(world: &VirtualCluster) -> Held {
    if !world.process.is_at_rest() {
        return Ok(());
    }
    let mut fresh = Scheduler::new(SCHEDULER, world.setup.policy);
    for &kind in Kind::ALL {
        fresh.observe(world.api.list(kind), world.now());
    }
    let mut now = world.now();
    for _ in 0..10_000 {
        match fresh.step(now) {
            Some(step) => {
                if let (Some(unit), StepOutcome::Bind { placement }) = (&step.unit, &step.outcome) {
                    let reason =
                        world.scheduler().waiting().find(|(other, _)| *other == unit).map(|(_, reason)| reason);
                    let is_workload = matches!(unit, UnitRef::Workload(_));
                    if is_workload || reason != Some(WaitReason::WaitingForOlderUnit) {
                        return Err(format!("{unit} fits as {placement:?} and is pending: {reason:?}"));
                    }
                }
            }
            None if now == world.now() => now = now.plus_seconds(2),
            None => return Ok(()),
        }
    }
    Err("a fresh scheduler finds no end".to_owned())
}

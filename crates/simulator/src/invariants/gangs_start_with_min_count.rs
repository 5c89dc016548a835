//! No gang is started below its minimum.

use reprieve_engine::policy::Policy;
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::Held;
use super::victims_have_a_standing_plan::bound_members;
use crate::run::Gang;
use crate::virtual_cluster::VirtualCluster;

pub(super) fn check(world: &VirtualCluster, step: &Step) -> Held {
    let (Some(unit), StepOutcome::Bind { .. }) = (&step.unit, &step.outcome) else { return Ok(()) };
    let (UnitRef::Group(name) | UnitRef::Job(name)) = unit else { return Ok(()) };
    if matches!(world.setup.policy, Policy::YuniKorn) {
        return Ok(());
    }
    for (_, Gang { min, .. }) in world.gangs().filter(|(job, _)| job.submission.name == *name) {
        let has = bound_members(world, unit);
        if has < min {
            return Err(format!("gang {name} needs {min} pods, and {has} have a place"));
        }
    }
    Ok(())
}

//! No gang is started below its minimum.

use reprieve_engine::policy::Policy;
use reprieve_scheduler::{Step, UnitName, Verdict};

use super::Held;
use super::standing::bound_members;
use crate::run::Gang;
use crate::world::World;

pub(super) fn check(world: &World, step: &Step) -> Held {
    let (Some(unit), Verdict::Schedule { .. }) = (&step.unit, &step.verdict) else { return Ok(()) };
    let (UnitName::Group(name) | UnitName::Job(name)) = unit else { return Ok(()) };
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

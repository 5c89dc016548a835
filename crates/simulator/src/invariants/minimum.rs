//! No gang is started below its minimum.

use reprieve_engine::policy::Policy;
use reprieve_scheduler::{Step, UnitName, Verdict};

use super::Invariant;
use crate::world::World;

pub(super) struct Minimum;

impl Invariant for Minimum {
    fn name(&self) -> &'static str {
        "minimum"
    }

    fn at_step(&mut self, world: &World, step: &Step) -> Result<(), String> {
        let (Some(UnitName::Group(name) | UnitName::Job(name)), Verdict::Schedule { .. }) = (&step.unit, &step.verdict)
        else {
            return Ok(());
        };
        if matches!(world.setup().policy, Policy::YuniKorn) {
            return Ok(());
        }
        for (job, min) in world.gangs().filter(|(job, _)| job.submission.name == *name) {
            let bound = |pod: &&reprieve_objects::objects::FullName| {
                let pod = world.scheduler.live().pod(pod);
                pod.is_some_and(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()))
            };
            let has = job.parts[0].pods.keys().filter(bound).count();
            if has < min {
                return Err(format!("gang {name} needs {min} pods, and {has} have a place"));
            }
        }
        Ok(())
    }
}

//! Nobody is evicted twice by a scheduler that knows that it has done so.

use std::collections::BTreeSet;

use reprieve_scheduler::Step;
use reprieve_scheduler::action::Action;

use super::Invariant;
use crate::world::World;

#[derive(Default)]
pub(super) struct EvictedOnce {
    /// By uid, those whose eviction a scheduler asked for: in which of its lives.
    asked: BTreeSet<(u64, String)>,
}

impl Invariant for EvictedOnce {
    fn name(&self) -> &'static str {
        "evicted once"
    }

    fn at_step(&mut self, world: &World, step: &Step) -> Result<(), String> {
        for (_, action) in &step.actions {
            let (victim, uid) = match action {
                Action::Evict { pod } | Action::SoftEvict { pod, .. } => (pod, pod.uid.clone()),
                Action::EvictWorkload { workload, .. } => (workload, world.turn_of(&workload.uid)),
                _ => continue,
            };
            let again = !self.asked.insert((world.life(), uid.clone()));
            if again && world.knows_evicted(&uid) {
                return Err(format!("{} is evicted a second time", victim.name));
            }
        }
        Ok(())
    }
}

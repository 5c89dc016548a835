//! Nobody is evicted twice by a scheduler that knows that it has done so.

use std::collections::BTreeSet;

use reprieve_scheduler::Step;
use reprieve_scheduler::action::Action;

use super::Held;
use crate::virtual_cluster::VirtualCluster;

#[derive(Default)]
pub(super) struct NoDoubleEviction {
    /// By uid, those whose eviction a scheduler asked for: in which of its lives.
    asked: BTreeSet<(u64, String)>,
}

impl NoDoubleEviction {
    pub fn check(&mut self, world: &VirtualCluster, step: &Step) -> Held {
        for (_, action) in &step.actions {
            let (victim, uid) = match action {
                Action::Evict { pod } | Action::SoftEvict { pod, .. } => (pod, pod.uid.clone()),
                Action::EvictWorkload { workload, .. } => (workload, world.process.turn_of(&workload.uid)),
                _ => continue,
            };
            let again = !self.asked.insert((world.process.life, uid.clone()));
            if again && world.process.knows_evicted(&uid) {
                return Err(format!("{} is evicted a second time", victim.name));
            }
        }
        Ok(())
    }
}

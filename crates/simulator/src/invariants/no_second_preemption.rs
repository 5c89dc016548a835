//! There is no second preemption for a unit while the first is under way and its placement stands.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::action::{Action, PREEMPTED_FOR};
use reprieve_scheduler::{Step, StepOutcome, UnitRef};

use super::Held;
use super::victims_have_a_standing_plan::fits;
use crate::usage::is_soft_evicted;
use crate::virtual_cluster::VirtualCluster;

#[derive(Default)]
pub(super) struct NoSecondPreemption {
    rounds: BTreeMap<UnitRef, Round>,
}

struct Round {
    placement: Vec<(NamespacedName, String)>,
    /// With their uids.
    victims: Vec<(NamespacedName, String)>,
}

impl NoSecondPreemption {
    pub fn check(&mut self, world: &VirtualCluster, step: &Step) -> Held {
        let (Some(unit), StepOutcome::Evict { placement, victims }) = (&step.unit, &step.outcome) else {
            return Ok(());
        };
        let uid = |pod: &NamespacedName| {
            let pod = world.scheduler().live().pod(pod);
            pod.and_then(|pod| pod.metadata.uid.clone()).unwrap_or_default()
        };
        let with_uids = victims.iter().map(|pod| (pod.clone(), uid(pod))).collect();
        let round = Round { placement: placement.clone(), victims: with_uids };
        let Some(before) = self.rounds.insert(unit.clone(), round) else {
            return Ok(());
        };
        let round = &self.rounds[unit];
        let more = round.victims.iter().any(|victim| !before.victims.contains(victim));
        // Whoever is asked to leave only now had not left, and may have been asked by another in between.
        let asked_now: BTreeSet<&NamespacedName> =
            step.actions.iter().filter_map(|(_, action)| evicted(action)).collect();
        let for_it = |pod: &NamespacedName| {
            let annotations = world.api.pod(pod).and_then(|pod| pod.metadata.annotations.as_ref());
            annotations.and_then(|all| all.get(PREEMPTED_FOR)).is_some_and(|preemptor| *preemptor == unit.to_string())
        };
        let still_there = before
            .victims
            .iter()
            .any(|(pod, was)| uid(pod) == *was && is_leaving(world, pod) && for_it(pod) && !asked_now.contains(pod));
        let names: Vec<NamespacedName> = before.victims.iter().map(|(pod, _)| pod.clone()).collect();
        let same_pods = before.placement.iter().all(|(pod, _)| placement.iter().any(|(other, _)| other == pod));
        if more && still_there && same_pods && fits(world, &before.placement, &names) {
            return Err(format!("{unit} takes {victims:?} while {names:?} are still leaving for it"));
        }
        Ok(())
    }
}

/// The pod that an action evicts.
pub(super) fn evicted(action: &Action) -> Option<&NamespacedName> {
    match action {
        Action::Evict { pod } | Action::SoftEvict { pod, .. } => Some(&pod.name),
        _ => None,
    }
}

fn is_leaving(world: &VirtualCluster, pod: &NamespacedName) -> bool {
    let pod = world.scheduler().live().pod(pod);
    pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some() || is_soft_evicted(pod))
}

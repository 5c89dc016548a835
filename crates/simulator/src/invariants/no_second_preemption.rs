//! The scheduler takes no new victims for a unit while earlier victims terminate and the earlier placement still fits.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_api::NamespacedName;
use reprieve_scheduler::action::PREEMPTED_FOR;
use reprieve_scheduler::{Action, Step, StepOutcome, UnitRef};

use super::CheckResult;
use super::victims_have_a_valid_plan::fits;
use crate::usage::is_soft_evicted;
use crate::virtual_cluster::VirtualCluster;

#[derive(Default)]
pub(super) struct NoSecondPreemption {
    last: BTreeMap<UnitRef, Round>,
}

struct Round {
    placement: Vec<(NamespacedName, String)>,
    /// Each victim with its uid.
    victims: Vec<(NamespacedName, String)>,
}

impl NoSecondPreemption {
    pub fn check(&mut self, cluster: &VirtualCluster, step: &Step) -> CheckResult {
        let (Some(unit), StepOutcome::Evict { placement, victims }) = (&step.unit, &step.outcome) else {
            return Ok(());
        };
        let uid = |pod: &NamespacedName| {
            let pod = cluster.scheduler().live().pod(pod);
            pod.and_then(|pod| pod.metadata.uid.clone()).unwrap_or_default()
        };
        let with_uids = victims.iter().map(|pod| (pod.clone(), uid(pod))).collect();
        let round = Round { placement: placement.clone(), victims: with_uids };
        let Some(before) = self.last.insert(unit.clone(), round) else {
            return Ok(());
        };
        let round = &self.last[unit];
        let has_new = round.victims.iter().any(|victim| !before.victims.contains(victim));
        // A victim that is evicted only now was not terminating, and may have been marked for another unit in between.
        let evicted_now: BTreeSet<&NamespacedName> =
            step.actions.iter().filter_map(|(_, action)| evicted(action)).collect();
        let is_marked_for_unit = |pod: &NamespacedName| {
            let annotations = cluster.api.pod(pod).and_then(|pod| pod.metadata.annotations.as_ref());
            annotations.and_then(|all| all.get(PREEMPTED_FOR)).is_some_and(|preemptor| *preemptor == unit.to_string())
        };
        let is_in_progress = before.victims.iter().any(|(pod, was)| {
            uid(pod) == *was && is_terminating(cluster, pod) && is_marked_for_unit(pod) && !evicted_now.contains(pod)
        });
        let names: Vec<NamespacedName> = before.victims.iter().map(|(pod, _)| pod.clone()).collect();
        let same_pods = before.placement.iter().all(|(pod, _)| placement.iter().any(|(other, _)| other == pod));
        if has_new && is_in_progress && same_pods && fits(cluster, &before.placement, &names) {
            return Err(format!("{unit} preempts {victims:?} while {names:?} are still terminating for it"));
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

/// Whether a pod terminates, or another operator was asked to delete it.
pub(super) fn is_terminating(cluster: &VirtualCluster, pod: &NamespacedName) -> bool {
    let pod = cluster.scheduler().live().pod(pod);
    pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some() || is_soft_evicted(pod))
}

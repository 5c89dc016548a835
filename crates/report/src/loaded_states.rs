//! The state of the pods as the input of `plan` shows it; the scheduler has its own in `Preemption`.

use std::cmp::Reverse;

use reprieve_api::NamespacedName;
use reprieve_engine::fit::Preemptor;
use reprieve_engine::snapshot::{Obstacle, Pod};
use reprieve_engine::{PodId, Policy, Priority, Timestamp};
use reprieve_loader::Loaded;

use crate::remaining_actions::PodStates;
use crate::unit_ref::UnitRef;

pub(crate) struct LoadedStates<'a> {
    pub loaded: &'a Loaded,
    pub policy: &'a Policy,
    pub preemptor: &'a Preemptor,
}

impl LoadedStates<'_> {
    fn pod(&self, name: &NamespacedName) -> Option<&Pod> {
        self.loaded.names.pod_id(name).map(|pod| self.loaded.snapshot.pod(pod))
    }

    fn mark_of(&self, pod: &Pod) -> Option<UnitRef> {
        UnitRef::parse(self.loaded.names.text(pod.marked_for?))
    }

    /// The order in which the scheduler decides units: by priority, age and name. `None` for a unit without pending pods.
    fn position<'u>(&self, unit: &'u UnitRef) -> Option<(Reverse<Priority>, Timestamp, &'u UnitRef)> {
        let snapshot = &self.loaded.snapshot;
        let is_pending = |pod: &Pod| {
            let is_left_out = matches!(pod.obstacle, Some(Obstacle::Gates(_) | Obstacle::OtherScheduler));
            pod.node.is_none() && pod.terminating.is_none() && !is_left_out
        };
        let ids = self.loaded.names.pod_ids().filter(|&id| is_pending(snapshot.pod(id)));
        let pending: Vec<&Pod> = ids.filter(|&id| self.unit_of(id) == *unit).map(|id| snapshot.pod(id)).collect();
        let priority = pending.iter().map(|pod| pod.priority).max()?;
        let since = pending.iter().map(|pod| pod.created).min()?;
        Some((Reverse(priority), since, unit))
    }

    fn unit_of(&self, id: PodId) -> UnitRef {
        let Loaded { snapshot, names, .. } = self.loaded;
        let pod = snapshot.pod(id);
        match (self.policy, pod.group, pod.job) {
            (Policy::Kubernetes(_), Some(group), _) => UnitRef::Group(names.group(group).clone()),
            (Policy::Koordinator(_), _, Some(job)) => UnitRef::Job(names.job(job).clone()),
            _ => UnitRef::Pod(names.pod(id).clone()),
        }
    }
}

impl PodStates for LoadedStates<'_> {
    fn marked(&self, unit: &UnitRef) -> Vec<NamespacedName> {
        let Loaded { snapshot, names, .. } = self.loaded;
        let marked = names.pod_ids().filter(|&id| self.mark_of(snapshot.pod(id)).as_ref() == Some(unit));
        marked.map(|id| names.pod(id).clone()).collect()
    }

    fn marked_for(&self, pod: &NamespacedName) -> Option<UnitRef> {
        self.mark_of(self.pod(pod)?)
    }

    fn is_evicted(&self, pod: &NamespacedName) -> bool {
        self.pod(pod).is_none_or(|pod| pod.terminating.is_some() || pod.soft_evicted)
    }

    // `plan` asks only about the unit of its preemptor.
    fn nominations(&self, _unit: &UnitRef) -> Vec<(NamespacedName, Option<String>)> {
        let Loaded { snapshot, names, .. } = self.loaded;
        let pending = self.preemptor.members.iter().filter(|&&id| snapshot.pod(id).node.is_none());
        let nominated = |id: PodId| snapshot.pod(id).nominated.map(|node| names.node(node).to_owned());
        pending.map(|&id| (names.pod(id).clone(), nominated(id))).collect()
    }

    fn is_before(&self, unit: &UnitRef, other: &UnitRef) -> bool {
        self.position(unit).is_some_and(|first| self.position(other).is_none_or(|second| first < second))
    }
}

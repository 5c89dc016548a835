//! Chooses the next unit to decide, and puts units to wait or makes them ready according to the view of the cluster.

use std::sync::Arc;

use reprieve_api::{NamespacedName, Pod};
use reprieve_engine::policy::kubernetes::PriorityMismatch;
use reprieve_engine::{Policy, Timestamp};
use reprieve_report::unit_ref::UnitRef;

use super::class_key::{ClassKey, ShapeClasses};
use super::gang_members::PendingSummary;
use super::landing::LandingNodes;
use super::{ParkedFor, PendingQueue, WaitState};
use crate::view::{ClusterView, RoomChange, needs_place};
use crate::wait_reason::WaitReason;

/// A unit that was put to wait, the reason, and the reason as a sentence.
pub(crate) type Parked = (UnitRef, WaitReason, Arc<str>);

impl PendingQueue {
    /// The next unit to decide, and the units before it that were put to wait: an older unit is scheduled first, or their equivalence class
    /// waits. A preemptor with marked victims is in no class.
    pub fn next(
        &mut self,
        view: &ClusterView,
        has_victims: impl Fn(&UnitRef) -> bool,
        now: Timestamp,
    ) -> (Option<UnitRef>, Vec<Parked>) {
        self.drop_stale_classes(view);
        let mut parked = Vec::new();
        loop {
            let next = match view.policy() {
                Policy::YuniKorn(_) => self.next_by_queue(view),
                Policy::Kubernetes(_) | Policy::Koordinator(_) | Policy::Kueue(_) => self.first(),
            };
            let Some((unit, class)) = next else { return (None, parked) };
            let class_key = if has_victims(&unit) { None } else { self.class_key(&unit, view, now) };
            let is_head = class.is_some_and(|class| class_key.as_ref() == Some(self.classes.key(class)));
            if let Some((older, until)) = self.blocked_by_older(&unit, now) {
                let older = view.preemptor_shown_in(&unit.key().name.namespace, older);
                let why: Arc<str> = format!("{older} has waited longer and is scheduled first").into();
                self.park_behind_older(&unit, class_key, until, &why, now);
                parked.push((unit, WaitReason::WaitingForOlderUnit, why));
                continue;
            }
            let class_key = class_key.filter(|_| !is_head);
            if let Some((reason, why)) = class_key.and_then(|class_key| self.join_parked_class(&unit, &class_key)) {
                parked.push((unit, reason, why));
                continue;
            }
            self.set(&unit, WaitState::Ready);
            return (Some(unit), parked);
        }
    }

    fn park_behind_older(
        &mut self,
        unit: &UnitRef,
        class_key: Option<ClassKey>,
        until: Timestamp,
        why: &Arc<str>,
        now: Timestamp,
    ) {
        match class_key {
            Some(class_key) if self.join_parked_class(unit, &class_key).is_some() => {}
            Some(class_key) => {
                let (until, reason, why) = (Some(until), WaitReason::WaitingForOlderUnit, Arc::clone(why));
                self.park_with_class(unit, class_key, ParkedFor { until, reason, why, for_older_unit: true }, now);
            }
            None => self.set(unit, WaitState::ForChange { until: Some(until) }),
        }
    }

    /// Class keys contain ids of the snapshot and ignore anti-affinity: a rebuild or a pod with anti-affinity makes them invalid.
    fn drop_stale_classes(&mut self, view: &ClusterView) {
        let is_stale = !self.shape_classes.are_of(&view.live);
        if is_stale {
            self.shape_classes = ShapeClasses::new(&view.live);
        }
        if is_stale || view.loaded().snapshot.has_anti_affinity() {
            self.dissolve_classes();
        }
    }

    fn class_key(&mut self, unit: &UnitRef, view: &ClusterView, now: Timestamp) -> Option<ClassKey> {
        let (preemptor, pods) = view.preemptor(unit)?;
        ClassKey::of(&mut self.shape_classes, &view.loaded().snapshot, view.policy(), (preemptor, &pods), now)
    }

    /// Puts a unit to wait, unless it waits for the results of actions.
    pub fn wait(&mut self, unit: &UnitRef, state: WaitState) {
        if !self.is_busy(unit) {
            self.set(unit, state);
        }
    }

    /// Puts the equivalence class of a unit to wait, or the unit alone if it has no class. Returns the members whose condition is to be rewritten.
    pub fn wait_with_class(
        &mut self,
        unit: &UnitRef,
        (parked, has_victims): (ParkedFor, bool),
        view: &ClusterView,
        now: Timestamp,
    ) -> Vec<UnitRef> {
        let is_ungrouped = self.is_busy(unit) || has_victims;
        let class_key = if is_ungrouped { None } else { self.class_key(unit, view, now) };
        match class_key {
            Some(class_key) => self.park_with_class(unit, class_key, parked, now),
            None => {
                self.wait(unit, WaitState::ForChange { until: parked.until });
                Vec::new()
            }
        }
    }

    /// Puts a preemptor to wait for its victims, unless it waits for the results of actions.
    pub fn wait_for_victims(&mut self, unit: &UnitRef, view: &ClusterView) {
        let landing = match view.policy() {
            Policy::Kubernetes(_) if self.shape_classes.are_of(&view.live) => {
                view.preemptor(unit).and_then(|(preemptor, _)| LandingNodes::of(&view.loaded().snapshot, preemptor))
            }
            _ => None,
        };
        let for_victims = landing.map(|landing| WaitState::ForVictims(Arc::new(landing)));
        self.wait(unit, for_victims.unwrap_or(WaitState::ForChange { until: None }));
    }

    /// Makes the units ready that a change of room could help.
    pub fn room_changed(&mut self, room: RoomChange, view: &ClusterView) {
        let is_known = self.shape_classes.are_of(&view.live) && !view.live.is_stale();
        let (snapshot, policy) = (&view.loaded().snapshot, view.policy());
        let shape_classes = std::mem::take(&mut self.shape_classes);
        self.requeue_on_room_change(
            |class_key| !is_known || class_key.is_helped(&shape_classes, snapshot, policy, room),
            |landing| !is_known || landing.is_affected_by(snapshot, room),
        );
        self.shape_classes = shape_classes;
    }

    /// Updates the units of a pod that changed. Returns these units, and whether each is still pending.
    pub fn pod_changed(
        &mut self,
        before: Option<&Pod>,
        after: Option<&Pod>,
        view: &ClusterView,
    ) -> Vec<(UnitRef, bool)> {
        let (left, joined) = (view.unit_of(before), view.unit_of(after));
        let needs = after.filter(|pod| needs_place(pod));
        if let (Some(unit), Some(pod)) = (&left, before.filter(|pod| needs_place(pod))) {
            self.pending_members.remove(unit, pod);
        }
        if let (Some(unit), Some(pod)) = (&joined, needs) {
            self.pending_members.add(unit, pod);
        }
        let left =
            left.filter(|left| joined.as_ref() != Some(left)).map(|unit| (self.pending_members.summary(&unit), unit));
        let joined = joined.map(|unit| match unit {
            UnitRef::Pod(_) => (needs.map(PendingSummary::of_pod), unit),
            _ => (self.pending_members.summary(&unit), unit),
        });
        let changed = left.into_iter().chain(joined);
        let effective =
            |pending: Option<PendingSummary>, unit: &UnitRef| pending.map(|pending| effective(unit, pending, view));
        changed.map(|(pending, unit)| (unit.clone(), self.unit_changed(&unit, effective(pending, &unit)))).collect()
    }

    /// Updates the priority of a pending group after a change of its PodGroup.
    pub fn group_changed(&mut self, group: &NamespacedName, view: &ClusterView) {
        let unit = UnitRef::Group(group.clone());
        let summary = self.pending_members.summary(&unit).map(|pending| effective(&unit, pending, view));
        let known = self.get(&unit).map(|pending| pending.priority);
        if let Some(summary) = summary.filter(|summary| known.is_some_and(|known| known != summary.priority)) {
            self.upsert(&unit, summary);
        }
    }

    /// Updates or removes a unit; returns whether it is pending.
    fn unit_changed(&mut self, unit: &UnitRef, pending: Option<PendingSummary>) -> bool {
        match pending {
            Some(pending) => {
                self.upsert(unit, pending);
                self.wake(unit);
            }
            None => {
                self.remove(unit);
            }
        }
        pending.is_some()
    }
}

/// docs/rules/kubernetes-groups.md#g20: the summary of the pending pods of a unit, with the priority of the group where that counts for its
/// pods.
fn effective(unit: &UnitRef, pending: PendingSummary, view: &ClusterView) -> PendingSummary {
    let (UnitRef::Group(name), Policy::Kubernetes(policy)) = (unit, view.policy()) else { return pending };
    let loaded = view.loaded();
    let group = loaded.names.group_id(name).filter(|_| policy.priority_mismatch == PriorityMismatch::Report);
    let priority = group.map_or(pending.priority, |group| loaded.snapshot.group(group).priority);
    PendingSummary { priority, ..pending }
}

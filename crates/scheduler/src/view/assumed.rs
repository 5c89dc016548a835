//! The assumed effects of actions: pods, workloads and Jobs as they will be when the actions in flight have succeeded.
//!
//! An assumption lasts until its action fails, or succeeds and the API reports the object in the resulting version.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::{Kind, NamespacedName, Object, ObjectKey, Pod};
use reprieve_engine::Timestamp;

use crate::action::{Action, ActionId, ConditionUpdate};
use crate::effects::{apply, apply_to_pod};

/// The assumptions about each object, in the order of the actions.
#[derive(Default)]
pub(crate) struct Assumed(BTreeMap<ObjectKey, Vec<Assumption>>);

struct Assumption {
    id: ActionId,
    action: Action,
    sent: Timestamp,
    /// The version that contains the effect; `None` until the action has succeeded.
    version: Option<u64>,
}

impl Assumed {
    /// Assumes that an action will succeed.
    pub fn add(&mut self, id: ActionId, action: &Action, now: Timestamp) {
        if let Some((kind, target)) = action.changes() {
            let assumption = Assumption { id, action: action.clone(), sent: now, version: None };
            self.0.entry(ObjectKey::new(kind, target.name.clone())).or_default().push(assumption);
        }
    }

    /// Notes that an action succeeded and produced this version of the object.
    pub fn succeeded(&mut self, id: ActionId, key: &ObjectKey, version: u64) {
        for assumption in self.0.get_mut(key).into_iter().flatten().filter(|assumption| assumption.id == id) {
            assumption.version = Some(version);
        }
    }

    /// Drops the assumption of a failed action.
    pub fn failed(&mut self, id: ActionId, key: &ObjectKey) {
        self.retain(key, |assumption| assumption.id != id);
    }

    /// Drops the assumptions that are confirmed by this version of the object, or are about a deleted object of the same name.
    pub fn seen(&mut self, key: &ObjectKey, uid: &str, version: u64) {
        let is_confirmed = |assumption: &Assumption| assumption.version.is_some_and(|confirmed| confirmed <= version);
        let is_same_object =
            |assumption: &Assumption| assumption.action.changes().is_some_and(|(_, target)| target.uid == uid);
        self.retain(key, |assumption| is_same_object(assumption) && !is_confirmed(assumption));
    }

    /// The highest version that a successful action produced; 0 if there is none.
    pub fn version(&self, key: &ObjectKey) -> u64 {
        self.of(key).iter().filter_map(|assumption| assumption.version).max().unwrap_or(0)
    }

    /// Whether there is no assumption about the object.
    pub fn is_seen(&self, key: &ObjectKey) -> bool {
        self.of(key).is_empty()
    }

    /// Whether all actions on the object are known to have succeeded.
    pub fn all_succeeded(&self, key: &ObjectKey) -> bool {
        self.of(key).iter().all(|assumption| assumption.version.is_some())
    }

    /// Whether a binding of the pod is in flight.
    pub fn is_binding(&self, pod: &NamespacedName) -> bool {
        let binds =
            |assumption: &Assumption| assumption.version.is_none() && matches!(assumption.action, Action::Bind { .. });
        self.of(&ObjectKey::new(Kind::Pod, pod.clone())).iter().any(binds)
    }

    /// Whether there is no assumption, except for conditions.
    pub fn is_empty(&self) -> bool {
        let is_condition = |assumption: &Assumption| matches!(assumption.action, Action::SetCondition { .. });
        self.0.values().flatten().all(is_condition)
    }

    /// The last assumed condition of this type.
    pub fn condition(&self, key: &ObjectKey, type_: &str) -> Option<&ConditionUpdate> {
        self.of(key).iter().rev().find_map(|assumption| match &assumption.action {
            Action::SetCondition { condition, .. } if condition.type_ == type_ => Some(condition),
            _ => None,
        })
    }

    pub fn deleted(&mut self, key: &ObjectKey) {
        self.retain(key, |_| false);
    }

    fn of(&self, key: &ObjectKey) -> &[Assumption] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    fn retain(&mut self, key: &ObjectKey, keep: impl Fn(&Assumption) -> bool) {
        if let Some(assumptions) = self.0.get_mut(key) {
            assumptions.retain(keep);
            if assumptions.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// The pod with all assumed effects, except for conditions, which no decision reads.
    pub fn apply(&self, name: &NamespacedName, pod: &Arc<Pod>) -> Arc<Pod> {
        let assumptions = self.of(&ObjectKey::new(Kind::Pod, name.clone()));
        if assumptions.iter().all(|assumption| matches!(assumption.action, Action::SetCondition { .. })) {
            return Arc::clone(pod);
        }
        let mut pod = Pod::clone(pod);
        for Assumption { action, sent, .. } in assumptions {
            if !matches!(action, Action::SetCondition { .. }) {
                apply_to_pod(action, &mut pod, *sent);
            }
        }
        Arc::new(pod)
    }

    /// The workload or Job with all assumed effects. Quota counts as free only once the action that frees it has succeeded.
    pub fn apply_to(&self, key: &ObjectKey, object: &Object) -> Object {
        let mut object = object.clone();
        for Assumption { action, sent, version, .. } in self.of(key) {
            if version.is_none() && matches!(action, Action::RequeueWorkload { .. } | Action::FinishWorkload { .. }) {
                continue;
            }
            apply(action, &mut object, *sent);
        }
        object
    }
}

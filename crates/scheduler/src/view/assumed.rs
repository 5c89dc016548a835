//! What the scheduler has asked for and has not yet seen: pods, workloads and Jobs as they will be if what is under way works.
//!
//! An assumption lasts while its action is under way; if that works, until the object is seen in the version that came of it; if it
//! fails, no longer.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprieve_api::kinds::{Kind, Object, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_api::pod::Pod;
use reprieve_engine::Timestamp;

use crate::action::{Action, ActionId, ConditionUpdate};
use crate::effects::{apply, apply_to_pod};

/// By object: what is assumed of it, in the order in which it was asked for.
#[derive(Default)]
pub(crate) struct Assumed(BTreeMap<ObjectKey, Vec<Assumption>>);

struct Assumption {
    id: ActionId,
    action: Action,
    asked: Timestamp,
    /// The version in which it shows; `None` while that is not known.
    shows_in: Option<u64>,
}

impl Assumed {
    /// From now on it is taken to work.
    pub fn add(&mut self, id: ActionId, action: &Action, now: Timestamp) {
        if let Some((kind, target)) = action.changes() {
            let assumption = Assumption { id, action: action.clone(), asked: now, shows_in: None };
            self.0.entry(ObjectKey::new(kind, target.name.clone())).or_default().push(assumption);
        }
    }

    /// It worked, and shows in this version.
    pub fn worked(&mut self, id: ActionId, key: &ObjectKey, version: u64) {
        for assumption in self.0.get_mut(key).into_iter().flatten().filter(|assumption| assumption.id == id) {
            assumption.shows_in = Some(version);
        }
    }

    /// It did not.
    pub fn failed(&mut self, id: ActionId, key: &ObjectKey) {
        self.retain(key, |assumption| assumption.id != id);
    }

    /// The object was seen, in this version.
    pub fn seen(&mut self, key: &ObjectKey, uid: &str, version: u64) {
        let shows = |assumption: &Assumption| assumption.shows_in.is_some_and(|shows_in| shows_in <= version);
        let same = |assumption: &Assumption| assumption.action.changes().is_some_and(|(_, target)| target.uid == uid);
        self.retain(key, |assumption| same(assumption) && !shows(assumption));
    }

    /// The version that the object has by what worked; 0 where nothing did.
    pub fn version(&self, key: &ObjectKey) -> u64 {
        self.of(key).iter().filter_map(|assumption| assumption.shows_in).max().unwrap_or(0)
    }

    /// Whether nothing is assumed of the object.
    pub fn is_seen(&self, key: &ObjectKey) -> bool {
        self.of(key).is_empty()
    }

    /// Whether it is known of all that was asked for that it worked.
    pub fn is_settled(&self, key: &ObjectKey) -> bool {
        self.of(key).iter().all(|assumption| assumption.shows_in.is_some())
    }

    /// Whether it is not known yet if the pod was bound.
    pub fn is_binding(&self, pod: &NamespacedName) -> bool {
        let binds = |one: &Assumption| one.shows_in.is_none() && matches!(one.action, Action::Bind { .. });
        self.of(&ObjectKey::new(Kind::Pod, pod.clone())).iter().any(binds)
    }

    /// Whether nothing is assumed of anything, but for what is condition of it.
    pub fn is_empty(&self) -> bool {
        let is_said = |assumption: &Assumption| matches!(assumption.action, Action::SetCondition { .. });
        self.0.values().flatten().all(is_said)
    }

    /// What was condition last of the object in a condition of this type.
    pub fn condition(&self, key: &ObjectKey, type_: &str) -> Option<&ConditionUpdate> {
        self.of(key).iter().rev().find_map(|assumption| match &assumption.action {
            Action::SetCondition { condition, .. } if condition.type_ == type_ => Some(condition),
            _ => None,
        })
    }

    /// The object is gone.
    pub fn gone(&mut self, key: &ObjectKey) {
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

    /// The pod as it will be, but for what is condition of it: nobody decides by that.
    pub fn apply(&self, name: &NamespacedName, pod: &Arc<Pod>) -> Arc<Pod> {
        let assumptions = self.of(&ObjectKey::new(Kind::Pod, name.clone()));
        if assumptions.iter().all(|assumption| matches!(assumption.action, Action::SetCondition { .. })) {
            return Arc::clone(pod);
        }
        let mut pod = Pod::clone(pod);
        for Assumption { action, asked, .. } in assumptions {
            if !matches!(action, Action::SetCondition { .. }) {
                apply_to_pod(action, &mut pod, *asked);
            }
        }
        Arc::new(pod)
    }

    /// The workload or Job as it will be. Quota is taken for free only once that is known to have worked.
    pub fn apply_to(&self, key: &ObjectKey, object: &Object) -> Object {
        let mut object = object.clone();
        for Assumption { action, asked, shows_in, .. } in self.of(key) {
            if shows_in.is_none() && matches!(action, Action::RequeueWorkload { .. } | Action::FinishWorkload { .. }) {
                continue;
            }
            apply(action, &mut object, *asked);
        }
        object
    }
}

//! What the scheduler has asked for and has not yet seen: pods, workloads and Jobs as they will be if what is under way works.
//!
//! An assumption lasts while its action is under way; if that works, until the object is seen in the version that came of it; if it
//! fails, no longer.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_engine::Timestamp;
use reprieve_objects::load::time;
use reprieve_objects::object::{Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;

use crate::action::{Action, ActionId, PREEMPTED_FOR, SOFT_EVICTION, Said};
use crate::change::{change_job, change_workload};

/// By object: what is assumed of it, in the order in which it was asked for.
#[derive(Default)]
pub(crate) struct Assumed(BTreeMap<Kind, BTreeMap<FullName, Vec<Assumption>>>);

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
            self.0.entry(kind).or_default().entry(target.name.clone()).or_default().push(assumption);
        }
    }

    /// It worked, and shows in this version.
    pub fn worked(&mut self, id: ActionId, kind: Kind, name: &FullName, version: u64) {
        let assumptions = self.0.get_mut(&kind).and_then(|kind| kind.get_mut(name));
        for assumption in assumptions.into_iter().flatten().filter(|assumption| assumption.id == id) {
            assumption.shows_in = Some(version);
        }
    }

    /// It did not.
    pub fn failed(&mut self, id: ActionId, kind: Kind, name: &FullName) {
        self.retain(kind, name, |assumption| assumption.id != id);
    }

    /// The object was seen, in this version.
    pub fn seen(&mut self, kind: Kind, name: &FullName, uid: &str, version: u64) {
        let shows = |assumption: &Assumption| assumption.shows_in.is_some_and(|shows_in| shows_in <= version);
        let same = |assumption: &Assumption| assumption.action.changes().is_some_and(|(_, target)| target.uid == uid);
        self.retain(kind, name, |assumption| same(assumption) && !shows(assumption));
    }

    /// The version that the object has by what worked; 0 where nothing did.
    pub fn version(&self, kind: Kind, name: &FullName) -> u64 {
        self.of(kind, name).iter().filter_map(|assumption| assumption.shows_in).max().unwrap_or(0)
    }

    /// Whether nothing is assumed of the object.
    pub fn is_seen(&self, kind: Kind, name: &FullName) -> bool {
        self.of(kind, name).is_empty()
    }

    /// Whether it is known of all that was asked for that it worked.
    pub fn is_settled(&self, kind: Kind, name: &FullName) -> bool {
        self.of(kind, name).iter().all(|assumption| assumption.shows_in.is_some())
    }

    /// Whether it is not known yet if the pod was bound.
    pub fn is_binding(&self, name: &FullName) -> bool {
        let binds = |one: &Assumption| one.shows_in.is_none() && matches!(one.action, Action::Bind { .. });
        self.of(Kind::Pod, name).iter().any(binds)
    }

    /// Whether nothing is assumed of anything, but for what is said of it.
    pub fn is_empty(&self) -> bool {
        let is_said = |assumption: &Assumption| matches!(assumption.action, Action::Condition { .. });
        self.0.values().flat_map(BTreeMap::values).flatten().all(is_said)
    }

    /// What was said last of the object in a condition of this type.
    pub fn said(&self, kind: Kind, name: &FullName, type_: &str) -> Option<&Said> {
        self.of(kind, name).iter().rev().find_map(|assumption| match &assumption.action {
            Action::Condition { said, .. } if said.type_ == type_ => Some(said),
            _ => None,
        })
    }

    /// The object is gone.
    pub fn gone(&mut self, kind: Kind, name: &FullName) {
        self.retain(kind, name, |_| false);
    }

    fn of(&self, kind: Kind, name: &FullName) -> &[Assumption] {
        self.0.get(&kind).and_then(|kind| kind.get(name)).map_or(&[], Vec::as_slice)
    }

    fn retain(&mut self, kind: Kind, name: &FullName, keep: impl Fn(&Assumption) -> bool) {
        if let Some(kind) = self.0.get_mut(&kind)
            && let Some(assumptions) = kind.get_mut(name)
        {
            assumptions.retain(keep);
            if assumptions.is_empty() {
                kind.remove(name);
            }
        }
    }

    /// The pod as it will be, but for what is said of it: nobody decides by that.
    pub fn apply(&self, name: &FullName, pod: &Arc<Pod>) -> Arc<Pod> {
        let assumptions = self.of(Kind::Pod, name);
        if assumptions.iter().all(|assumption| matches!(assumption.action, Action::Condition { .. })) {
            return Arc::clone(pod);
        }
        let mut pod = Pod::clone(pod);
        for Assumption { action, asked, .. } in assumptions {
            change_pod(&mut pod, action, *asked);
        }
        Arc::new(pod)
    }

    /// The workload or Job as it will be. Quota is taken for free only once that is known to have worked.
    pub fn apply_to(&self, name: &FullName, object: &Object) -> Object {
        let mut object = object.clone();
        for Assumption { action, asked, shows_in, .. } in self.of(object.kind(), name) {
            if shows_in.is_none() && matches!(action, Action::Requeue { .. } | Action::Finish { .. }) {
                continue;
            }
            match &mut object {
                Object::KueueWorkload(workload) => change_workload(Arc::make_mut(workload), action, *asked),
                Object::Job(job) => change_job(Arc::make_mut(job), action),
                _ => false,
            };
        }
        object
    }
}

fn change_pod(pod: &mut Pod, action: &Action, now: Timestamp) {
    match action {
        Action::Bind { node, .. } => bind(pod, node, now),
        Action::Nominate { node, .. } => pod.status.get_or_insert_default().nominated_node_name = node.clone(),
        Action::Mark { preemptor, .. } => mark(pod, preemptor),
        Action::SoftEvict { preemptor, message, .. } => {
            mark(pod, preemptor);
            let labels = pod.metadata.labels.get_or_insert_default();
            labels.insert(SOFT_EVICTION.to_owned(), message.clone());
        }
        Action::Unmark { .. } => unmark(pod),
        Action::Evict { .. } => {
            let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
            let until = now.plus_seconds(grace.unwrap_or(30));
            let deletion = &mut pod.metadata.deletion_timestamp;
            *deletion = deletion.take().or(time(until).map(Time));
        }
        _ => {}
    }
}

/// Binds a pod to a node: from then on it runs, and tolerates others for as long as its class says.
pub fn bind(pod: &mut Pod, node: &str, now: Timestamp) {
    pod.node_name = Some(node.to_owned());
    let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    conditions.push(PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "True".to_owned(),
        last_transition_time: time(now).map(Time),
        ..PodCondition::default()
    });
}

/// Says on a pod that it is to yield, and for whom.
pub fn mark(pod: &mut Pod, preemptor: &str) {
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(PREEMPTED_FOR.to_owned(), preemptor.to_owned());
    let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "DisruptionTarget");
    conditions.push(PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("PreemptionByScheduler".to_owned()),
        message: Some(format!("preempted for {preemptor}")),
        ..PodCondition::default()
    });
}

/// Takes that back.
pub fn unmark(pod: &mut Pod) {
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.remove(PREEMPTED_FOR);
    }
    let status = pod.status.get_or_insert_default();
    status.conditions.get_or_insert_default().retain(|condition| condition.type_ != "DisruptionTarget");
}

//! What the scheduler has asked for and has not yet seen: pods as they will be if what is under way works.
//!
//! An assumption lasts while its action is under way; if that works, until the object is seen in the version that came of it; if it
//! fails, no longer.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reprieve_engine::Timestamp;
use reprieve_objects::load::time;
use reprieve_objects::objects::FullName;

use crate::action::{Action, ActionId, PREEMPTED_FOR, SOFT_EVICTION};

/// By pod: what is assumed of it, in the order in which it was asked for.
#[derive(Default)]
pub(crate) struct Assumed(BTreeMap<FullName, Vec<Assumption>>);

struct Assumption {
    action: ActionId,
    uid: String,
    change: Change,
    /// The version in which it shows; `None` while that is not known.
    shows_in: Option<u64>,
}

enum Change {
    Bound(String),
    Nominated(Option<String>),
    Marked { preemptor: String, soft: Option<String> },
    Unmarked,
    Leaving(Timestamp),
}

impl Assumed {
    /// From now on it is taken to work.
    pub fn add(&mut self, id: ActionId, action: &Action, now: Timestamp) {
        let change = match action {
            Action::Bind { node, .. } => Change::Bound(node.clone()),
            Action::Nominate { node, .. } => Change::Nominated(node.clone()),
            Action::Mark { preemptor, .. } => Change::Marked { preemptor: preemptor.clone(), soft: None },
            Action::SoftEvict { preemptor, message, .. } => {
                Change::Marked { preemptor: preemptor.clone(), soft: Some(message.clone()) }
            }
            Action::Unmark { .. } => Change::Unmarked,
            Action::Evict { .. } => Change::Leaving(now),
            Action::Record { .. } | Action::Read { .. } | Action::List { .. } | Action::Timer { .. } => return,
        };
        let pod = action.pod().expect("only pods are changed");
        let assumption = Assumption { action: id, uid: pod.uid.clone(), change, shows_in: None };
        self.0.entry(pod.name.clone()).or_default().push(assumption);
    }

    /// It worked, and shows in this version.
    pub fn worked(&mut self, id: ActionId, pod: &FullName, version: u64) {
        for assumption in self.0.get_mut(pod).into_iter().flatten().filter(|assumption| assumption.action == id) {
            assumption.shows_in = Some(version);
        }
    }

    /// It did not.
    pub fn failed(&mut self, id: ActionId, pod: &FullName) {
        self.retain(pod, |assumption| assumption.action != id);
    }

    /// The pod was seen, in this version.
    pub fn seen(&mut self, pod: &FullName, uid: &str, version: u64) {
        let shows = |assumption: &Assumption| assumption.shows_in.is_some_and(|shows_in| shows_in <= version);
        self.retain(pod, |assumption| assumption.uid == uid && !shows(assumption));
    }

    /// The version that the pod has by what worked; 0 where nothing did.
    pub fn version(&self, pod: &FullName) -> u64 {
        let shows_in = self.0.get(pod).into_iter().flatten().filter_map(|assumption| assumption.shows_in);
        shows_in.max().unwrap_or(0)
    }

    /// The pod is gone.
    pub fn gone(&mut self, pod: &FullName) {
        self.0.remove(pod);
    }

    fn retain(&mut self, pod: &FullName, keep: impl Fn(&Assumption) -> bool) {
        if let Some(assumptions) = self.0.get_mut(pod) {
            assumptions.retain(keep);
            if assumptions.is_empty() {
                self.0.remove(pod);
            }
        }
    }

    /// The pod as it will be.
    pub fn apply(&self, name: &FullName, pod: &Arc<Pod>) -> Arc<Pod> {
        let Some(assumptions) = self.0.get(name) else {
            return Arc::clone(pod);
        };
        let mut pod = Pod::clone(pod);
        for Assumption { change, .. } in assumptions {
            match change {
                Change::Bound(node) => pod.spec.get_or_insert_default().node_name = Some(node.clone()),
                Change::Nominated(node) => {
                    pod.status.get_or_insert_default().nominated_node_name = node.clone();
                }
                Change::Marked { preemptor, soft } => {
                    mark(&mut pod, preemptor);
                    if let Some(message) = soft {
                        let labels = pod.metadata.labels.get_or_insert_default();
                        labels.insert(SOFT_EVICTION.to_owned(), message.clone());
                    }
                }
                Change::Unmarked => unmark(&mut pod),
                Change::Leaving(since) => {
                    let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
                    let until = since.plus_seconds(grace.unwrap_or(30));
                    let deletion = &mut pod.metadata.deletion_timestamp;
                    *deletion = deletion.take().or(time(until).map(Time));
                }
            }
        }
        Arc::new(pod)
    }
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

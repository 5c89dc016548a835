//! What is said of pods and PodGroups while they wait, and once they do not: conditions, for people and for other programs. Nothing is
//! decided by them; each is said once for each law.

use std::sync::Arc;

use reprieve_engine::Timestamp;
use reprieve_objects::load::timestamp;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;

use super::Scheduler;
use crate::action::{Action, ActionId, Said};
use crate::action_log::Request;
use crate::event::ActionResult;
use crate::unit::UnitName;
use crate::view::{SCHEDULED, condition, needs_place};

/// Of a PodGroup; once it holds, it does so for ever.
const GROUP_SCHEDULED: &str = "PodGroupInitiallyScheduled";
/// Of a PodGroup whose pods have other priorities than it has.
const MISMATCH: &str = "PodsNotMatchingPriority";
/// Of a PodGroup that asks for a preemption priority which it is not given.
const REFUSED_PRIORITY: &str = "PreemptionPriorityRefused";
const UNSCHEDULABLE: &str = "Unschedulable";
/// The event that says so, too.
pub(super) const FAILED: &str = "FailedScheduling";

impl Scheduler {
    /// Says on a unit that it waits, by which law, and why. What is over in a moment is not told.
    pub(super) fn say_why(&mut self, unit: &UnitName, law: &'static str, why: &str, now: Timestamp) {
        self.queue.refused_by(unit, law);
        if law == "Unsettled" {
            return;
        }
        let waits =
            |type_| Said { type_, holds: false, reason: UNSCHEDULABLE, message: format!("{law}: {why}"), since: now };
        for name in self.view.members(unit) {
            if self.view.live.pod(&name).is_some_and(|pod| needs_place(pod)) {
                self.say(Kind::Pod, &name, waits(SCHEDULED), now);
            }
        }
        if let UnitName::Group(name) = unit {
            if self.spoken(Kind::PodGroup, name, GROUP_SCHEDULED).is_none_or(|(holds, ..)| !holds) {
                self.say(Kind::PodGroup, name, waits(GROUP_SCHEDULED), now);
            }
            self.say_mismatch(name, now);
        }
    }

    /// Says on a group that it was scheduled, once enough of its pods are known to be bound.
    fn say_scheduled(&mut self, key: &Key, now: Timestamp) {
        let Key { kind, name } = key;
        if self.spoken(*kind, name, GROUP_SCHEDULED).is_some_and(|(holds, ..)| holds) {
            return;
        }
        let Some(Object::PodGroup(group)) = self.view.live.get(key) else { return };
        let gang = group.spec.scheduling_policy.gang.as_ref();
        let needed = gang.map_or(1, |gang| usize::try_from(gang.min_count).unwrap_or(0)).max(1);
        let is_unbound = |pod: &&FullName| {
            self.view.live.pod(pod).is_none_or(|pod| pod.node_name.is_none()) || self.view.is_binding(pod)
        };
        let members = self.view.live.members(key);
        // So many may lack a node; one more is not looked for.
        let Some(spare) = members.len().checked_sub(needed) else { return };
        if members.iter().filter(is_unbound).nth(spare).is_none() {
            let message = "Scheduled: enough of its pods are bound".to_owned();
            let said = Said { type_: GROUP_SCHEDULED, holds: true, reason: "Scheduled", message, since: now };
            self.say(*kind, name, said, now);
        }
    }

    /// Says on a group that a pod of it has another priority, or no longer has.
    fn say_mismatch(&mut self, name: &FullName, now: Timestamp) {
        let loaded = self.view.loaded();
        let Some(group) = loaded.names.group_id(name).map(|group| loaded.snapshot.group(group)) else { return };
        let other = group.members.iter().find(|pod| loaded.snapshot.pod(**pod).priority != group.priority);
        let said = match other {
            Some(&pod) => {
                let (priority, pod) = (loaded.snapshot.pod(pod).priority.0, loaded.names.pod(pod));
                let message = format!("{MISMATCH}: {pod} has priority {priority}, and its group {}", group.priority.0);
                Said { type_: MISMATCH, holds: true, reason: MISMATCH, message, since: now }
            }
            None if self.spoken(Kind::PodGroup, name, MISMATCH).is_some_and(|(holds, ..)| holds) => {
                let message = format!("Matching: all its pods have priority {}", group.priority.0);
                Said { type_: MISMATCH, holds: false, reason: "Matching", message, since: now }
            }
            None => return,
        };
        self.say(Kind::PodGroup, name, said, now);
    }

    /// Says on groups that changed whether they were scheduled, and whether the preemption priority that they ask for is refused. Of the
    /// latter, of two schedulers that read a group, the one of its first pod speaks.
    pub(super) fn say_of_groups(&mut self, now: Timestamp) {
        for name in std::mem::take(&mut self.unjudged) {
            let key = Key::new(Kind::PodGroup, name.clone());
            let unit = UnitName::Group(name.clone());
            let is_ours =
                |pod: &FullName| self.view.unit_of(self.view.live.pod(pod).map(Arc::as_ref)).as_ref() == Some(&unit);
            let members = self.view.live.members(&key);
            let (first, any) = (members.first().is_some_and(is_ours), members.iter().any(is_ours));
            if any {
                self.say_scheduled(&key, now);
            }
            if !first {
                continue;
            }
            match self.view.live.refused_priority(&name) {
                Some(refused) => {
                    let (reason, message) = (refused.reason(), refused.to_string());
                    let said =
                        Said { type_: REFUSED_PRIORITY, holds: true, reason, message: message.clone(), since: now };
                    if self.say(Kind::PodGroup, &name, said, now) {
                        self.record(key, None, REFUSED_PRIORITY, message, now);
                    }
                }
                None if self.spoken(Kind::PodGroup, &name, REFUSED_PRIORITY).is_some_and(|(holds, ..)| holds) => {
                    let message = "what it asks for is allowed".to_owned();
                    let said = Said { type_: REFUSED_PRIORITY, holds: false, reason: "Accepted", message, since: now };
                    self.say(Kind::PodGroup, &name, said, now);
                }
                None => {}
            }
        }
    }

    /// Says it, unless that is said already. Whether it was not.
    fn say(&mut self, kind: Kind, name: &FullName, said: Said, now: Timestamp) -> bool {
        let spoken = self.spoken(kind, name, said.type_);
        if spoken.is_some_and(|(holds, reason, matter_of, _)| {
            (holds, reason, matter_of) == (said.holds, said.reason, matter(&said.message))
        }) {
            return false;
        }
        let since = spoken.filter(|(holds, ..)| *holds == said.holds).and_then(|(.., since)| since).unwrap_or(now);
        let Some(object) = self.view.target_as_known(&Key::new(kind, name.clone())) else { return false };
        let said = Said { since, ..said };
        self.send(Request::new(Action::Condition { kind, object, said }), now);
        true
    }

    /// What the object says, or will: whether the condition holds, its reason, by which law, and since when.
    fn spoken(&self, kind: Kind, name: &FullName, type_: &str) -> Option<(bool, &str, &str, Option<Timestamp>)> {
        let key = Key::new(kind, name.clone());
        if let Some(said) = self.view.sent_condition(&key, type_) {
            return Some((said.holds, said.reason, matter(&said.message), Some(said.since)));
        }
        if kind == Kind::Pod {
            let condition = condition(self.view.observed_pod(name)?, type_)?;
            let (reason, message) = (condition.reason.as_deref(), condition.message.as_deref());
            let since = condition.last_transition_time.as_ref().map(|since| timestamp(since.0));
            let (reason, message) = (reason.unwrap_or_default(), message.unwrap_or_default());
            return Some((condition.status == "True", reason, matter(message), since));
        }
        let Object::PodGroup(group) = self.view.live.get(&key)? else { return None };
        let conditions = group.status.as_ref()?.conditions.as_ref()?;
        let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
        let since = timestamp(condition.last_transition_time.0);
        Some((condition.status == "True", &condition.reason, matter(&condition.message), Some(since)))
    }

    /// It was said, or was not. What is forbidden is not tried again; what failed otherwise is, when there is something to say. Why
    /// somebody waits is recorded, too, for those who look at events.
    pub(super) fn said(&mut self, id: ActionId, about: &Key, said: &Said, result: &ActionResult, now: Timestamp) {
        match result {
            ActionResult::Ok { version } => {
                self.view.worked(id, about, *version);
                if said.reason == UNSCHEDULABLE {
                    self.record(about.clone(), None, FAILED, said.message.clone(), now);
                }
            }
            ActionResult::Forbidden(_) => {}
            _ => self.view.failed(id, about),
        }
    }
}

/// What comes before the colon.
pub(super) fn matter(message: &str) -> &str {
    message.split_once(": ").map_or(message, |(matter, _)| matter)
}

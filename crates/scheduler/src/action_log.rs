//! What the scheduler has asked for: which actions are in flight, who waits for each, and which are still to be handed out.

use std::collections::BTreeMap;

use reprieve_api::kinds::ObjectKey;
use reprieve_engine::Timestamp;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ActionId};

/// An action to be sent, and what the scheduler does when its result comes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub action: Action,
    /// The unit that is busy until the result comes.
    pub unit: Option<UnitRef>,
    /// Of an eviction: the preemptor, and the message of the event that is recorded on the victim once it has worked.
    pub preempts: Option<(ObjectKey, String)>,
    /// Of a reading: the action whose outcome it finds out.
    pub confirms: Option<ActionId>,
}

impl Request {
    /// A request that no unit waits for.
    pub fn new(action: Action) -> Self {
        Self { action, unit: None, preempts: None, confirms: None }
    }

    /// A request that a unit waits for.
    pub fn of(unit: &UnitRef, action: Action) -> Self {
        Self { unit: Some(unit.clone()), ..Self::new(action) }
    }

    /// An event about an object.
    pub fn record(about: ObjectKey, related: Option<ObjectKey>, reason: &'static str, message: String) -> Self {
        Self::new(Action::EmitEvent { about, related, reason, message })
    }
}

/// All actions that were sent and not decide_question yet.
#[derive(Default)]
pub(crate) struct ActionLog {
    next: u64,
    in_flight: BTreeMap<ActionId, Request>,
    /// Those that were not handed out yet.
    outbox: Vec<(ActionId, Action)>,
    /// The time of the last timer that was asked for.
    timer: Option<Timestamp>,
}

impl ActionLog {
    /// Gives a request its number; it is in flight until [`Self::finish`].
    pub fn send(&mut self, request: Request) -> ActionId {
        let id = ActionId(self.next);
        self.next += 1;
        self.outbox.push((id, request.action.clone()));
        self.in_flight.insert(id, request);
        id
    }

    /// The result of an action has come. `None` where it is not in flight.
    pub fn finish(&mut self, id: ActionId) -> Option<Request> {
        self.in_flight.remove(&id)
    }

    /// Hands out the actions that were sent since the last call.
    pub fn take_outbox(&mut self) -> Vec<(ActionId, Action)> {
        std::mem::take(&mut self.outbox)
    }

    /// All actions whose result has not come.
    pub fn in_flight(&self) -> impl Iterator<Item = &Action> {
        self.in_flight.values().map(|request| &request.action)
    }

    /// Asks for a timer, unless one is asked for that comes as early.
    pub fn set_timer(&mut self, at: Timestamp, now: Timestamp) {
        if self.timer.is_none_or(|timer| timer <= now || at < timer) {
            self.timer = Some(at);
            self.send(Request::new(Action::WakeAt { at }));
        }
    }

    /// A timer has come.
    pub fn timer_fired(&mut self) {
        self.timer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_handed_out_once_and_answered_once() {
        let mut log = ActionLog::default();
        let id = log.send(Request::new(Action::WakeAt { at: Timestamp(1) }));
        assert_eq!(log.take_outbox(), [(id, Action::WakeAt { at: Timestamp(1) })]);
        assert_eq!(log.take_outbox(), []);
        assert_eq!(log.in_flight().count(), 1);
        assert!(log.finish(id).is_some());
        assert!(log.finish(id).is_none());
        assert_ne!(log.send(Request::new(Action::WakeAt { at: Timestamp(1) })), id);
    }

    #[test]
    fn a_timer_is_asked_for_only_if_it_is_earlier() {
        let mut log = ActionLog::default();
        for (at, now, asked) in [(10, 0, true), (10, 1, false), (5, 1, true), (10, 2, false), (10, 5, true)] {
            log.set_timer(Timestamp(at), Timestamp(now));
            assert_eq!(log.take_outbox().len(), usize::from(asked), "at {at}, now {now}");
        }
        log.timer_fired();
        log.set_timer(Timestamp(20), Timestamp(6));
        assert_eq!(log.take_outbox().len(), 1);
    }
}

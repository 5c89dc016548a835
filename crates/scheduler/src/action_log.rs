//! Numbers the actions of the scheduler and keeps them until their results come: which are in flight, which unit waits for each, and which
//! the caller of [`Scheduler::step`](crate::Scheduler::step) has not received yet.

use std::collections::BTreeMap;

use reprieve_api::ObjectKey;
use reprieve_engine::Timestamp;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ActionId, EventReason};

/// An action to be sent, and what the scheduler needs to know when its result comes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub action: Action,
    /// The unit that waits for the result.
    pub unit: Option<UnitRef>,
    /// The events to emit once the action has succeeded: an event reports what happened, not what was tried.
    pub events: Vec<Action>,
    /// For a [`Action::GetObject`]: the earlier action whose outcome the read shows.
    pub confirms: Option<ActionId>,
}

impl Request {
    /// A request that no unit waits for.
    pub fn new(action: Action) -> Self {
        Self { action, unit: None, events: Vec::new(), confirms: None }
    }

    /// A request that a unit waits for.
    pub fn of(unit: &UnitRef, action: Action) -> Self {
        Self { unit: Some(unit.clone()), ..Self::new(action) }
    }

    pub fn event(about: ObjectKey, related: Option<ObjectKey>, reason: EventReason, message: String) -> Self {
        Self::new(Action::EmitEvent { about, related, reason, message })
    }

    /// The request, followed by an event if it succeeds.
    pub fn then_event(
        mut self,
        about: ObjectKey,
        related: Option<ObjectKey>,
        reason: EventReason,
        message: String,
    ) -> Self {
        self.events.push(Action::EmitEvent { about, related, reason, message });
        self
    }
}

/// The actions without a result.
#[derive(Default)]
pub(crate) struct ActionLog {
    next: u64,
    in_flight: BTreeMap<ActionId, Request>,
    /// The actions that the caller has not received yet.
    outbox: Vec<(ActionId, Action)>,
    /// The time of the last timer that was requested and has not fired.
    timer: Option<Timestamp>,
}

impl ActionLog {
    /// Numbers a request; it is in flight until [`Self::finish`].
    pub fn send(&mut self, request: Request) -> ActionId {
        let id = ActionId(self.next);
        self.next += 1;
        self.outbox.push((id, request.action.clone()));
        self.in_flight.insert(id, request);
        id
    }

    /// Ends an action whose result has come; `None` if the action is not in flight, because the result came twice.
    pub fn finish(&mut self, id: ActionId) -> Option<Request> {
        self.in_flight.remove(&id)
    }

    /// The actions that were sent since the last call.
    pub fn take_outbox(&mut self) -> Vec<(ActionId, Action)> {
        std::mem::take(&mut self.outbox)
    }

    pub fn in_flight(&self) -> impl Iterator<Item = &Action> {
        self.in_flight.values().map(|request| &request.action)
    }

    /// Requests a timer, unless an earlier one is requested already.
    pub fn set_timer(&mut self, at: Timestamp, now: Timestamp) {
        if self.timer.is_none_or(|timer| timer <= now || at < timer) {
            self.timer = Some(at);
            self.send(Request::new(Action::WakeAt { at }));
        }
    }

    pub fn timer_fired(&mut self) {
        self.timer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_leaves_the_outbox_once_and_finishes_once() {
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
    fn a_timer_is_requested_only_if_it_is_earlier() {
        let mut log = ActionLog::default();
        for (at, now, requested) in [(10, 0, true), (10, 1, false), (5, 1, true), (10, 2, false), (10, 5, true)] {
            log.set_timer(Timestamp(at), Timestamp(now));
            assert_eq!(log.take_outbox().len(), usize::from(requested), "at {at}, now {now}");
        }
        log.timer_fired();
        log.set_timer(Timestamp(20), Timestamp(6));
        assert_eq!(log.take_outbox().len(), 1);
    }
}

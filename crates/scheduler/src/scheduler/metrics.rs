//! The state of the scheduler that its callers read: readiness, pending units for the metrics, actions without a result.

use reprieve_report::unit_ref::UnitRef;

use super::Scheduler;
use crate::action::Action;
use crate::queue::WaitState;
use crate::wait_reason::WaitReason;

impl Scheduler {
    /// Whether all kinds are listed, so that decisions can be made.
    pub fn is_ready(&self) -> bool {
        self.view.sync.is_synced()
    }

    /// Whether all actions, except for conditions, have a result and the objects were seen with their effects.
    pub fn is_quiet(&self) -> bool {
        let sets_condition = |action: &Action| matches!(action, Action::SetCondition { .. });
        self.view.is_quiet()
            && self.actions.in_flight().all(|action| sets_condition(action) || action.changes().is_none())
    }

    /// All pending units, each with the reason why it waits.
    pub fn waiting(&self) -> impl Iterator<Item = (&UnitRef, WaitReason)> {
        self.queue.iter().map(|(unit, pending)| {
            let reason = match pending.state {
                WaitState::Ready => WaitReason::Queued,
                WaitState::ForChange { .. } | WaitState::ForVictims(_) | WaitState::InClass(_) => {
                    self.queue.reason(pending).unwrap_or(WaitReason::Queued)
                }
                WaitState::Backoff { .. } => WaitReason::Backoff,
                WaitState::AfterError { .. } => WaitReason::InternalError,
                WaitState::ForActions(_) => WaitReason::ActionInFlight,
            };
            (unit, reason)
        })
    }

    /// For each pending unit the name of its queue, empty if it has none, and the reason why it waits. Tenants cannot add names: a queue
    /// that no administrator defined is `other`.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (String, WaitReason)> {
        self.waiting().map(|(unit, reason)| (self.view.configured_queue_of(unit), reason))
    }
}

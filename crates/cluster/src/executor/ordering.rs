//! Keeps the actions on one object in the order in which the scheduler issued them. A condition that is not sent yet is out of date when the
//! scheduler issues another action on the same object, unless that action is a condition of another type. The ticket of the condition then
//! tells the executor, which does not send it.

use std::collections::BTreeMap;

use reprieve_api::ObjectKey;
use reprieve_scheduler::Action;
use tokio::sync::oneshot;

/// How many objects beyond twice those with actions in flight the map may hold before finished actions are removed from it.
const CLEANUP_SLACK: usize = 100;

/// Gives each action a ticket that waits for the previous action on the same object.
#[derive(Default)]
pub struct PerObjectOrder {
    last: BTreeMap<ObjectKey, LastAction>,
    /// The map is cleaned up when it exceeds this size.
    cleanup_size: usize,
}

struct LastAction {
    /// Closed when the action is finished.
    done: oneshot::Receiver<()>,
    /// The type of each condition that may not be sent yet, and the sender that tells its ticket that it is out of date.
    conditions: Vec<(&'static str, oneshot::Sender<()>)>,
}

/// The place of an action in the order of its object. Dropping the ticket lets the next action start.
pub struct OrderTicket {
    previous_done: Option<oneshot::Receiver<()>>,
    /// For a condition: receives a message when a later action supersedes it.
    superseded: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl PerObjectOrder {
    /// The ticket of an action that the scheduler issued, if the action changes an object.
    pub fn ticket_for(&mut self, action: &Action) -> Option<OrderTicket> {
        let (kind, target) = action.changes()?;
        if self.last.len() > self.cleanup_size {
            self.last.retain(|_, last| matches!(last.done.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
            self.cleanup_size = 2 * self.last.len() + CLEANUP_SLACK;
        }
        let (done, is_done) = oneshot::channel();
        let key = ObjectKey::new(kind, target.name.clone());
        let (previous_done, earlier) = match self.last.remove(&key) {
            Some(LastAction { done, conditions }) => (Some(done), conditions),
            None => (None, Vec::new()),
        };
        let type_ = match action {
            Action::SetCondition { condition, .. } => Some(condition.type_),
            _ => None,
        };
        let mut conditions = Vec::new();
        // A closed sender belongs to a condition whose ticket is gone: its request is finished.
        for (earlier_type, supersede) in earlier.into_iter().filter(|(_, supersede)| !supersede.is_closed()) {
            if type_.is_none_or(|type_| type_ == earlier_type) {
                let _ = supersede.send(()); // fails if the ticket was dropped meanwhile
            } else {
                conditions.push((earlier_type, supersede));
            }
        }
        let superseded = type_.map(|type_| {
            let (supersede, superseded) = oneshot::channel();
            conditions.push((type_, supersede));
            superseded
        });
        self.last.insert(key, LastAction { done: is_done, conditions });
        Some(OrderTicket { previous_done, superseded, _done: done })
    }
}

impl OrderTicket {
    /// Waits until the earlier action on the object is finished.
    pub async fn wait(&mut self) {
        if let Some(previous_done) = self.previous_done.take() {
            let _ = previous_done.await; // the earlier ticket is dropped without a message
        }
    }

    /// Waits until a later action supersedes this condition, without end if that never happens.
    pub async fn superseded(&mut self) {
        if let Some(superseded) = &mut self.superseded
            && superseded.await.is_ok()
        {
            return self.superseded = None; // a channel that has delivered its message must not be polled again
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use reprieve_api::kinds::Kind;
    use reprieve_api::meta::NamespacedName;
    use reprieve_engine::Timestamp;
    use reprieve_scheduler::action::{ConditionUpdate, Target};

    use super::*;

    fn pod(name: &str) -> Target {
        Target { name: NamespacedName::new("default", name), uid: String::new(), version: 1 }
    }

    fn unmark(name: &str) -> Action {
        Action::Unmark { pod: pod(name) }
    }

    fn condition(type_: &'static str) -> Action {
        let message = "NoFeasiblePlan".to_owned();
        let condition = ConditionUpdate { type_, holds: false, reason: "Unschedulable", message, since: Timestamp(0) };
        Action::SetCondition { kind: Kind::Pod, object: pod("a"), condition }
    }

    #[test]
    fn actions_on_one_object_run_one_after_the_other() {
        let mut order = PerObjectOrder::default();
        let mut first = order.ticket_for(&unmark("a")).expect("the action changes a pod");
        assert!(first.wait().now_or_never().is_some(), "no action is in flight");
        let mut other_pod = order.ticket_for(&unmark("b")).expect("the action changes a pod");
        assert!(other_pod.wait().now_or_never().is_some(), "an action on another pod does not wait");
        let mut second = order.ticket_for(&unmark("a")).expect("the action changes a pod");
        assert!(
            second.previous_done.as_mut().is_some_and(|before| before.now_or_never().is_none()),
            "the second waits for the first"
        );
        drop(first);
        assert!(second.wait().now_or_never().is_some(), "the first is finished");
    }

    #[test]
    fn finished_actions_are_forgotten_and_those_in_flight_are_not() {
        let mut order = PerObjectOrder::default();
        let _first = order.ticket_for(&unmark("a"));
        for index in 0..1_000 {
            drop(order.ticket_for(&unmark(&format!("pod-{index}"))));
        }
        assert!(order.last.len() <= CLEANUP_SLACK + 3, "{} objects are kept", order.last.len());
        let mut second = order.ticket_for(&unmark("a")).expect("the action changes a pod");
        assert!(
            second.previous_done.as_mut().is_some_and(|before| before.now_or_never().is_none()),
            "the second waits for the first"
        );
    }

    #[test]
    fn condition_is_superseded_by_another_change() {
        let mut order = PerObjectOrder::default();
        let mut condition_ticket = order.ticket_for(&condition("PodScheduled")).expect("the action changes a pod");
        assert!(condition_ticket.superseded().now_or_never().is_none());
        let _unmark = order.ticket_for(&unmark("a"));
        assert!(condition_ticket.superseded().now_or_never().is_some());
    }

    #[test]
    fn condition_is_superseded_by_one_of_its_type_only() {
        let mut order = PerObjectOrder::default();
        let mut first = order.ticket_for(&condition("PodScheduled")).expect("the action changes a pod");
        let mut second = order.ticket_for(&condition("Another")).expect("the action changes a pod");
        assert!(first.superseded().now_or_never().is_none(), "the types differ");
        let _third = order.ticket_for(&condition("Another"));
        assert!(second.superseded().now_or_never().is_some());
    }
    #[test]
    fn every_unsent_condition_is_superseded_by_another_change() {
        let mut order = PerObjectOrder::default();
        let mut first = order.ticket_for(&condition("PodScheduled")).expect("the action changes a pod");
        let mut second = order.ticket_for(&condition("Another")).expect("the action changes a pod");
        let _unmark = order.ticket_for(&unmark("a"));
        assert!(first.superseded().now_or_never().is_some(), "a condition of another type came between");
        assert!(second.superseded().now_or_never().is_some());
        assert!(first.superseded().now_or_never().is_none(), "the ticket is notified once");
    }
}

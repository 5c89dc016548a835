//! Keeps the actions on one object in the order in which the scheduler issued them. A condition that is not sent yet is dropped when a later
//! action changes the same object, except for a condition of another type.

use std::collections::BTreeMap;

use reprieve_api::ObjectKey;
use reprieve_scheduler::Action;
use tokio::sync::oneshot;

/// The number of objects without actions in flight that are kept before they are removed from the map.
const MIN_UNUSED_KEPT: usize = 100;

/// The last action on each object.
#[derive(Default)]
pub struct PerObjectOrder {
    last: BTreeMap<ObjectKey, LastAction>,
    /// The map is cleaned up when it exceeds this size.
    cleanup_size: usize,
}

struct LastAction {
    /// Closed when the action is finished.
    done: oneshot::Receiver<()>,
    /// For a condition: its type, and the sender that supersedes it.
    condition: Option<(&'static str, oneshot::Sender<()>)>,
}

/// The place of an action in the order of its object. Dropping the ticket lets the next action start.
pub struct OrderTicket {
    before: Option<oneshot::Receiver<()>>,
    /// For a condition: receives a message when a later action supersedes it.
    superseded: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl PerObjectOrder {
    /// The ticket of the next action, if the action changes an object.
    pub fn next(&mut self, action: &Action) -> Option<OrderTicket> {
        let (kind, target) = action.changes()?;
        if self.last.len() > self.cleanup_size {
            self.last.retain(|_, last| matches!(last.done.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
            self.cleanup_size = 2 * self.last.len() + MIN_UNUSED_KEPT;
        }
        let (done, is_done) = oneshot::channel();
        let (type_, condition, superseded) = match action {
            Action::SetCondition { condition, .. } => {
                let (supersede, superseded) = oneshot::channel();
                (Some(condition.type_), Some((condition.type_, supersede)), Some(superseded))
            }
            _ => (None, None, None),
        };
        let last = LastAction { done: is_done, condition };
        let before = self.last.insert(ObjectKey::new(kind, target.name.clone()), last);
        let before = before.map(|LastAction { done, condition }| {
            if let Some((earlier_type, supersede)) = condition
                && type_.is_none_or(|type_| type_ == earlier_type)
            {
                let _ = supersede.send(()); // fails if the condition is already sent
            }
            done
        });
        Some(OrderTicket { before, superseded, _done: done })
    }
}

impl OrderTicket {
    /// Waits until the earlier action on the object is finished.
    pub async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = before.await; // the earlier ticket is dropped without a message
        }
    }

    /// Waits until a later action supersedes this condition, without end if that never happens.
    pub async fn superseded(&mut self) {
        if let Some(superseded) = &mut self.superseded
            && superseded.await.is_ok()
        {
            return;
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
        let mut first = order.next(&unmark("a")).expect("the action changes a pod");
        assert!(first.wait().now_or_never().is_some(), "no action is in flight");
        let mut other_pod = order.next(&unmark("b")).expect("the action changes a pod");
        assert!(other_pod.wait().now_or_never().is_some(), "an action on another pod does not wait");
        let mut second = order.next(&unmark("a")).expect("the action changes a pod");
        assert!(
            second.before.as_mut().is_some_and(|before| before.now_or_never().is_none()),
            "the second waits for the first"
        );
        drop(first);
        assert!(second.wait().now_or_never().is_some(), "the first is finished");
    }

    #[test]
    fn finished_actions_are_forgotten_and_those_in_flight_are_not() {
        let mut order = PerObjectOrder::default();
        let _first = order.next(&unmark("a"));
        for index in 0..1_000 {
            drop(order.next(&unmark(&format!("pod-{index}"))));
        }
        assert!(order.last.len() <= MIN_UNUSED_KEPT + 3, "{} objects are kept", order.last.len());
        let mut second = order.next(&unmark("a")).expect("the action changes a pod");
        assert!(
            second.before.as_mut().is_some_and(|before| before.now_or_never().is_none()),
            "the second waits for the first"
        );
    }

    #[test]
    fn condition_is_superseded_by_another_change() {
        let mut order = PerObjectOrder::default();
        let mut condition_ticket = order.next(&condition("PodScheduled")).expect("the action changes a pod");
        assert!(condition_ticket.superseded().now_or_never().is_none());
        let _unmark = order.next(&unmark("a"));
        assert!(condition_ticket.superseded().now_or_never().is_some());
    }

    #[test]
    fn condition_is_superseded_by_one_of_its_type_only() {
        let mut order = PerObjectOrder::default();
        let mut first = order.next(&condition("PodScheduled")).expect("the action changes a pod");
        let mut second = order.next(&condition("Another")).expect("the action changes a pod");
        assert!(first.superseded().now_or_never().is_none(), "the types differ");
        let _third = order.next(&condition("Another"));
        assert!(second.superseded().now_or_never().is_some());
    }
}

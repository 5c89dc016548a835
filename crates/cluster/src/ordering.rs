//! Actions on one object are carried out one after the other, as they were asked for. What is only said of it, and was not said yet, is
//! left out when something is done about it, or when something else is said in its place.

use std::collections::BTreeMap;

use reprieve_api::kinds::ObjectKey;
use reprieve_scheduler::action::Action;
use tokio::sync::oneshot;

/// How many objects on which nothing is under way are remembered at least.
const FORGOTTEN: usize = 100;

/// Whose turn it is.
#[derive(Default)]
pub struct PerObjectOrder {
    /// By object: the last action on it.
    last: BTreeMap<ObjectKey, LastAction>,
    /// With so many it is time to forget those on which nothing is under way.
    full: usize,
}

struct LastAction {
    /// Comes when it is done.
    done: oneshot::Receiver<()>,
    /// Of a condition: its type, and how it is left out.
    said: Option<(&'static str, oneshot::Sender<()>)>,
}

/// The turn of an action. It passes when it is dropped.
pub struct OrderTicket {
    before: Option<oneshot::Receiver<()>>,
    /// Of a condition.
    left_out: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl PerObjectOrder {
    /// The turn of this action, if it changes an object.
    pub fn next(&mut self, action: &Action) -> Option<OrderTicket> {
        let (kind, target) = action.changes()?;
        if self.last.len() > self.full {
            self.last.retain(|_, last| matches!(last.done.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
            self.full = 2 * self.last.len() + FORGOTTEN;
        }
        let (done, is_done) = oneshot::channel();
        let (type_, said, left_out) = match action {
            Action::SetCondition { condition: said, .. } => {
                let (leave_out, left_out) = oneshot::channel();
                (Some(said.type_), Some((said.type_, leave_out)), Some(left_out))
            }
            _ => (None, None, None),
        };
        let last = LastAction { done: is_done, said };
        let before = self.last.insert(ObjectKey::new(kind, target.name.clone()), last);
        let before = before.map(|LastAction { done, said }| {
            if let Some((before, leave_out)) = said
                && type_.is_none_or(|type_| type_ == before)
            {
                let _ = leave_out.send(()); // it may be said by now
            }
            done
        });
        Some(OrderTicket { before, left_out, _done: done })
    }
}

impl OrderTicket {
    /// Waits until it has come.
    pub async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = before.await; // it is dropped, not sent
        }
    }

    /// Waits until it need not be said any more.
    pub async fn superseded(&mut self) {
        if let Some(left_out) = &mut self.left_out
            && left_out.await.is_ok()
        {
            return;
        }
        // Nobody can say so any more.
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

    fn say(type_: &'static str) -> Action {
        let message = "NoFeasiblePlan".to_owned();
        let said = ConditionUpdate { type_, holds: false, reason: "Unschedulable", message, since: Timestamp(0) };
        Action::SetCondition { kind: Kind::Pod, object: pod("a"), condition: said }
    }

    #[test]
    fn actions_on_one_object_take_turns() {
        let mut turns = PerObjectOrder::default();
        let mut first = turns.next(&unmark("a")).expect("it changes a pod");
        assert!(first.wait().now_or_never().is_some(), "nothing is under way");
        let mut other = turns.next(&unmark("b")).expect("it changes a pod");
        assert!(other.wait().now_or_never().is_some(), "another pod does not wait");
        let mut second = turns.next(&unmark("a")).expect("it changes a pod");
        assert!(second.before.as_mut().is_some_and(|before| before.now_or_never().is_none()), "it waits for the first");
        drop(first);
        assert!(second.wait().now_or_never().is_some(), "the first is done");
    }

    #[test]
    fn what_is_done_is_forgotten_and_what_is_under_way_is_not() {
        let mut turns = PerObjectOrder::default();
        let _first = turns.next(&unmark("a"));
        for at in 0..1_000 {
            drop(turns.next(&unmark(&format!("pod-{at}"))));
        }
        assert!(turns.last.len() <= FORGOTTEN + 3, "{} are remembered", turns.last.len());
        let mut second = turns.next(&unmark("a")).expect("it changes a pod");
        assert!(second.before.as_mut().is_some_and(|before| before.now_or_never().is_none()), "it waits for the first");
    }

    #[test]
    fn what_is_only_said_is_left_out_when_something_is_done() {
        let mut turns = PerObjectOrder::default();
        let mut said = turns.next(&say("PodScheduled")).expect("it changes a pod");
        assert!(said.superseded().now_or_never().is_none());
        let _done = turns.next(&unmark("a"));
        assert!(said.superseded().now_or_never().is_some());
    }

    #[test]
    fn what_is_only_said_is_left_out_when_something_else_is_said_in_its_place() {
        let mut turns = PerObjectOrder::default();
        let mut first = turns.next(&say("PodScheduled")).expect("it changes a pod");
        let mut other = turns.next(&say("Another")).expect("it changes a pod");
        assert!(first.superseded().now_or_never().is_none(), "both are said");
        let _third = turns.next(&say("Another"));
        assert!(other.superseded().now_or_never().is_some());
    }
}

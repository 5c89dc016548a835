//! The way from whoever watches and acts, on one thread, to whoever decides, on another. What is put in within one round of the first is
//! handed over at once: each waking of a thread costs more than what it wakes for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::messages::Message;

/// What was put in, in this order, and is not yet taken.
#[derive(Default)]
pub struct EventQueue {
    held: Mutex<QueueState>,
    handed_over: Condvar,
    put: Notify,
}

#[derive(Default)]
struct QueueState {
    gathered: Vec<Message>,
    ready: Vec<Message>,
    closed: bool,
}

impl EventQueue {
    /// Puts something in.
    pub fn push(&self, input: Message) {
        let mut held = self.held();
        held.gathered.push(input);
        if held.gathered.len() == 1 {
            self.put.notify_one();
        }
    }

    /// Hands over what others have put in, whenever they have had their turn.
    pub async fn flush_loop(&self) {
        loop {
            self.put.notified().await;
            let mut held = self.held();
            let gathered = std::mem::take(&mut held.gathered);
            held.ready.extend(gathered);
            self.handed_over.notify_one();
        }
    }

    /// Nothing more will be put in.
    pub fn close(&self) {
        self.held().closed = true;
        self.handed_over.notify_one();
    }

    /// All that was handed over, for which it is waited so long at most; `None` when nothing more will be.
    pub fn drain(&self, patience: Duration) -> Option<Vec<Message>> {
        let idle = |held: &mut QueueState| held.ready.is_empty() && !held.closed;
        let waited = self.handed_over.wait_timeout_while(self.held(), patience, idle);
        let (mut held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!held.closed).then(|| std::mem::take(&mut held.ready))
    }

    fn held(&self) -> MutexGuard<'_, QueueState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(10);
    const A_WHILE: Duration = Duration::from_millis(50);

    fn stops(inbox: &EventQueue) -> Option<usize> {
        inbox.drain(Duration::ZERO).map(|inputs| inputs.len())
    }

    #[tokio::test]
    async fn what_is_put_in_is_handed_over_when_everybody_has_had_a_turn() {
        let inbox = EventQueue::default();
        let watchers = async {
            inbox.push(Message::Stop);
            inbox.push(Message::Stop);
            assert_eq!(stops(&inbox), Some(0), "it is still the first one's turn");
            tokio::task::yield_now().await;
            assert_eq!(stops(&inbox), Some(2));
            assert_eq!(stops(&inbox), Some(0), "it was taken");
        };
        tokio::select! {
            biased;
            () = watchers => {}
            () = inbox.flush_loop() => unreachable!("it never ends"),
        }
        inbox.close();
        assert_eq!(stops(&inbox), None);
    }

    #[test]
    fn whoever_waits_hears_of_it_at_once() {
        let (inbox, began) = (EventQueue::default(), Instant::now());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let heard = inbox.drain(LONG).map(|inputs| inputs.len());
                (heard, inbox.drain(LONG).is_none())
            });
            std::thread::sleep(A_WHILE); // it waits now
            runtime.block_on(async {
                inbox.push(Message::Stop);
                tokio::select! {
                    biased;
                    () = inbox.flush_loop() => unreachable!("it never ends"),
                    () = tokio::task::yield_now() => {}
                }
            });
            std::thread::sleep(A_WHILE); // it waits again
            inbox.close();
            assert_eq!(waiting.join().expect("it ends"), (Some(1), true));
        });
        assert!(began.elapsed() < LONG, "it was told, and did not wait until the end");
    }
}

//! The way from whoever watches and acts, on one thread, to whoever decides, on another. What is put in within one round of the first is
//! handed over at once: each waking of a thread costs more than what it wakes for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::messages::Input;

/// What was put in, in this order, and is not yet taken.
#[derive(Default)]
pub struct Inbox {
    held: Mutex<Held>,
    handed_over: Condvar,
    put: Notify,
}

#[derive(Default)]
struct Held {
    gathered: Vec<Input>,
    ready: Vec<Input>,
    closed: bool,
}

impl Inbox {
    /// Puts something in.
    pub fn put(&self, input: Input) {
        let mut held = self.held();
        held.gathered.push(input);
        if held.gathered.len() == 1 {
            self.put.notify_one();
        }
    }

    /// Hands over what others have put in, whenever they have had their turn.
    pub async fn hand_over_all(&self) {
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
    pub fn take(&self, patience: Duration) -> Option<Vec<Input>> {
        let idle = |held: &mut Held| held.ready.is_empty() && !held.closed;
        let waited = self.handed_over.wait_timeout_while(self.held(), patience, idle);
        let (mut held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!held.closed).then(|| std::mem::take(&mut held.ready))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(10);
    const A_WHILE: Duration = Duration::from_millis(50);

    fn stops(inbox: &Inbox) -> Option<usize> {
        inbox.take(Duration::ZERO).map(|inputs| inputs.len())
    }

    #[tokio::test]
    async fn what_is_put_in_is_handed_over_when_everybody_has_had_a_turn() {
        let inbox = Inbox::default();
        let watchers = async {
            inbox.put(Input::Stop);
            inbox.put(Input::Stop);
            assert_eq!(stops(&inbox), Some(0), "it is still the first one's turn");
            tokio::task::yield_now().await;
            assert_eq!(stops(&inbox), Some(2));
            assert_eq!(stops(&inbox), Some(0), "it was taken");
        };
        tokio::select! {
            biased;
            () = watchers => {}
            () = inbox.hand_over_all() => unreachable!("it never ends"),
        }
        inbox.close();
        assert_eq!(stops(&inbox), None);
    }

    #[test]
    fn whoever_waits_hears_of_it_at_once() {
        let (inbox, began) = (Inbox::default(), Instant::now());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let heard = inbox.take(LONG).map(|inputs| inputs.len());
                (heard, inbox.take(LONG).is_none())
            });
            std::thread::sleep(A_WHILE); // it waits now
            runtime.block_on(async {
                inbox.put(Input::Stop);
                tokio::select! {
                    biased;
                    () = inbox.hand_over_all() => unreachable!("it never ends"),
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

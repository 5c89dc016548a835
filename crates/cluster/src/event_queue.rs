//! The queue from the async tasks (watches, executor) to the scheduler thread. Messages that arrive in one round of the async runtime are
//! delivered together, because waking the thread costs more than handling a message.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::messages::Message;

/// Messages in the order of their arrival.
#[derive(Default)]
pub struct EventQueue {
    state: Mutex<QueueState>,
    delivered: Condvar,
    pushed: Notify,
}

#[derive(Default)]
struct QueueState {
    arriving: Vec<Message>,
    ready: Vec<Message>,
    closed: bool,
}

impl EventQueue {
    pub fn push(&self, message: Message) {
        let mut state = self.lock();
        state.arriving.push(message);
        if state.arriving.len() == 1 {
            self.pushed.notify_one();
        }
    }

    /// Delivers the messages of each round of the async runtime. Runs as a task and never ends.
    pub async fn flush_loop(&self) {
        loop {
            self.pushed.notified().await;
            let mut state = self.lock();
            let arriving = std::mem::take(&mut state.arriving);
            state.ready.extend(arriving);
            self.delivered.notify_one();
        }
    }

    /// Ends `drain`.
    pub fn close(&self) {
        self.lock().closed = true;
        self.delivered.notify_one();
    }

    /// Takes all delivered messages, and waits for them if there are none. `None` once the queue is closed.
    pub fn drain(&self, timeout: Duration) -> Option<Vec<Message>> {
        let idle = |state: &mut QueueState| state.ready.is_empty() && !state.closed;
        let waited = self.delivered.wait_timeout_while(self.lock(), timeout, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.closed).then(|| std::mem::take(&mut state.ready))
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(10);
    const SHORT: Duration = Duration::from_millis(50);

    fn drained(queue: &EventQueue) -> Option<usize> {
        queue.drain(Duration::ZERO).map(|messages| messages.len())
    }

    #[tokio::test]
    async fn messages_are_delivered_together_when_the_task_yields() {
        let queue = EventQueue::default();
        let watch = async {
            queue.push(Message::Stop);
            queue.push(Message::Stop);
            assert_eq!(drained(&queue), Some(0), "the task has not yielded yet");
            tokio::task::yield_now().await;
            assert_eq!(drained(&queue), Some(2));
            assert_eq!(drained(&queue), Some(0), "the messages were taken");
        };
        tokio::select! {
            biased;
            () = watch => {}
            () = queue.flush_loop() => unreachable!("it never ends"),
        }
        queue.close();
        assert_eq!(drained(&queue), None);
    }

    #[test]
    fn waiting_thread_wakes_up_at_once() {
        let (queue, began) = (EventQueue::default(), Instant::now());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let received = queue.drain(LONG).map(|messages| messages.len());
                (received, queue.drain(LONG).is_none())
            });
            std::thread::sleep(SHORT); // the thread waits now
            runtime.block_on(async {
                queue.push(Message::Stop);
                tokio::select! {
                    biased;
                    () = queue.flush_loop() => unreachable!("it never ends"),
                    () = tokio::task::yield_now() => {}
                }
            });
            std::thread::sleep(SHORT); // the thread waits again
            queue.close();
            assert_eq!(waiting.join().expect("the thread ends"), (Some(1), true));
        });
        assert!(began.elapsed() < LONG, "the thread did not wait for the timeout");
    }
}

//! Sends `events.k8s.io` events while few other requests are in flight: the scheduler's other requests go first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::mpsc::Receiver;

use super::Executor;
use crate::event_queue::EventQueue;
use crate::messages::Dispatch;

/// How long an event waits at most for other requests.
const MAX_EVENT_DELAY: Duration = Duration::from_millis(100);

impl Executor {
    /// Sends events until the channel is closed, several in parallel if the API server has capacity.
    pub(super) async fn send_events(self: Arc<Self>, mut events: Receiver<Dispatch>, results: Arc<EventQueue>) {
        while let Some(first) = events.recv().await {
            let budget = self.event_budget().await;
            let others = std::iter::from_fn(|| events.try_recv().ok());
            let batch = std::iter::once(first).chain(others).take(budget);
            let sent = batch.map(async |dispatch| dispatch.done(self.execute(&dispatch, None).await));
            for done in join_all(sent).await {
                results.push(done);
            }
        }
    }

    /// How many events may be sent in parallel now: one if more than half of the requests are still in flight after the maximum delay.
    pub(super) async fn event_budget(&self) -> usize {
        let end = Instant::now() + MAX_EVENT_DELAY;
        while self.in_flight.available_permits() < self.free_before_events {
            if Instant::now() >= end {
                return 1;
            }
            tokio::time::sleep(MAX_EVENT_DELAY / 10).await;
        }
        self.max_event_budget
    }
}

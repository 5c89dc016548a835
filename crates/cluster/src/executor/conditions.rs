//! Delays conditions: a condition is sent only if it still holds after a second, and after more urgent requests.

use std::time::Duration;

use tokio::sync::SemaphorePermit;

use super::Executor;
use super::ordering::OrderTicket;

const CONDITION_DEBOUNCE: Duration = Duration::from_secs(1);

impl Executor {
    /// Waits until the condition may be sent. `None` if a later action on the object replaces the condition before that.
    pub(super) async fn wait_out_debounce(&self, ticket: &mut OrderTicket) -> Option<SemaphorePermit<'_>> {
        let permit = async {
            tokio::time::sleep(CONDITION_DEBOUNCE).await;
            let permit = self.conditions.acquire().await.ok()?;
            self.event_budget().await;
            Some(permit)
        };
        tokio::select! {
            biased;
            () = ticket.superseded() => None,
            permit = permit => permit,
        }
    }
}

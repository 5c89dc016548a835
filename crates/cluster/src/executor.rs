//! Executes the scheduler's actions: each action is one request to the API server, and its result goes to the event queue.
//!
//! This file applies the limits (order per object, requests in flight, rates, dry run) and retries. `requests` sends the request of an action,
//! `conditions` delays conditions, `events` sends events when there is capacity, `ordering` keeps the actions on one object in order.

mod conditions;
mod events;
mod merge_patch;
mod ordering;
mod requests;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use kube::Client;
use reprieve_scheduler::{Action, ActionResult};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, channel};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use self::ordering::{OrderTicket, PerObjectOrder};
use crate::config::{ClientLimits, Configuration};
use crate::error::{has_code, problem};
use crate::event_queue::EventQueue;
use crate::messages::{Dispatch, Message};
use crate::metrics::Metrics;
use crate::reporter::Reporter;
use crate::served::ServedVersions;
use crate::trim::ObjectTrimmer;
use crate::watch::{Listed, Undecodable, WatchScope, list};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The number of attempts for a request that the API server rejects with 429 (too many requests).
const MAX_ATTEMPTS: u32 = 4;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The executor sends at most one event at a time per this many requests in flight that the configuration allows.
const REQUESTS_PER_EVENT_SLOT: usize = 5;
/// The number of events that wait to be sent. Events are informational, so the executor drops those above the limit.
const MAX_QUEUED_EVENTS: usize = 10_000;

/// Sends the requests of one leader session.
pub struct Executor {
    client: Client,
    /// The versions that the watches have discovered.
    pub versions: Arc<ServedVersions>,
    pub reporter: Reporter,
    in_flight: Semaphore,
    /// Events and conditions wait until at least this many requests are free.
    free_before_events: usize,
    max_event_budget: usize,
    /// Conditions are sent one at a time.
    conditions: Semaphore,
    requests: DefaultDirectRateLimiter,
    evictions: Option<DefaultDirectRateLimiter>,
    metrics: Arc<Metrics>,
}

impl Executor {
    pub fn new(client: Client, config: &Configuration, identity: &str, dry_run: bool, metrics: Arc<Metrics>) -> Self {
        let ClientLimits { qps, burst, max_in_flight } = config.client_limits;
        let at_least_one = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let evictions = NonZeroU32::new(config.evictions_per_minute);
        Self {
            reporter: Reporter { identity: identity.to_owned(), dry_run },
            client,
            versions: Arc::default(),
            in_flight: Semaphore::new(max_in_flight),
            free_before_events: max_in_flight.div_ceil(2),
            max_event_budget: (max_in_flight / REQUESTS_PER_EVENT_SLOT).max(1),
            conditions: Semaphore::new(1),
            requests: RateLimiter::direct(Quota::per_second(at_least_one(qps)).allow_burst(at_least_one(burst))),
            evictions: evictions.map(|limit| RateLimiter::direct(Quota::per_minute(limit))),
            metrics,
        }
    }

    /// Executes actions until the scheduler thread closes the channel.
    pub async fn run(self: Arc<Self>, mut actions: UnboundedReceiver<Dispatch>, results: Arc<EventQueue>) {
        let (mut order, mut tasks) = (PerObjectOrder::default(), JoinSet::new());
        let (events, queued_events) = channel(MAX_QUEUED_EVENTS);
        tasks.spawn(Arc::clone(&self).send_events(queued_events, Arc::clone(&results)));
        while let Some(dispatch) = actions.recv().await {
            while tasks.try_join_next().is_some() {}
            if matches!(dispatch.action, Action::EmitEvent { .. }) {
                if let Err(error) = events.try_send(dispatch) {
                    let dispatch = error.into_inner();
                    debug!(action = ?dispatch.action, "too many events are queued; this event is dropped");
                    results.push(dispatch.done(Some(ActionResult::Unknown)));
                }
                continue;
            }
            let ticket = order.ticket_for(&dispatch.action);
            tasks.spawn(Arc::clone(&self).execute_and_report(dispatch, ticket, Arc::clone(&results)));
        }
        tasks.detach_all();
    }

    async fn execute_and_report(
        self: Arc<Self>,
        dispatch: Dispatch,
        ticket: Option<OrderTicket>,
        results: Arc<EventQueue>,
    ) {
        let mut result = self.execute(&dispatch, ticket).await;
        if let Dispatch { profile, id: action, action: Action::Relist { kind }, .. } = dispatch {
            let mut take = |objects| results.push(Message::Page { profile, action, objects });
            let listed = Box::pin(list(
                &self.client,
                &self.versions,
                &WatchScope::all(kind),
                &mut ObjectTrimmer::default(),
                &mut take,
            ))
            .await;
            // The watch of the kind logs and counts the undecodable objects.
            result = Some(listed.map_or(ActionResult::Unknown, |Listed { version, undecodable }| {
                results.push(Message::Listed { profile, action, kind, version });
                for event in Undecodable::events(&undecodable, version) {
                    results.push(Message::Event(event));
                }
                ActionResult::Ok { version: 0 }
            }));
        }
        results.push(dispatch.done(result));
    }

    /// Sends the request of an action as soon as the order and the limits permit. The result is `None` if no request is sent and the scheduler
    /// must not expect one.
    async fn execute(&self, dispatch: &Dispatch, mut ticket: Option<OrderTicket>) -> Option<ActionResult> {
        let Dispatch { action, uids, .. } = dispatch;
        if let Some(ticket) = &mut ticket {
            ticket.wait().await;
        }
        let changes_object = action.changes().is_some();
        if self.reporter.dry_run && (changes_object || matches!(action, Action::CreateWorkload { .. })) {
            // INVARIANT: no object ever reaches this version, so the scheduler assumes the change for the whole run and does not repeat it.
            return changes_object.then_some(ActionResult::Ok { version: u64::MAX });
        }
        if let (Action::Evict { .. } | Action::SoftEvict { .. }, Some(evictions)) = (action, &self.evictions) {
            evictions.until_ready().await;
        }
        let _permit = match action {
            // `send_events` limits the number of events.
            Action::EmitEvent { .. } => None,
            Action::SetCondition { .. } => match self.wait_out_debounce(ticket.as_mut()?).await {
                Some(permit) => Some(permit),
                None => return Some(ActionResult::Conflict),
            },
            _ => Some(self.in_flight.acquire().await.ok()?),
        };
        self.requests.until_ready().await;
        let (began, mut delay) = (Instant::now(), FIRST_RETRY_DELAY);
        for attempt in 1.. {
            // Boxed, so that the tasks of actions that still wait stay small.
            let response = tokio::time::timeout(REQUEST_TIMEOUT, Box::pin(self.request(action, uids))).await;
            let result = match response {
                Ok(Ok(result)) => result,
                // 429: the API server did not process the request, so a retry is safe.
                Ok(Err(error)) if has_code(&error, 429) && attempt < MAX_ATTEMPTS => {
                    tokio::time::sleep(delay).await;
                    delay *= 3;
                    continue;
                }
                Ok(Err(error)) => result_of_error(action, &error),
                Err(_) => ActionResult::Unknown,
            };
            self.metrics.record_action(action_label(action), result_label(&result), began.elapsed());
            return Some(result);
        }
        None
    }
}

fn result_of_error(action: &Action, error: &kube::Error) -> ActionResult {
    let result = match error {
        kube::Error::Api(status) => match status.code {
            404 => ActionResult::NotFound,
            409 => ActionResult::Conflict,
            400 | 401 | 403 | 405 | 422 => ActionResult::Forbidden(status.message.clone()),
            _ => ActionResult::Unknown,
        },
        _ => ActionResult::Unknown,
    };
    if matches!(result, ActionResult::Forbidden(_) | ActionResult::Unknown) {
        warn!(action = action_label(action), error = problem(error), "action failed");
    }
    result
}

/// The value of the metric label `action`.
fn action_label(action: &Action) -> &'static str {
    match action {
        Action::Bind { .. } => "bind",
        Action::Nominate { .. } => "nominate",
        Action::Mark { .. } => "mark",
        Action::Unmark { .. } => "unmark",
        Action::SetCondition { .. } => "condition",
        Action::Evict { .. } => "evict",
        Action::SoftEvict { .. } => "soft_evict",
        Action::CreateWorkload { .. } => "create_workload",
        Action::SetQuotaPending { .. } => "refuse",
        Action::Admit { .. } => "admit",
        Action::EvictWorkload { .. } => "evict_workload",
        Action::RequeueWorkload { .. } => "requeue",
        Action::FinishWorkload { .. } => "finish",
        Action::StartJob { .. } => "start_job",
        Action::SuspendJob { .. } => "suspend_job",
        Action::RestoreJob { .. } => "restore_job",
        Action::EmitEvent { .. } => "record",
        Action::GetObject { .. } => "read",
        Action::Relist { .. } => "list",
        Action::WakeAt { .. } => "timer",
    }
}

/// The value of the metric label `result`.
fn result_label(result: &ActionResult) -> &'static str {
    match result {
        ActionResult::Ok { .. } | ActionResult::Read(_) => "ok",
        ActionResult::Conflict => "conflict",
        ActionResult::NotFound => "not_found",
        ActionResult::Forbidden(_) => "forbidden",
        ActionResult::Unknown => "unknown",
    }
}

//! Carries out what the scheduler asks for: each action is a request, with preconditions that let it fail rather than change an object
//! that is not what it was taken for.

#[cfg(test)]
pub mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::HeaderValue;
use http::header::ACCEPT;
use jiff::Timestamp as Clock;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::core::Request;
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use reprieve_api::kinds::{Kind, Object};
use reprieve_loader::time::timestamp;
use reprieve_scheduler::action::{Action, EventReason, Target};
use reprieve_scheduler::effects;
use reprieve_scheduler::event::ActionResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::num::NonZeroU32;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::warn;

use crate::config::{ClientLimits, Configuration};
use crate::error::{has_code, problem};
use crate::metrics::Metrics;
use crate::ordering::OrderTicket;
use crate::watch::get;

/// How long an answer is waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the note of an event is at most.
const LONGEST_NOTE: usize = 1000;
/// For each so many requests that may be under way one event may be recorded at a time.
const REQUESTS_PER_EVENT_SLOT: usize = 5;
/// How long nothing is said while more than half of the requests that may be under way are.
const MAX_EVENT_DELAY: Duration = Duration::from_millis(100);
/// How long it is waited whether a condition still has to be said.
const CONDITION_DEBOUNCE: Duration = Duration::from_secs(1);
/// How often a request is made again that the server had no time for.
const ATTEMPTS: u32 = 4;
/// The form in which the server is to answer.
const METADATA_ONLY: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json");

/// What the scheduler acts with.
pub struct Executor {
    client: Client,
    identity: String,
    in_flight: Semaphore,
    /// With so many requests to spare there is time to talk.
    calm: usize,
    /// How many events are recorded at once then.
    max_event_budget: usize,
    /// Conditions are said one at a time.
    conditions: Semaphore,
    requests: DefaultDirectRateLimiter,
    evictions: Option<DefaultDirectRateLimiter>,
    dry_run: bool,
    metrics: Arc<Metrics>,
}

/// What sets the objects that an event names apart from others of their names.
#[derive(Clone, Debug, Default)]
pub struct EventObjectUids {
    pub about: Option<String>,
    pub related: Option<String>,
}

impl Executor {
    pub fn new(client: Client, config: &Configuration, identity: &str, dry_run: bool, metrics: Arc<Metrics>) -> Self {
        let ClientLimits { qps, burst, max_in_flight } = config.client_limits;
        let several = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            identity: identity.to_owned(),
            client,
            in_flight: Semaphore::new(max_in_flight),
            calm: max_in_flight.div_ceil(2),
            max_event_budget: (max_in_flight / REQUESTS_PER_EVENT_SLOT).max(1),
            conditions: Semaphore::new(1),
            requests: RateLimiter::direct(Quota::per_second(several(qps)).allow_burst(several(burst))),
            evictions: NonZeroU32::new(config.evictions_per_minute)
                .map(|limit| RateLimiter::direct(Quota::per_minute(limit))),
            dry_run,
            metrics,
        }
    }

    /// Carries out an action when its turn has come; `None` where no result is to come of it, because nothing is touched.
    pub async fn execute(
        &self,
        action: &Action,
        uids: EventObjectUids,
        mut turn: Option<OrderTicket>,
    ) -> Option<ActionResult> {
        if let Some(turn) = &mut turn {
            turn.wait().await;
        }
        let assumed = action.changes().is_some();
        if self.dry_run && (assumed || matches!(action, Action::CreateWorkload { .. })) {
            // INVARIANT: what is assumed and never shows stays assumed, so that nothing is decided twice.
            return assumed.then_some(ActionResult::Ok { version: u64::MAX });
        }
        if let (Action::Evict { .. } | Action::SoftEvict { .. }, Some(evictions)) = (action, &self.evictions) {
            evictions.until_ready().await;
        }
        let _permit = match action {
            // Whoever records sees to it that it is not too much.
            Action::EmitEvent { .. } => None,
            Action::SetCondition { .. } => match self.wait_out_debounce(turn.as_mut()?).await {
                Some(permit) => Some(permit),
                None => return Some(ActionResult::Conflict),
            },
            _ => Some(self.in_flight.acquire().await.ok()?),
        };
        self.requests.until_ready().await;
        let began = Instant::now();
        let mut pause = Duration::from_millis(100);
        for attempt in 1.. {
            // Boxed, so that those who wait for their turn take little room.
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, Box::pin(self.request(action, &uids))).await;
            let result = match answer {
                Ok(Ok(result)) => result,
                // The server has no time now, and nothing was done.
                Ok(Err(error)) if has_code(&error, 429) && attempt < ATTEMPTS => {
                    tokio::time::sleep(pause).await;
                    pause *= 3;
                    continue;
                }
                Ok(Err(error)) => failed(action, &error),
                Err(_) => ActionResult::Unknown,
            };
            self.metrics.acted(name(action), result_name(&result), began.elapsed());
            return Some(result);
        }
        None
    }

    /// How many events may be recorded at once: they let what is to be done go first, though not for ever.
    pub async fn words(&self) -> usize {
        let end = Instant::now() + MAX_EVENT_DELAY;
        while self.in_flight.available_permits() < self.calm {
            if Instant::now() >= end {
                return 1;
            }
            tokio::time::sleep(MAX_EVENT_DELAY / 10).await;
        }
        self.max_event_budget
    }

    /// What is over in a moment is not told.
    async fn wait_out_debounce(&self, turn: &mut OrderTicket) -> Option<SemaphorePermit<'_>> {
        let permit = async {
            tokio::time::sleep(CONDITION_DEBOUNCE).await;
            let permit = self.conditions.acquire().await.ok()?;
            self.words().await;
            Some(permit)
        };
        tokio::select! {
            biased;
            () = turn.superseded() => None,
            permit = permit => permit,
        }
    }

    async fn request(&self, action: &Action, uids: &EventObjectUids) -> Result<ActionResult, kube::Error> {
        match action {
            Action::Bind { pod, node } => {
                let binding = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": pod.name.name, "namespace": pod.name.namespace, "uid": pod.uid},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                self.post(&format!("{}/{}/binding", pods(pod), pod.name.name), &binding).await?;
                Ok(ActionResult::Ok { version: 0 })
            }
            Action::Nominate { .. }
            | Action::Mark { .. }
            | Action::Unmark { .. }
            | Action::SetCondition { .. }
            | Action::SoftEvict { .. } => self.patch_status(action).await,
            Action::Evict { pod } => {
                let preconditions =
                    Preconditions { uid: Some(pod.uid.clone()), resource_version: Some(pod.version.to_string()) };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                let request = Request::new(pods(pod)).delete(&pod.name.name, &params);
                let answer = self.ask(request).await?;
                Ok(ActionResult::Ok { version: answer.version().unwrap_or(pod.version + 1) })
            }
            Action::CreateWorkload { workload } => {
                let path = Kind::KueueWorkload.resource().path(workload.metadata.namespace.as_deref());
                let answer = self.post(&path, workload).await?;
                Ok(ActionResult::Ok { version: answer.version().unwrap_or(0) })
            }
            Action::SetQuotaPending { .. }
            | Action::Admit { .. }
            | Action::EvictWorkload { .. }
            | Action::RequeueWorkload { .. }
            | Action::FinishWorkload { .. }
            | Action::StartJob { .. }
            | Action::SuspendJob { .. }
            | Action::RestoreJob { .. } => self.change_work(action).await,
            Action::EmitEvent { about, related, reason, message } => {
                let about = about.kind.resource().reference(about, uids.about.clone());
                let related = related.as_ref().map(|key| key.kind.resource().reference(key, uids.related.clone()));
                self.record(*reason, message, &about, related.as_ref()).await?;
                Ok(ActionResult::Ok { version: 0 })
            }
            Action::GetObject { key } => {
                Ok(ActionResult::Read(get(&self.client, key.kind, &key.name.namespace, &key.name.name).await?))
            }
            Action::Relist { .. } | Action::WakeAt { .. } => Ok(ActionResult::Ok { version: 0 }),
        }
    }

    /// Changes a workload or a Job in the very version that is meant, and only the fields that differ.
    async fn change_work(&self, action: &Action) -> Result<ActionResult, kube::Error> {
        let Some((kind, target)) = action.changes() else { return Ok(ActionResult::NotFound) };
        let before = get(&self.client, kind, &target.name.namespace, &target.name.name).await?;
        if before.uid() != target.uid {
            return Ok(ActionResult::NotFound);
        }
        if before.version() != target.version {
            return Ok(ActionResult::Conflict);
        }
        let mut after = before.clone();
        if !effects::apply(action, &mut after, timestamp(Clock::now())) {
            return Ok(ActionResult::Conflict);
        }
        let Some(Value::Object(mut patch)) = difference(&value_of(&before), &value_of(&after)) else {
            return Ok(ActionResult::Ok { version: target.version });
        };
        patch.insert("metadata".to_owned(), json!({"uid": target.uid, "resourceVersion": target.version.to_string()}));
        let path = Request::new(kind.resource().path(Some(&target.name.namespace)));
        let (params, patch) = (PatchParams::default(), Patch::Merge(Value::Object(patch)));
        let request = match kind {
            Kind::KueueWorkload => path.patch_subresource("status", &target.name.name, &params, &patch),
            _ => path.patch(&target.name.name, &params, &patch),
        };
        self.changed(request).await
    }

    /// Patches the status of a pod or a PodGroup, and with it a pod's labels and annotations. Only the object of that uid is changed.
    async fn patch_status(&self, action: &Action) -> Result<ActionResult, kube::Error> {
        let (Some((kind, target)), Some(mut patch)) = (action.changes(), effects::patch(action)) else {
            return Ok(ActionResult::NotFound);
        };
        patch["metadata"]["uid"] = json!(target.uid);
        let path = Request::new(kind.resource().path(Some(&target.name.namespace)));
        let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
        self.changed(path.patch_subresource("status", &target.name.name, &params, &patch)).await
    }

    /// Makes a request that changes an object.
    async fn changed(&self, request: BuiltRequest) -> Result<ActionResult, kube::Error> {
        let answer = self.ask(request).await?;
        Ok(ActionResult::Ok { version: answer.version().unwrap_or(0) })
    }

    /// Makes a request. Of the answer nothing but the metadata is asked for.
    async fn ask(&self, request: BuiltRequest) -> Result<ResponseMeta, kube::Error> {
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        request.headers_mut().insert(ACCEPT, METADATA_ONLY);
        self.client.request(request).await
    }

    async fn post(&self, path: &str, body: &impl Serialize) -> Result<ResponseMeta, kube::Error> {
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        self.ask(Request::new(path).create(&PostParams::default(), body)).await
    }

    async fn record(
        &self,
        reason: EventReason,
        message: &str,
        about: &ObjectReference,
        related: Option<&ObjectReference>,
    ) -> Result<(), kube::Error> {
        let note = if self.dry_run { format!("dry run: {message}") } else { message.to_owned() };
        let type_ = match reason {
            EventReason::Scheduled | EventReason::Preempting => "Normal",
            _ => "Warning",
        };
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let now = Clock::now();
        let name = format!("{}.{:x}", about.name.as_deref().unwrap_or_default(), now.as_nanosecond());
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": format!("{now:.6}"),
            "reportingController": "reprieve",
            "reportingInstance": self.identity,
            "type": type_,
            "action": "Scheduling",
            "reason": reason.as_str(),
            "note": note.chars().take(LONGEST_NOTE).collect::<String>(),
            "regarding": about,
            "related": related,
        });
        self.post(&format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"), &event).await?;
        Ok(())
    }
}

fn pods(pod: &Target) -> String {
    Kind::Pod.resource().path(Some(&pod.name.namespace))
}

fn value_of(object: &Object) -> Value {
    let value = match object {
        Object::KueueWorkload(workload) => serde_json::to_value(&**workload),
        Object::Job(job) => serde_json::to_value(&**job),
        _ => Ok(Value::Null),
    };
    value.unwrap_or_default()
}

/// A request that may have been put together wrongly.
type BuiltRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// What matters of an answer.
#[derive(Deserialize)]
struct ResponseMeta {
    #[serde(default)]
    metadata: ListMeta,
}

impl ResponseMeta {
    fn version(&self) -> Option<u64> {
        self.metadata.resource_version.as_ref()?.parse().ok()
    }
}

/// The merge patch that makes one of the other; `None` where they are the same.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        _ if before == after => None,
        (Value::Object(before), Value::Object(after)) => {
            let mut patch = Map::new();
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            for (key, value) in after {
                if let Some(value) = difference(before.get(key).unwrap_or(&Value::Null), value) {
                    patch.insert(key.clone(), value);
                }
            }
            Some(Value::Object(patch))
        }
        _ => Some(after.clone()),
    }
}

fn failed(action: &Action, error: &kube::Error) -> ActionResult {
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
        warn!(action = name(action), error = problem(error), "an action failed");
    }
    result
}

/// An action in one word.
pub fn name(action: &Action) -> &'static str {
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

fn result_name(result: &ActionResult) -> &'static str {
    match result {
        ActionResult::Ok { .. } | ActionResult::Read(_) => "ok",
        ActionResult::Conflict => "conflict",
        ActionResult::NotFound => "not_found",
        ActionResult::Forbidden(_) => "forbidden",
        ActionResult::Unknown => "unknown",
    }
}

//! Lists and watches the objects of one kind, and sends every change to the event queue, in order. An interrupted watch continues from its
//! last version; if the API server no longer has that version, the kind is listed again.

#[cfg(test)]
mod damaged_lines;
mod line;
mod list;
mod scope;
mod undecodable;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::AsyncBufReadExt;
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use kube::Client;
use kube::core::params::WatchParams;
use reprieve_api::Kind;
use reprieve_scheduler::Event;
use tracing::{debug, warn};

use self::line::{LineContent, parse_line};
pub use self::undecodable::Undecodable;
use self::undecodable::UndecodableObjects;
use crate::error::{has_code, problem};
use crate::event_queue::EventQueue;
use crate::messages::Message;
use crate::metrics::Metrics;
use crate::queue_configuration::QueueConfiguration;
use crate::readiness::{LastContact, Readiness, Source};
use crate::served::ServedVersions;
use crate::trim::ObjectTrimmer;

pub use self::list::{Listed, can_run_without, get, is_unknown_kind, list, list_all, probe};
pub use self::scope::WatchScope;

/// The capacity of the line buffer that is kept between lines.
const KEPT_LINE_CAPACITY: usize = 64 << 10;
/// The API server ends a watch after this time. A connection that is silent for longer, plus the grace, is dead.
const WATCH_SECONDS: u32 = 240;
const GRACE_SECONDS: u64 = 20;
const MIN_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// Lists and watches objects until the task is aborted. `queues` decides which version of the ConfigMap with the queues is in force.
pub async fn watch(
    (client, versions): (Client, Arc<ServedVersions>),
    scope: WatchScope,
    queue: Arc<EventQueue>,
    metrics: Arc<Metrics>,
    queues: Option<QueueConfiguration>,
) {
    let kind = scope.kind;
    let undecodable = UndecodableObjects::new(metrics.undecodable(kind));
    let (contact, readiness) = (metrics.last_contact(kind), Arc::clone(&metrics.readiness));
    let trimmer = ObjectTrimmer::default();
    Watch {
        client,
        versions,
        kind,
        scope,
        queue,
        queues,
        contact,
        readiness,
        trimmer,
        undecodable,
        all_nodes_undecodable: false,
    }
    .run()
    .await;
}

struct Watch {
    client: Client,
    versions: Arc<ServedVersions>,
    kind: Kind,
    scope: WatchScope,
    queue: Arc<EventQueue>,
    queues: Option<QueueConfiguration>,
    contact: LastContact,
    readiness: Arc<Readiness>,
    trimmer: ObjectTrimmer,
    undecodable: UndecodableObjects,
    /// Whether the last list had nodes, and none of them can be decoded. Then this replica is not ready, because a decision without nodes
    /// would be wrong.
    all_nodes_undecodable: bool,
}

enum WatchEnd {
    /// The watch can continue from its last version.
    Interrupted,
    /// The API server no longer has the version.
    Expired,
    /// A line cannot be decoded, so that a change may be missing.
    Unreadable,
}

impl Watch {
    async fn run(&mut self) {
        let mut backoff = MIN_BACKOFF;
        loop {
            let mut objects = Vec::new();
            match list(&self.client, &self.versions, &self.scope, &mut self.trimmer, &mut |page| objects.extend(page))
                .await
            {
                Ok(Listed { version, undecodable }) => {
                    backoff = MIN_BACKOFF;
                    self.contact.touch();
                    self.listed(objects.len(), undecodable.len());
                    debug!(kind = ?self.kind, objects = objects.len(), version, "listed");
                    self.deliver(Event::Listed { kind: self.kind, objects, version }).await;
                    // Messages that are pushed without a pause are delivered together.
                    for event in Undecodable::events(&undecodable, version) {
                        self.queue.push(Message::Event(event));
                    }
                    self.undecodable.replace_all(undecodable);
                    self.watch_until_expired(version).await;
                }
                Err(error) if can_run_without(self.kind, &error) => {
                    self.contact.touch();
                    self.listed(0, 0);
                    self.queue.push(Message::Event(Event::Listed { kind: self.kind, objects: Vec::new(), version: 0 }));
                    tokio::time::sleep(MAX_BACKOFF).await;
                }
                Err(error) => {
                    warn!(kind = ?self.kind, error = problem(&error), "cannot list");
                    self.readiness.set_unreadable(Source::Kind(self.kind), problem(&error));
                    tokio::time::sleep(backoff).await;
                    backoff = MAX_BACKOFF.min(backoff * 2);
                }
            }
        }
    }

    async fn deliver(&mut self, event: Event) {
        let Some(queues) = &mut self.queues else { return self.queue.push(Message::Event(event)) };
        let event = queues.replace_config_map(event).await;
        self.queue.push(Message::Event(event));
        queues.store_copy().await;
    }

    /// Notes the numbers of objects of a list that can and cannot be decoded.
    fn listed(&mut self, decoded: usize, undecodable: usize) {
        self.all_nodes_undecodable = self.kind == Kind::Node && decoded == 0 && undecodable > 0;
        if self.all_nodes_undecodable {
            let why = format!("none of the {undecodable} nodes can be decoded");
            self.readiness.set_unreadable(Source::Kind(self.kind), why);
        }
        self.set_readable();
    }

    /// Notes that the last request for the kind succeeded.
    fn set_readable(&self) {
        if !self.all_nodes_undecodable {
            self.readiness.set_readable(Source::Kind(self.kind));
        }
    }

    /// Watches from a version on, until the kind has to be listed again.
    async fn watch_until_expired(&mut self, mut version: u64) {
        let mut backoff = MIN_BACKOFF;
        loop {
            let (before, began) = (version, Instant::now());
            match self.watch_once(&mut version).await {
                Ok(WatchEnd::Expired) => {
                    warn!(kind = ?self.kind, version, "the API server no longer has this version; listing again");
                    return;
                }
                Ok(WatchEnd::Unreadable) => return tokio::time::sleep(MAX_BACKOFF).await,
                Ok(WatchEnd::Interrupted) => {}
                Err(error) => {
                    warn!(kind = ?self.kind, error = problem(&error), "watch interrupted");
                    self.readiness.set_unreadable(Source::Kind(self.kind), problem(&error));
                }
            }
            // A watch that lasted long and had no events is healthy.
            if version == before && began.elapsed() < MAX_BACKOFF {
                tokio::time::sleep(backoff).await;
                backoff = MAX_BACKOFF.min(backoff * 2);
            } else {
                backoff = MIN_BACKOFF;
            }
        }
    }

    async fn watch_once(&mut self, version: &mut u64) -> Result<WatchEnd, kube::Error> {
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(WATCH_SECONDS),
            field_selector: self.scope.field_selector(),
            ..WatchParams::default()
        };
        let mut request = self
            .scope
            .request(&self.versions)
            .watch(&params, &version.to_string())
            .map_err(kube::Error::BuildRequest)?;
        // The decompression layer cannot decode a stream that the API server flushes after each line.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let stream = match self.client.request_stream(request).await {
            Ok(stream) => stream,
            Err(error) if has_code(&error, 410) => return Ok(WatchEnd::Expired),
            Err(error) => return Err(error),
        };
        self.set_readable();
        let mut stream = std::pin::pin!(stream);
        let max_silence = Duration::from_secs(u64::from(WATCH_SECONDS) + GRACE_SECONDS);
        let mut line = Vec::new();
        loop {
            line.clear();
            line.shrink_to(KEPT_LINE_CAPACITY);
            let Ok(read) = tokio::time::timeout(max_silence, stream.read_until(b'\n', &mut line)).await else {
                return Ok(WatchEnd::Interrupted);
            };
            // The last line may be incomplete.
            if read.map_err(kube::Error::ReadEvents)? == 0 || !line.ends_with(b"\n") {
                return Ok(WatchEnd::Interrupted);
            }
            self.contact.touch();
            match parse_line(self.kind, &line, &mut self.trimmer, version) {
                Ok(LineContent::Event(event)) => {
                    if matches!(event, Event::Upserted(_)) && std::mem::take(&mut self.all_nodes_undecodable) {
                        self.set_readable();
                    }
                    self.undecodable.remove(&event);
                    self.deliver(event).await;
                }
                Ok(LineContent::Undecodable(object)) => {
                    self.queue.push(Message::Event(object.event(0)));
                    self.undecodable.add(object);
                }
                Ok(LineContent::Nothing) => {}
                Err(error) if has_code(&error, 410) => return Ok(WatchEnd::Expired),
                Err(error @ kube::Error::SerdeError(_)) => {
                    warn!(kind = ?self.kind, error = problem(&error), "cannot decode a line of the watch; listing again");
                    return Ok(WatchEnd::Unreadable);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

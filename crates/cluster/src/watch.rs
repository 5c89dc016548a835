//! Lists and watches the objects of one kind, and sends every change to the event queue, in order. An interrupted watch continues from its
//! last version; if the API server no longer has that version, the kind is listed again.

#[cfg(test)]
mod damaged_lines;
mod line;
mod list;
mod undecodable;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures::AsyncBufReadExt;
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use kube::Client;
use kube::core::Request;
use kube::core::params::WatchParams;
use prometheus_client::metrics::gauge::Gauge;
use reprieve_api::Kind;
use reprieve_scheduler::Event;
use tracing::{debug, warn};

use self::line::{LineContent, parse_line};
use self::list::selector;
pub use self::undecodable::Undecodable;
use self::undecodable::UndecodableObjects;
use crate::error::{has_code, problem};
use crate::event_queue::EventQueue;
use crate::messages::Message;
use crate::trim::ObjectTrimmer;

pub use self::list::{Listed, get, is_dispensable, is_unknown_kind, list, list_all, probe};

/// The capacity of the line buffer that is kept between lines.
const KEPT_LINE_CAPACITY: usize = 64 << 10;
/// The API server ends a watch after this time. A connection that is silent for longer, plus the grace, is dead.
const WATCH_SECONDS: u32 = 240;
const GRACE_SECONDS: u64 = 20;
const MIN_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// The time of the last response of the API server about a kind, in milliseconds since the epoch; 0 before the first.
#[derive(Clone, Debug, Default)]
pub struct LastContact(Arc<AtomicI64>);

impl LastContact {
    fn touch(&self) {
        self.0.store(jiff::Timestamp::now().as_millisecond(), Ordering::Relaxed);
    }

    /// Seconds since the last response; `None` before the first.
    pub fn age_seconds(&self) -> Option<f64> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            last => Some((jiff::Timestamp::now().as_millisecond() - last).max(0) as f64 / 1000.0),
        }
    }
}

/// Lists and watches a kind until the task is aborted.
pub async fn watch(client: Client, kind: Kind, queue: Arc<EventQueue>, contact: LastContact, undecodable: Gauge) {
    let undecodable = UndecodableObjects::new(undecodable);
    Watch { client, kind, queue, contact, trimmer: ObjectTrimmer::default(), undecodable }.run().await;
}

struct Watch {
    client: Client,
    kind: Kind,
    queue: Arc<EventQueue>,
    contact: LastContact,
    trimmer: ObjectTrimmer,
    undecodable: UndecodableObjects,
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
            match list(&self.client, self.kind, &mut self.trimmer, &mut |page| objects.extend(page)).await {
                Ok(Listed { version, undecodable }) => {
                    backoff = MIN_BACKOFF;
                    self.contact.touch();
                    debug!(kind = ?self.kind, objects = objects.len(), version, "listed");
                    self.queue.push(Message::Event(Event::Listed { kind: self.kind, objects, version }));
                    // Messages that are pushed without a pause are delivered together.
                    for event in Undecodable::events(&undecodable, version) {
                        self.queue.push(Message::Event(event));
                    }
                    self.undecodable.replace_all(undecodable);
                    self.watch_until_expired(version).await;
                }
                Err(error) if is_dispensable(self.kind, &error) => {
                    self.contact.touch();
                    self.queue.push(Message::Event(Event::Listed { kind: self.kind, objects: Vec::new(), version: 0 }));
                    tokio::time::sleep(MAX_BACKOFF).await;
                }
                Err(error) => {
                    warn!(kind = ?self.kind, error = problem(&error), "cannot list");
                    tokio::time::sleep(backoff).await;
                    backoff = MAX_BACKOFF.min(backoff * 2);
                }
            }
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
                Err(error) => warn!(kind = ?self.kind, error = problem(&error), "watch interrupted"),
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
            field_selector: selector(self.kind),
            ..WatchParams::default()
        };
        let path = Request::new(self.kind.resource().path(None));
        let mut request = path.watch(&params, &version.to_string()).map_err(kube::Error::BuildRequest)?;
        // The decompression layer cannot decode a stream that the API server flushes after each line.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let stream = match self.client.request_stream(request).await {
            Ok(stream) => stream,
            Err(error) if has_code(&error, 410) => return Ok(WatchEnd::Expired),
            Err(error) => return Err(error),
        };
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
                    self.undecodable.remove(&event);
                    self.queue.push(Message::Event(event));
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

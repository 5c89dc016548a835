//! Lists the objects of a kind and watches them: what happens to them becomes events, in order. After an interruption it goes on from
//! where it was; where the server has forgotten that, it lists anew.

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
use reprieve_api::kinds::Kind;
use reprieve_scheduler::event::Event;
use tracing::{debug, warn};

use self::line::{Told, parse_line};
use self::list::selector;
use self::undecodable::LeftOut;
use crate::error::{has_code, problem};
use crate::event_queue::EventQueue;
use crate::messages::Message;
use crate::trim::ObjectTrimmer;

pub use self::list::{Listed, get, is_dispensable, is_unknown_kind, list, list_all, probe};

/// Room for a line that is kept for the next.
const LONG_LINE: usize = 64 << 10;
/// How long a watch lasts; silence for longer than that, and a little, is a dead connection.
const WATCH_SECONDS: u32 = 240;
const GRACE_SECONDS: u64 = 20;
/// Between attempts: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// When the last word of the API about a kind came.
#[derive(Clone, Debug, Default)]
pub struct LastContact(Arc<AtomicI64>);

impl LastContact {
    fn beat(&self) {
        self.0.store(jiff::Timestamp::now().as_millisecond(), Ordering::Relaxed);
    }

    /// How long ago that was; `None` while nothing was heard at all.
    pub fn age_seconds(&self) -> Option<f64> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            last => Some((jiff::Timestamp::now().as_millisecond() - last).max(0) as f64 / 1000.0),
        }
    }
}

/// Watches a kind for ever.
pub async fn watch(client: Client, kind: Kind, inbox: Arc<EventQueue>, pulse: LastContact, undecodable: Gauge) {
    let left_out = LeftOut::new(undecodable);
    Watch { client, kind, inbox, pulse, slim: ObjectTrimmer::default(), left_out }.run().await;
}

struct Watch {
    client: Client,
    kind: Kind,
    inbox: Arc<EventQueue>,
    pulse: LastContact,
    slim: ObjectTrimmer,
    left_out: LeftOut,
}

/// How a watch ended.
enum WatchEnd {
    /// It can go on from where it was.
    Interrupted,
    /// The server has forgotten where it was.
    Forgotten,
    /// A line cannot be read, so that nobody knows what was missed.
    Unreadable,
}

impl Watch {
    async fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut objects = Vec::new();
            match list(&self.client, self.kind, &mut self.slim, &mut |page| objects.extend(page)).await {
                Ok(Listed { version, undecodable }) => {
                    pause = FIRST_PAUSE;
                    self.pulse.beat();
                    self.left_out.listed(undecodable);
                    debug!(kind = ?self.kind, objects = objects.len(), version, "listed");
                    self.inbox.push(Message::Event(Event::Listed { kind: self.kind, objects, version }));
                    self.watch_until_expired(version).await;
                }
                Err(error) if is_dispensable(self.kind, &error) => {
                    self.pulse.beat();
                    self.inbox.push(Message::Event(Event::Listed { kind: self.kind, objects: Vec::new(), version: 0 }));
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
                Err(error) => {
                    warn!(kind = ?self.kind, error = problem(&error), "cannot list");
                    tokio::time::sleep(pause).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    /// Watches from a version on, until the server has forgotten it.
    async fn watch_until_expired(&mut self, mut version: u64) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (before, began) = (version, Instant::now());
            match self.watch_once(&mut version).await {
                Ok(WatchEnd::Forgotten) => {
                    warn!(kind = ?self.kind, version, "the server has forgotten this version; all are listed anew");
                    return;
                }
                Ok(WatchEnd::Unreadable) => return tokio::time::sleep(LONGEST_PAUSE).await,
                Ok(WatchEnd::Interrupted) => {}
                Err(error) => warn!(kind = ?self.kind, error = problem(&error), "the watch was interrupted"),
            }
            // One that lasted for long ended because nothing happened.
            if version == before && began.elapsed() < LONGEST_PAUSE {
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            } else {
                pause = FIRST_PAUSE;
            }
        }
    }

    async fn watch_once(&mut self, at: &mut u64) -> Result<WatchEnd, kube::Error> {
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(WATCH_SECONDS),
            field_selector: selector(self.kind),
            ..WatchParams::default()
        };
        let path = Request::new(self.kind.resource().path(None));
        let mut request = path.watch(&params, &at.to_string()).map_err(kube::Error::BuildRequest)?;
        // Each line would be compressed by itself, and not all that takes it apart knows that.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let stream = match self.client.request_stream(request).await {
            Ok(stream) => stream,
            Err(error) if has_code(&error, 410) => return Ok(WatchEnd::Forgotten),
            Err(error) => return Err(error),
        };
        let mut stream = std::pin::pin!(stream);
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS) + GRACE_SECONDS);
        let mut line = Vec::new();
        loop {
            line.clear();
            line.shrink_to(LONG_LINE);
            let Ok(read) = tokio::time::timeout(silence, stream.read_until(b'\n', &mut line)).await else {
                return Ok(WatchEnd::Interrupted);
            };
            // The last line may have been cut off.
            if read.map_err(kube::Error::ReadEvents)? == 0 || !line.ends_with(b"\n") {
                return Ok(WatchEnd::Interrupted);
            }
            self.pulse.beat();
            match parse_line(self.kind, &line, &mut self.slim, at) {
                Ok(Told::Event(event)) => {
                    self.left_out.forget(&event);
                    self.inbox.push(Message::Event(event));
                }
                Ok(Told::Undecodable(object)) => self.left_out.add(object),
                Ok(Told::Nothing) => {}
                Err(error) if has_code(&error, 410) => return Ok(WatchEnd::Forgotten),
                Err(error @ kube::Error::SerdeError(_)) => {
                    warn!(kind = ?self.kind, error = problem(&error), "a line of the watch cannot be read; all are listed anew");
                    return Ok(WatchEnd::Unreadable);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

//! Lists the objects of a kind and watches them: what happens to them becomes events, in order. After an interruption it goes on from
//! where it was; where the server has forgotten that, it lists anew.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures::AsyncBufReadExt;
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::core::params::{ListParams, WatchParams};
use kube::core::watch::BookmarkMeta;
use kube::core::{Request, Status};
use reprieve_objects::object::{Kind, Object};
use reprieve_scheduler::event::Event;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tracing::{debug, warn};

use crate::error::{Error, problem};
use crate::inbox::Inbox;
use crate::messages::Input;
use crate::resources::{QUEUES, resource};
use crate::slim::Slim;

/// How many objects are read at a time.
const PAGE: u32 = 500;
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
pub struct Pulse(Arc<AtomicI64>);

impl Pulse {
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
pub async fn watch(client: Client, kind: Kind, inbox: Arc<Inbox>, pulse: Pulse) {
    Watch { client, kind, inbox, pulse, slim: Slim::default() }.run().await;
}

/// One object, as the API has it.
pub async fn get(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<Object, kube::Error> {
    let request = Request::new(resource(kind).path(Some(namespace)));
    let request = request.get(name, &Default::default()).map_err(kube::Error::BuildRequest)?;
    understood(kind, &client.request_text(request).await?, &mut Slim::default())
}

fn understood(kind: Kind, text: &str, slim: &mut Slim) -> Result<Object, kube::Error> {
    Object::from_json(kind, text).map(|object| slim.keep(object)).map_err(kube::Error::SerdeError)
}

/// A page of a list. Each object is understood and slimmed by itself: all of a page in full take many times as much.
#[derive(Deserialize)]
struct Page<'t> {
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

impl Page<'_> {
    fn objects(&self, kind: Kind, slim: &mut Slim) -> Result<Vec<Object>, kube::Error> {
        self.items.iter().flatten().map(|item| understood(kind, item.get(), slim)).collect()
    }
}

/// Reads all objects of a kind, page by page, and says as of which version.
pub async fn list(
    client: &Client,
    kind: Kind,
    slim: &mut Slim,
    take: &mut (dyn FnMut(Vec<Object>) + Send),
) -> Result<u64, kube::Error> {
    let path = Request::new(resource(kind).path(None));
    let mut params = ListParams { limit: Some(PAGE), field_selector: selector(kind), ..ListParams::default() };
    loop {
        let request = path.list(&params).map_err(kube::Error::BuildRequest)?;
        let text = client.request_text(request).await?;
        let page: Page = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        take(page.objects(kind, slim)?);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(page.metadata.resource_version.as_deref().map_or(0, version));
        }
    }
}

fn selector(kind: Kind) -> Option<String> {
    (kind == Kind::ConfigMap).then(|| format!("metadata.name={QUEUES}"))
}

fn version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Whether the API has no such kind.
pub fn is_unknown_kind(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether there is no right to do it.
fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

struct Watch {
    client: Client,
    kind: Kind,
    inbox: Arc<Inbox>,
    pulse: Pulse,
    slim: Slim,
}

/// How a watch ended.
enum End {
    /// It can go on from where it was.
    Interrupted,
    /// The server has forgotten where it was.
    Forgotten,
    /// An object cannot be read.
    Unreadable,
}

impl Watch {
    async fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut objects = Vec::new();
            match list(&self.client, self.kind, &mut self.slim, &mut |page| objects.extend(page)).await {
                Ok(version) => {
                    pause = FIRST_PAUSE;
                    self.pulse.beat();
                    debug!(kind = ?self.kind, objects = objects.len(), version, "listed");
                    self.inbox.put(Input::Event(Event::Listed { kind: self.kind, objects, version }));
                    self.follow(version).await;
                }
                Err(error) if is_unknown_kind(&error) => {
                    self.pulse.beat();
                    self.inbox.put(Input::Event(Event::Listed { kind: self.kind, objects: Vec::new(), version: 0 }));
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
    async fn follow(&mut self, mut version: u64) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (before, began) = (version, Instant::now());
            match self.follow_once(&mut version).await {
                Ok(End::Forgotten) => {
                    warn!(kind = ?self.kind, version, "the server has forgotten this version; all are listed anew");
                    return;
                }
                Ok(End::Unreadable) => return tokio::time::sleep(LONGEST_PAUSE).await,
                Ok(End::Interrupted) => {}
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

    async fn follow_once(&mut self, at: &mut u64) -> Result<End, kube::Error> {
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(WATCH_SECONDS),
            field_selector: selector(self.kind),
            ..WatchParams::default()
        };
        let path = Request::new(resource(self.kind).path(None));
        let mut request = path.watch(&params, &at.to_string()).map_err(kube::Error::BuildRequest)?;
        // Each line would be compressed by itself, and not all that takes it apart knows that.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let stream = match self.client.request_stream(request).await {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if status.code == 410 => return Ok(End::Forgotten),
            Err(error) => return Err(error),
        };
        let mut stream = std::pin::pin!(stream);
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS) + GRACE_SECONDS);
        let mut line = Vec::new();
        loop {
            line.clear();
            line.shrink_to(LONG_LINE);
            let Ok(read) = tokio::time::timeout(silence, stream.read_until(b'\n', &mut line)).await else {
                return Ok(End::Interrupted);
            };
            // The last line may have been cut off.
            if read.map_err(kube::Error::ReadEvents)? == 0 || !line.ends_with(b"\n") {
                return Ok(End::Interrupted);
            }
            self.pulse.beat();
            match told(self.kind, &line, &mut self.slim, at) {
                Ok(Some(event)) => self.inbox.put(Input::Event(event)),
                Ok(None) => {}
                Err(kube::Error::Api(status)) if status.code == 410 => return Ok(End::Forgotten),
                Err(error @ kube::Error::SerdeError(_)) => {
                    warn!(kind = ?self.kind, error = problem(&error), "an object cannot be read");
                    return Ok(End::Unreadable);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What a line of a watch says, and as of which version; nothing but the version, at times.
fn told(kind: Kind, line: &[u8], slim: &mut Slim, at: &mut u64) -> Result<Option<Event>, kube::Error> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    match read(kind, line).map_err(|error| match serde_json::from_slice(line) {
        Ok(status @ Status { code: 1.., .. }) => kube::Error::Api(status.boxed()),
        _ => kube::Error::SerdeError(error),
    })? {
        Line::Is(object) => {
            *at = object.version();
            Ok(Some(Event::Changed(slim.keep(object))))
        }
        Line::Was(object) => {
            *at = object.version();
            Ok(Some(Event::Gone { key: object.key(), version: object.version() }))
        }
        Line::Bookmark(bookmark) => {
            *at = version(&bookmark.metadata.resource_version);
            Ok(None)
        }
        Line::Refusal(status) => Err(kube::Error::Api(status)),
    }
}

fn read(kind: Kind, line: &[u8]) -> Result<Line, serde_json::Error> {
    let text = std::str::from_utf8(line).map_err(serde_json::Error::custom)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let line = LineOf(kind).deserialize(&mut json)?;
    json.end().map(|()| line)
}

/// A line of a watch.
enum Line {
    /// The object as it is from now on.
    Is(Object),
    /// The object as it was last.
    Was(Object),
    Bookmark(Bookmark),
    Refusal(Box<Status>),
}

/// Reads a line about an object of this kind. What happened to the object is said first, as a rule: then it is read in one go.
struct LineOf(Kind);

/// Reads an object of this kind, to which this happened.
struct Happened<'l>(Kind, &'l str);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Part {
    Type,
    Object,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for LineOf {
    type Value = Line;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Line, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LineOf {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what happened, and to which object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let (mut type_, mut object, mut line) = (None, None, None);
        while let Some(part) = map.next_key()? {
            match (part, type_) {
                (Part::Type, _) => type_ = Some(map.next_value()?),
                (Part::Object, Some(type_)) => line = Some(map.next_value_seed(Happened(self.0, type_))?),
                (Part::Object, None) => object = Some(map.next_value::<&RawValue>()?),
                (Part::Other, _) => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (line, type_, object) {
            (Some(line), ..) => Ok(line),
            (None, Some(type_), Some(object)) => {
                let mut json = serde_json::Deserializer::from_str(object.get());
                Happened(self.0, type_).deserialize(&mut json).map_err(A::Error::custom)
            }
            (None, None, _) => Err(A::Error::missing_field("type")),
            (None, Some(_), None) => Err(A::Error::missing_field("object")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Happened<'_> {
    type Value = Line;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Line, D::Error> {
        let Self(kind, type_) = self;
        match type_ {
            "ADDED" | "MODIFIED" => kind.deserialize(deserializer).map(Line::Is),
            "DELETED" => kind.deserialize(deserializer).map(Line::Was),
            "BOOKMARK" => Bookmark::deserialize(deserializer).map(Line::Bookmark),
            _ => Box::deserialize(deserializer).map(Line::Refusal),
        }
    }
}

/// How far the server is, though nothing happened.
#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

/// All objects of these kinds, or why they cannot be read. Kinds that the cluster does not know have none.
pub async fn list_all(client: &Client, kinds: &[Kind], optional: &[Kind]) -> Result<(Vec<Object>, Vec<String>), Error> {
    let lists = kinds.iter().map(|&kind| async move {
        let mut objects = Vec::new();
        match list(client, kind, &mut Slim::default(), &mut |page| objects.extend(page)).await {
            Ok(_) => Ok((objects, None)),
            Err(error) if is_unknown_kind(&error) => Ok((Vec::new(), None)),
            Err(error) if is_forbidden(&error) && optional.contains(&kind) => {
                let plural = resource(kind).plural;
                let warning = format!(
                    "no right to list {plural}: what they add to submitted pods and to workloads is not counted; bind the \
                     ClusterRole reprieve-plan of deploy/manifests"
                );
                Ok((Vec::new(), Some(warning)))
            }
            Err(error) => Err(Error::api(format!("reading {}", resource(kind).plural), &error)),
        }
    });
    let (objects, warnings): (Vec<_>, Vec<_>) = futures::future::try_join_all(lists).await?.into_iter().unzip();
    Ok((objects.into_iter().flatten().collect(), warnings.into_iter().flatten().collect()))
}

/// Whether the objects of a kind can be listed.
pub async fn probe(client: &Client, kind: Kind) -> Result<(), kube::Error> {
    let params = ListParams { limit: Some(1), field_selector: selector(kind), ..ListParams::default() };
    let request = Request::new(resource(kind).path(None)).list(&params).map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_is_read_and_slimmed() {
        let read = |page: serde_json::Value| -> Result<Vec<Object>, String> {
            let text = page.to_string();
            let page: Page = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            page.objects(Kind::Node, &mut Slim::default()).map_err(|error| error.to_string())
        };
        let node = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}});
        for (items, expected) in [(json!([node]), 1), (json!([]), 0), (json!(null), 0)] {
            let objects = read(json!({"metadata": {"resourceVersion": "7"}, "items": items})).expect("a page");
            assert_eq!(objects.len(), expected);
            assert!(objects.iter().all(|object| object.metadata().managed_fields.is_none()));
        }
        assert_eq!(read(json!({"metadata": {}})), Ok(Vec::new()));
        let wrong = read(json!({"metadata": {}, "items": ["a"]})).expect_err("no node");
        assert!(wrong.contains("invalid type: string \"a\""), "{wrong}");
    }

    #[test]
    fn a_line_says_what_happened_or_why_no_more_is_said() {
        let told = |line: &str| {
            let mut at = 0;
            let event = told(Kind::Namespace, line.as_bytes(), &mut Slim::default(), &mut at);
            let said = match event {
                Ok(None) => "nothing".to_owned(),
                Ok(Some(Event::Changed(object))) => format!("changed {}", object.key().name.name),
                Ok(Some(Event::Gone { key, .. })) => format!("gone {}", key.name.name),
                Ok(Some(_)) => "something else".to_owned(),
                Err(kube::Error::Api(status)) => format!("code {}", status.code),
                Err(_) => "unreadable".to_owned(),
            };
            (said, at)
        };
        let object = r#"{"metadata": {"name": "a", "resourceVersion": "7"}}"#;
        for (line, said, at) in [
            (format!(r#"{{"type": "ADDED", "object": {object}}}"#), "changed a", 7),
            (format!(r#"{{"object": {object}, "type": "MODIFIED"}}"#), "changed a", 7),
            (format!(r#"{{"type": "DELETED", "object": {object}}}"#), "gone a", 7),
            (format!(r#"{{"type": "ADDED", "at": 1, "object": {object}}}"#), "changed a", 7),
            (r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}"#.to_owned(), "nothing", 9),
            (r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410}}"#.to_owned(), "code 410", 0),
            (r#"{"kind": "Status", "status": "Failure", "code": 500}"#.to_owned(), "code 500", 0),
            (" \n".to_owned(), "nothing", 0),
            (r#"{"type": "ADDED", "object": 7}"#.to_owned(), "unreadable", 0),
            (r#"{"type": "ADDED"}"#.to_owned(), "unreadable", 0),
            (format!(r#"{{"object": {object}}}"#), "unreadable", 0),
            (format!(r#"{{"type": "ADDED", "object": {object}}}}}"#), "unreadable", 0),
            ("{}".to_owned(), "unreadable", 0),
        ] {
            assert_eq!(told(&line), (said.to_owned(), at), "{line}");
        }
    }
}

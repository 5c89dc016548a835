//! Lists the objects of a kind and watches them: what happens to them becomes events, in order. After an interruption it goes on from
//! where it was; where the server has forgotten that, it lists anew.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::core::params::{ListParams, WatchParams};
use kube::core::{Request, WatchEvent};
use reprieve_objects::object::{Kind, Object};
use reprieve_scheduler::event::Event;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tracing::{debug, warn};

use crate::error::{Error, problem};
use crate::resources::{QUEUES, resource, with_type};
use crate::slim::slim;

/// How many objects are read at a time.
const PAGE: u32 = 500;
/// How long a watch lasts; silence for longer than that, and a little, is a dead connection.
const WATCH_SECONDS: u32 = 240;
const GRACE_SECONDS: u64 = 20;
/// Between attempts: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Who hears of what happens.
pub trait Listener: Send + Sync + 'static {
    /// Something happened.
    fn hear(&self, event: Event);
}

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
pub async fn watch(client: Client, kind: Kind, listener: Arc<dyn Listener>, pulse: Pulse) {
    with_type!(kind, T => Watch { client, kind, listener, pulse }.run::<T>().await);
}

/// Takes in objects, one page after another.
type Taker<'t> = &'t mut (dyn FnMut(Vec<Object>) + Send);

/// Reads all objects of a kind, page by page, and says as of which version.
pub async fn list(client: &Client, kind: Kind, take: Taker<'_>) -> Result<u64, kube::Error> {
    with_type!(kind, T => list_as::<T>(client, kind, take).await)
}

/// One object, as the API has it.
pub async fn get(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<Object, kube::Error> {
    let request = Request::new(resource(kind).path(Some(namespace)));
    let request = request.get(name, &Default::default()).map_err(kube::Error::BuildRequest)?;
    with_type!(kind, T => client.request::<T>(request).await.map(|object| slim(Object::from(object))))
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned + Into<Object>")]
struct List<T> {
    metadata: ListMeta,
    #[serde(default)]
    items: Items<T>,
}

/// Objects that are slimmed one by one as they are read: all of a page in full take many times as much.
struct Items<T>(Vec<Object>, PhantomData<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<'de, T: Deserialize<'de> + Into<Object>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self::default())
    }
}

impl<'de, T: Deserialize<'de> + Into<Object>> Visitor<'de> for Items<T> {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a list of objects")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while let Some(item) = items.next_element::<T>()? {
            self.0.push(slim(item.into()));
        }
        Ok(self)
    }
}

async fn list_as<T: DeserializeOwned + Into<Object>>(
    client: &Client,
    kind: Kind,
    take: Taker<'_>,
) -> Result<u64, kube::Error> {
    let path = Request::new(resource(kind).path(None));
    let mut params = ListParams { limit: Some(PAGE), field_selector: selector(kind), ..ListParams::default() };
    loop {
        let request = path.list(&params).map_err(kube::Error::BuildRequest)?;
        let List { metadata, items } = client.request::<List<T>>(request).await?;
        take(items.0);
        params.continue_token = metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(metadata.resource_version.as_deref().map_or(0, version));
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

struct Watch {
    client: Client,
    kind: Kind,
    listener: Arc<dyn Listener>,
    pulse: Pulse,
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
    async fn run<T: DeserializeOwned + Into<Object> + Clone + fmt::Debug>(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut objects = Vec::new();
            match list_as::<T>(&self.client, self.kind, &mut |page| objects.extend(page)).await {
                Ok(version) => {
                    pause = FIRST_PAUSE;
                    self.pulse.beat();
                    debug!(kind = ?self.kind, objects = objects.len(), version, "listed");
                    self.listener.hear(Event::Listed { kind: self.kind, objects, version });
                    self.follow::<T>(version).await;
                }
                Err(error) if is_unknown_kind(&error) => {
                    self.pulse.beat();
                    self.listener.hear(Event::Listed { kind: self.kind, objects: Vec::new(), version: 0 });
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
    async fn follow<T: DeserializeOwned + Into<Object> + Clone + fmt::Debug>(&self, mut version: u64) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (before, began) = (version, Instant::now());
            match self.follow_once::<T>(&mut version).await {
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

    async fn follow_once<T: DeserializeOwned + Into<Object> + Clone + fmt::Debug>(
        &self,
        at: &mut u64,
    ) -> Result<End, kube::Error> {
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(WATCH_SECONDS),
            field_selector: selector(self.kind),
            ..WatchParams::default()
        };
        let path = Request::new(resource(self.kind).path(None));
        let request = path.watch(&params, &at.to_string()).map_err(kube::Error::BuildRequest)?;
        let stream = match self.client.request_events::<T>(request).await {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if status.code == 410 => return Ok(End::Forgotten),
            Err(error) => return Err(error),
        };
        let mut stream = std::pin::pin!(stream);
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS) + GRACE_SECONDS);
        loop {
            let Ok(next) = tokio::time::timeout(silence, stream.try_next()).await else {
                return Ok(End::Interrupted);
            };
            let event = match next {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(End::Interrupted),
                Err(kube::Error::Api(status)) if status.code == 410 => return Ok(End::Forgotten),
                Err(error @ kube::Error::SerdeError(_)) => {
                    warn!(kind = ?self.kind, error = problem(&error), "an object cannot be read");
                    return Ok(End::Unreadable);
                }
                Err(error) => return Err(error),
            };
            self.pulse.beat();
            let event = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let object = slim(object.into());
                    *at = object.version();
                    Event::Changed(object)
                }
                WatchEvent::Deleted(object) => {
                    let object: Object = object.into();
                    *at = object.version();
                    Event::Gone { key: object.key(), version: object.version() }
                }
                WatchEvent::Bookmark(bookmark) => {
                    *at = version(&bookmark.metadata.resource_version);
                    continue;
                }
                WatchEvent::Error(status) if status.code == 410 => return Ok(End::Forgotten),
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            self.listener.hear(event);
        }
    }
}

/// All objects of these kinds, or why they cannot be read. Kinds that the cluster does not know have none.
pub async fn list_all(client: &Client, kinds: &[Kind]) -> Result<Vec<Object>, Error> {
    let lists = kinds.iter().map(|&kind| async move {
        let mut objects = Vec::new();
        match list(client, kind, &mut |page| objects.extend(page)).await {
            Ok(_) => Ok(objects),
            Err(error) if is_unknown_kind(&error) => Ok(Vec::new()),
            Err(error) => Err(Error::api(format!("reading {}", resource(kind).plural), &error)),
        }
    });
    Ok(futures::future::try_join_all(lists).await?.into_iter().flatten().collect())
}

/// Whether the objects of a kind can be listed.
pub async fn probe(client: &Client, kind: Kind) -> Result<(), kube::Error> {
    let params = ListParams { limit: Some(1), field_selector: selector(kind), ..ListParams::default() };
    let request = Request::new(resource(kind).path(None)).list(&params).map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use reprieve_objects::pod::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_is_read_and_slimmed() {
        let pod = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}});
        for (items, expected) in [(json!([pod]), 1), (json!([]), 0), (json!(null), 0)] {
            let list: List<Pod> =
                serde_json::from_value(json!({"metadata": {"resourceVersion": "7"}, "items": items})).expect("a list");
            assert_eq!(list.items.0.len(), expected);
            assert!(list.items.0.iter().all(|object| object.metadata().managed_fields.is_none()));
        }
        assert!(serde_json::from_value::<List<Pod>>(json!({"metadata": {}})).expect("a list").items.0.is_empty());
        assert!(serde_json::from_value::<List<Pod>>(json!({"metadata": {}, "items": ["a"]})).is_err());
    }
}

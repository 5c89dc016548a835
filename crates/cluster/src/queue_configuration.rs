//! The ConfigMap with the queues of policy YuniKorn. A new version is checked as a whole before the scheduler sees it; while the current
//! version is invalid, the last valid one stays in force. It is stored in Reprieve's own namespace, so that a restart does not lose it.
//! While the ConfigMap is missing, pods are placed within the last valid queues, and no pod is evicted.

use std::panic::catch_unwind;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use reprieve_api::{Kind, NamespacedName, Object, ObjectKey};
use reprieve_loader::check_queues;
use reprieve_scheduler::{Event, EventReason};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::error::problem;
use crate::metrics::Metrics;
use crate::readiness::Source;
use crate::reporter::{Reporter, event_path};

/// The key of the queues in a ConfigMap.
const KEY: &str = "queues.yaml";
/// The annotation of the stored ConfigMap that names the ConfigMap from which it comes.
const COPY_OF: &str = "reprieve.dev/copy-of";

/// Where the queues are, and where the last valid version is stored.
#[derive(Clone)]
pub struct QueueLocation {
    /// The ConfigMap that an administrator writes.
    pub config_map: NamespacedName,
    /// The ConfigMap with the last valid version; `None` in a dry run, which writes nothing.
    pub copy: Option<NamespacedName>,
}

/// The queues in force.
pub struct QueueConfiguration {
    client: Client,
    location: QueueLocation,
    reporter: Reporter,
    metrics: Arc<Metrics>,
    /// The last valid version.
    last_valid: Option<ConfigMap>,
    /// Whether the stored copy was read.
    has_read_copy: bool,
    /// The text of the stored copy.
    stored: Option<String>,
    /// The last problem that was reported, so that each is reported once.
    reported: Option<String>,
}

impl QueueConfiguration {
    pub fn new(client: Client, location: QueueLocation, reporter: Reporter, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            location,
            reporter,
            metrics,
            last_valid: None,
            has_read_copy: false,
            stored: None,
            reported: None,
        }
    }

    /// Replaces the ConfigMap of an event by the queues that are in force after it.
    pub async fn replace_config_map(&mut self, event: Event) -> Event {
        match event {
            Event::Listed { kind: Kind::ConfigMap, objects, version } => {
                let found = objects.into_iter().find_map(config_map);
                let objects = self.in_force(found, version).await.into_iter().collect();
                Event::Listed { kind: Kind::ConfigMap, objects, version }
            }
            Event::Upserted(Object::ConfigMap(map)) => {
                let object = Object::ConfigMap(map);
                let (key, version) = (object.key(), object.version());
                let in_force = self.in_force(config_map(object), version).await;
                in_force.map_or(Event::Deleted { key, version }, Event::Upserted)
            }
            Event::Deleted { key: key @ ObjectKey { kind: Kind::ConfigMap, .. }, version } => {
                let in_force = self.in_force(None, version).await;
                in_force.map_or(Event::Deleted { key, version }, Event::Upserted)
            }
            other => other,
        }
    }

    /// The queues in force, given the current ConfigMap, as an object of this version.
    async fn in_force(&mut self, current: Option<ConfigMap>, version: u64) -> Option<Object> {
        let name = &self.location.config_map;
        let Some(current) = current else {
            let why = format!("ConfigMap {name} is missing");
            let last = self.last_valid().await.and_then(|map| without_preemption(&map));
            self.report(None, &why, "pods are placed, and no pod is evicted");
            self.metrics.set_queues_valid(false);
            self.metrics.readiness.set_unreadable(Source::Queues, why);
            return last.map(|map| with_version(map, version));
        };
        match check(&current) {
            Ok(()) => {
                if self.reported.take().is_some() {
                    info!(configMap = %name, "the queues are valid again");
                }
                self.last_valid = Some(current.clone());
                self.metrics.set_queues_valid(true);
                self.metrics.readiness.set_readable(Source::Queues);
                Some(with_version(current, version))
            }
            Err(why) => {
                self.metrics.set_queues_valid(false);
                match self.last_valid().await {
                    Some(last) => {
                        self.report(Some(&current), &why, "the last valid version stays in force");
                        self.metrics.readiness.set_readable(Source::Queues);
                        Some(with_version(last, version))
                    }
                    None => {
                        self.report(Some(&current), &why, "pods are placed, and no pod is evicted");
                        self.metrics.readiness.set_unreadable(Source::Queues, why);
                        None
                    }
                }
            }
        }
    }

    /// The last valid version: one read since the start, else the stored copy.
    async fn last_valid(&mut self) -> Option<ConfigMap> {
        self.read_copy().await;
        if self.last_valid.is_none()
            && let Some(text) = &self.stored
        {
            let map = self.with_text(&self.location.config_map, text.clone());
            match check(&map) {
                Ok(()) => self.last_valid = Some(map),
                Err(why) => warn!(why, "the stored copy of the queues is not valid; it is not used"),
            }
        }
        self.last_valid.clone()
    }

    async fn read_copy(&mut self) {
        let Some(copy) = self.location.copy.clone().filter(|_| !self.has_read_copy) else { return };
        match self.copies(&copy).get_opt(&copy.name).await {
            Ok(found) => {
                let is_ours = |map: &ConfigMap| {
                    let origin = map.metadata.annotations.as_ref().and_then(|annotations| annotations.get(COPY_OF));
                    origin == Some(&self.location.config_map.to_string())
                };
                let data = found.filter(is_ours).and_then(|map| map.data);
                self.stored = data.and_then(|mut data| data.remove(KEY));
                self.has_read_copy = true;
            }
            Err(error) => warn!(configMap = %copy, error = problem(&error), "cannot read the last valid queues"),
        }
    }

    /// Stores the last valid version, if it is not stored yet. Without the copy, only a restart while the ConfigMap is invalid loses it.
    pub async fn store_copy(&mut self) {
        let (Some(copy), Some(map)) = (self.location.copy.clone(), self.last_valid.clone()) else { return };
        self.read_copy().await;
        let text = map.data.and_then(|mut data| data.remove(KEY)).unwrap_or_default();
        if self.stored.as_ref() == Some(&text) {
            return;
        }
        let mut object = self.with_text(&copy, text.clone());
        let origin = (COPY_OF.to_owned(), self.location.config_map.to_string());
        object.metadata.annotations = Some([origin].into());
        let (copies, params) = (self.copies(&copy), PostParams::default());
        let written = match copies.replace(&copy.name, &params, &object).await {
            Err(kube::Error::Api(status)) if status.code == 404 => copies.create(&params, &object).await,
            other => other,
        };
        match written {
            Ok(_) => self.stored = Some(text),
            Err(error) => warn!(configMap = %copy, error = problem(&error), "cannot store the last valid queues"),
        }
    }

    fn copies(&self, copy: &NamespacedName) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &copy.namespace)
    }

    fn with_text(&self, name: &NamespacedName, text: String) -> ConfigMap {
        let metadata = ObjectMeta {
            namespace: Some(name.namespace.clone()),
            name: Some(name.name.clone()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, data: Some([(KEY.to_owned(), text)].into()), ..ConfigMap::default() }
    }

    /// Logs a problem of the ConfigMap and sends an event, once for each problem.
    fn report(&mut self, map: Option<&ConfigMap>, why: &str, effect: &str) {
        let message = format!("{why}; {effect}");
        if self.reported.as_ref() == Some(&message) {
            return;
        }
        warn!(configMap = %self.location.config_map, "{message}");
        let uid = map.and_then(|map| map.metadata.uid.clone());
        let key = ObjectKey::new(Kind::ConfigMap, self.location.config_map.clone());
        let about = key.kind.resource().reference(&key, uid);
        let event = self.reporter.event(EventReason::Refused, &message, &about, None);
        let (client, path) = (self.client.clone(), event_path(&about));
        tokio::spawn(async move {
            if let Err(error) = post(&client, &path, &event).await {
                debug!(error = problem(&error), "cannot write an event about the queues");
            }
        });
        self.reported = Some(message);
    }
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<(), kube::Error> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = kube::core::Request::new(path).create(&PostParams::default(), body);
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await.map(|_| ())
}

fn config_map(object: Object) -> Option<ConfigMap> {
    if let Object::ConfigMap(map) = object { Some(Arc::unwrap_or_clone(map)) } else { None }
}

/// Checks the queues. A panic is a fault of the check, and counts as a problem of the ConfigMap.
fn check(map: &ConfigMap) -> Result<(), String> {
    let checked = catch_unwind(|| check_queues(map).map_err(|error| error.to_string()));
    checked.unwrap_or_else(|_| Err("the check of the queues failed; see the log".to_owned()))
}

/// The object with the version of the event that put it in force, because the scheduler ignores older versions.
fn with_version(mut map: ConfigMap, version: u64) -> Object {
    map.metadata.resource_version = Some(version.to_string());
    Object::from(map)
}

/// The same queues with preemption disabled. JSON is YAML, so the result is read like the original.
fn without_preemption(map: &ConfigMap) -> Option<ConfigMap> {
    let mut queues: Value = serde_saphyr::from_str(map.data.as_ref()?.get(KEY)?).ok()?;
    for partition in queues.get_mut("partitions")?.as_array_mut()? {
        *partition.as_object_mut()?.entry("preemption").or_insert(Value::Null) = json!({"enabled": false});
    }
    let mut map = map.clone();
    map.data = Some([(KEY.to_owned(), queues.to_string())].into());
    Some(map)
}

#[cfg(test)]
mod tests;

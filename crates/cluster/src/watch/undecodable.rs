//! Objects that cannot be decoded. Each is left out alone, so that it does not hide the other objects of its kind.

use std::collections::BTreeMap;

use prometheus_client::metrics::gauge::Gauge;
use reprieve_api::decode::plain_problem;
use reprieve_api::object_set::Unreadable;
use reprieve_api::{InputError, Kind, NamespacedName, ObjectKey, ObjectRef, ProblemCode};
use reprieve_scheduler::Event;
use serde::{Deserialize, Deserializer};
use tracing::warn;

/// An object that cannot be decoded, with the error.
#[derive(Debug, PartialEq)]
pub struct Undecodable {
    /// The object as the loader reads it.
    pub unreadable: Unreadable,
    version: String,
    /// Kind, namespace and name, for messages.
    pub object: String,
    /// The decoding error, without a line and column: users do not see the response.
    pub error: String,
}

impl Undecodable {
    /// `text` is the object.
    pub fn new(kind: Kind, identity: &Identity, text: &str, error: &serde_json::Error) -> Self {
        let Metadata { name, namespace, resource_version } = &identity.metadata;
        let display_name = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        let display_name = if name.is_empty() { "without a name".to_owned() } else { display_name };
        let error = error.to_string();
        let error = error.rfind(" at line ").map_or(error.as_str(), |end| &error[..end]);
        let problem = InputError::new(format!("{}; correct it, or delete the object", plain_problem(error)));
        let problem = problem.code(ProblemCode::Undecodable).object(ObjectRef::of(kind, &identity.name()));
        let value = serde_json::from_str(text).unwrap_or_default();
        Self {
            unreadable: Unreadable::new(identity.key(kind), &value, problem),
            version: resource_version.clone(),
            object: format!("{} {display_name}", kind.resource().kind),
            error: error.to_owned(),
        }
    }
}

impl Undecodable {
    pub fn has_name(&self) -> bool {
        !self.unreadable.object.name.name.is_empty()
    }

    /// The events about these objects of a list with this version. An object without a name cannot be known to any scheduler.
    pub fn events(all: &[Self], list_version: u64) -> impl Iterator<Item = Event> {
        all.iter().filter(|object| object.has_name()).map(move |object| object.event(list_version))
    }

    /// The event about the object; `at_least` is the version of the list that contains it.
    pub fn event(&self, at_least: u64) -> Event {
        let version = self.version.parse().unwrap_or(0).max(at_least);
        Event::Unreadable { object: self.unreadable.clone(), version }
    }
}

/// The identity of an object. It can be decoded even if the rest of the object cannot.
#[derive(Default, Deserialize)]
pub struct Identity {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "text_or_null")]
    name: String,
    #[serde(deserialize_with = "text_or_null")]
    namespace: String,
    #[serde(deserialize_with = "text_or_null")]
    resource_version: String,
}

/// Null counts as an empty text, as in the API server.
fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Identity {
    pub fn has_name(&self) -> bool {
        !self.metadata.name.is_empty()
    }

    pub fn key(&self, kind: Kind) -> ObjectKey {
        ObjectKey::new(kind, self.name())
    }

    /// The version of the object; 0 if it has none.
    pub fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }

    fn name(&self) -> NamespacedName {
        NamespacedName::new(&self.metadata.namespace, &self.metadata.name)
    }
}

/// The undecodable objects of a kind. Each version of an object is logged once.
#[derive(Default)]
pub struct UndecodableObjects {
    versions: BTreeMap<NamespacedName, String>,
    count: Gauge,
}

impl UndecodableObjects {
    /// Starts empty; `count` is the metric of the number of objects.
    pub fn new(count: Gauge) -> Self {
        Self { versions: BTreeMap::new(), count }
    }

    /// Replaces all objects after a list of the kind.
    pub fn replace_all(&mut self, found: Vec<Undecodable>) {
        let known = std::mem::take(&mut self.versions);
        for object in found {
            self.add_to(object, &known);
        }
        self.publish();
    }

    /// Adds an object whose new version cannot be decoded.
    pub fn add(&mut self, object: Undecodable) {
        let known = self.versions.remove_entry(&object.unreadable.object.name).into_iter().collect();
        self.add_to(object, &known);
        self.publish();
    }

    /// Removes an object whose new version can be decoded, or that is deleted.
    pub fn remove(&mut self, event: &Event) {
        if self.versions.is_empty() {
            return;
        }
        match event {
            Event::Upserted(object) => self.versions.remove(&object.key().name),
            Event::Deleted { key, .. } => self.versions.remove(&key.name),
            Event::Unreadable { .. } | Event::Listed { .. } | Event::TimerFired | Event::ActionCompleted { .. } => None,
        };
        self.publish();
    }

    fn add_to(&mut self, object: Undecodable, known: &BTreeMap<NamespacedName, String>) {
        let Undecodable { unreadable, version, object, error } = object;
        let name = unreadable.object.name;
        if known.get(&name) != Some(&version) {
            warn!(%object, version, error, "cannot decode the object; it is left out");
        }
        self.versions.insert(name, version);
    }

    fn publish(&self) {
        self.count.set(i64::try_from(self.versions.len()).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::kinds::Object;
    use serde_json::json;

    use super::*;

    fn undecodable(name: &str, version: &str) -> Undecodable {
        let object = json!({"metadata": {"name": name, "resourceVersion": version}, "spec": 7}).to_string();
        let error = Object::from_json(Kind::Node, &object).expect_err("no node");
        Undecodable::new(Kind::Node, &serde_json::from_str(&object).expect("an identity"), &object, &error)
    }

    #[test]
    fn objects_are_counted_until_they_can_be_decoded_or_are_deleted() {
        let count = Gauge::default();
        let mut objects = UndecodableObjects::new(count.clone());
        objects.replace_all(vec![undecodable("a", "1"), undecodable("b", "1"), undecodable("c", "1")]);
        assert_eq!(count.get(), 3);
        objects.add(undecodable("a", "2"));
        assert_eq!(count.get(), 3, "the same object, in another version");
        let a = Object::from_json(Kind::Node, r#"{"metadata": {"name": "a"}}"#).expect("a node");
        objects.remove(&Event::Upserted(a));
        assert_eq!(count.get(), 2);
        objects.remove(&Event::Deleted { key: ObjectKey::new(Kind::Node, NamespacedName::new("", "b")), version: 3 });
        assert_eq!(count.get(), 1);
        objects.replace_all(Vec::new());
        assert_eq!(count.get(), 0);
    }
}

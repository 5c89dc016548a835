//! Objects that cannot be decoded. Each is left out by itself, so that it does not hide the other objects of its kind.

use std::collections::BTreeMap;

use prometheus_client::metrics::gauge::Gauge;
use reprieve_api::kinds::{Kind, ObjectKey};
use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::event::Event;
use serde::Deserialize;
use tracing::warn;

/// An object that cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct Undecodable {
    name: NamespacedName,
    version: String,
    /// Kind, namespace and name, for people.
    pub object: String,
    /// What is wrong with it.
    pub error: String,
}

impl Undecodable {
    /// An object of this kind, and why it cannot be decoded.
    pub fn new(kind: Kind, identity: &Identity, error: &serde_json::Error) -> Self {
        let Metadata { name, namespace, resource_version } = &identity.metadata;
        let named = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        let named = if name.is_empty() { "without a name".to_owned() } else { named };
        // The text is the answer of the server, which nobody has before them: a line and a column in it help no one.
        let error = error.to_string();
        let error = error.rfind(" at line ").map_or(error.as_str(), |end| &error[..end]);
        Self {
            name: identity.full_name(),
            version: resource_version.clone(),
            object: format!("{} {named}", kind.resource().kind),
            error: error.to_owned(),
        }
    }
}

/// Which object it is, which can be read whatever else is wrong with it.
#[derive(Default, Deserialize)]
pub struct Identity {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    namespace: String,
    resource_version: String,
}

impl Identity {
    /// Whether it has a name.
    pub fn has_name(&self) -> bool {
        !self.metadata.name.is_empty()
    }

    /// As the key of an object of this kind.
    pub fn key(&self, kind: Kind) -> ObjectKey {
        ObjectKey::new(kind, self.full_name())
    }

    /// The version of the object; 0 where it has none.
    pub fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }

    fn full_name(&self) -> NamespacedName {
        NamespacedName::new(&self.metadata.namespace, &self.metadata.name)
    }
}

/// The objects of a kind that are left out now. Each is logged once for each of its versions.
#[derive(Default)]
pub struct LeftOut {
    versions: BTreeMap<NamespacedName, String>,
    count: Gauge,
}

impl LeftOut {
    /// None so far; `count` shows how many there are.
    pub fn new(count: Gauge) -> Self {
        Self { versions: BTreeMap::new(), count }
    }

    /// A list of the kind has these, and no others.
    pub fn listed(&mut self, found: Vec<Undecodable>) {
        let known = std::mem::take(&mut self.versions);
        for object in found {
            self.add_to(object, &known);
        }
        self.publish();
    }

    /// An object was changed, and the new version cannot be decoded.
    pub fn add(&mut self, object: Undecodable) {
        let known = self.versions.remove_entry(&object.name).into_iter().collect();
        self.add_to(object, &known);
        self.publish();
    }

    /// What happened to an object was understood: it is no longer left out.
    pub fn forget(&mut self, event: &Event) {
        if self.versions.is_empty() {
            return;
        }
        match event {
            Event::Upserted(object) => self.versions.remove(&object.key().name),
            Event::Deleted { key, .. } => self.versions.remove(&key.name),
            Event::Listed { .. } | Event::TimerFired | Event::ActionCompleted { .. } => None,
        };
        self.publish();
    }

    fn add_to(&mut self, object: Undecodable, known: &BTreeMap<NamespacedName, String>) {
        let Undecodable { name, version, object, error } = object;
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
        Undecodable::new(Kind::Node, &serde_json::from_str(&object).expect("an identity"), &error)
    }

    #[test]
    fn objects_are_counted_until_they_can_be_decoded_or_are_gone() {
        let count = Gauge::default();
        let mut left_out = LeftOut::new(count.clone());
        left_out.listed(vec![undecodable("a", "1"), undecodable("b", "1"), undecodable("c", "1")]);
        assert_eq!(count.get(), 3);
        left_out.add(undecodable("a", "2"));
        assert_eq!(count.get(), 3, "the same object, in another version");
        let a = Object::from_json(Kind::Node, r#"{"metadata": {"name": "a"}}"#).expect("a node");
        left_out.forget(&Event::Upserted(a));
        assert_eq!(count.get(), 2);
        left_out.forget(&Event::Deleted { key: ObjectKey::new(Kind::Node, NamespacedName::new("", "b")), version: 3 });
        assert_eq!(count.get(), 1);
        left_out.listed(Vec::new());
        assert_eq!(count.get(), 0);
    }
}

//! A line of a watch: what happened to an object.

use std::fmt;

use kube::core::Status;
use kube::core::watch::BookmarkMeta;
use reprieve_api::kinds::{Kind, Object};
use reprieve_scheduler::event::Event;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::list::version;
use super::undecodable::{Identity, Undecodable};
use crate::slim::Slim;

/// What a line of a watch says.
#[derive(Debug)]
pub enum Told {
    /// Something happened to an object.
    Event(Event),
    /// An object was changed, and cannot be decoded.
    Undecodable(Undecodable),
    /// Nothing but a version, or not even that.
    Nothing,
}

/// What a line of a watch says, and as of which version.
pub fn told(kind: Kind, line: &[u8], slim: &mut Slim, at: &mut u64) -> Result<Told, kube::Error> {
    if line.trim_ascii().is_empty() {
        return Ok(Told::Nothing);
    }
    match read(kind, line) {
        Ok(Line::Is(object)) => {
            *at = object.version();
            Ok(Told::Event(Event::Changed(slim.keep(object))))
        }
        Ok(Line::Was(object)) => {
            *at = object.version();
            Ok(Told::Event(Event::Gone { key: object.key(kind), version: object.version() }))
        }
        Ok(Line::Bookmark(bookmark)) => {
            *at = version(&bookmark.metadata.resource_version);
            Ok(Told::Nothing)
        }
        Ok(Line::Refusal(status)) => Err(kube::Error::Api(status)),
        Err(error) => not_decoded(kind, line, at, error),
    }
}

/// A line that is not about an object that can be decoded: it is a refusal, or says of which object it is, or cannot be read at all.
fn not_decoded(kind: Kind, line: &[u8], at: &mut u64, error: serde_json::Error) -> Result<Told, kube::Error> {
    #[derive(Deserialize)]
    struct Changed {
        #[serde(rename = "type")]
        type_: String,
        object: Identity,
    }
    if let Ok(status @ Status { code: 1.., .. }) = serde_json::from_slice(line) {
        return Err(kube::Error::Api(status.boxed()));
    }
    match serde_json::from_slice(line) {
        Ok(Changed { type_, object }) if matches!(&*type_, "ADDED" | "MODIFIED") && object.has_name() => {
            *at = object.version();
            Ok(Told::Undecodable(Undecodable::new(kind, &object, &error)))
        }
        _ => Err(kube::Error::SerdeError(error)),
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
    /// The object is gone.
    Was(Identity),
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
            "DELETED" => Identity::deserialize(deserializer).map(Line::Was),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_happened_or_why_no_more_is_said() {
        let told = |line: &str| {
            let mut at = 0;
            let event = told(Kind::Namespace, line.as_bytes(), &mut Slim::default(), &mut at);
            let said = match event {
                Ok(Told::Nothing) => "nothing".to_owned(),
                Ok(Told::Event(Event::Changed(object))) => format!("changed {}", object.key().name.name),
                Ok(Told::Event(Event::Gone { key, .. })) => format!("gone {}", key.name.name),
                Ok(Told::Event(_)) => "something else".to_owned(),
                Ok(Told::Undecodable(Undecodable { object, error, .. })) => format!("{object}: {error}"),
                Err(kube::Error::Api(status)) => format!("code {}", status.code),
                Err(_) => "unreadable".to_owned(),
            };
            (said, at)
        };
        const WRONG: &str = "Namespace a: invalid type: integer `7`, expected a sequence";
        let object = r#"{"metadata": {"name": "a", "resourceVersion": "7"}}"#;
        let wrong = r#"{"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"finalizers": 7}}"#;
        for (line, said, at) in [
            (format!(r#"{{"type": "ADDED", "object": {object}}}"#), "changed a", 7),
            (format!(r#"{{"object": {object}, "type": "MODIFIED"}}"#), "changed a", 7),
            (format!(r#"{{"type": "DELETED", "object": {object}}}"#), "gone a", 7),
            (format!(r#"{{"type": "ADDED", "at": 1, "object": {object}}}"#), "changed a", 7),
            (r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}"#.to_owned(), "nothing", 9),
            (r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410}}"#.to_owned(), "code 410", 0),
            (r#"{"kind": "Status", "status": "Failure", "code": 500}"#.to_owned(), "code 500", 0),
            (" \n".to_owned(), "nothing", 0),
            (format!(r#"{{"type": "ADDED", "object": {wrong}}}"#), WRONG, 7),
            (format!(r#"{{"object": {wrong}, "type": "MODIFIED"}}"#), WRONG, 7),
            (format!(r#"{{"type": "DELETED", "object": {wrong}}}"#), "gone a", 7),
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

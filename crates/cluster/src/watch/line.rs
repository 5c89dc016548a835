//! Decodes a line of a watch.

use kube::core::Status;
use kube::core::watch::BookmarkMeta;
use reprieve_api::{Kind, Object};
use reprieve_scheduler::Event;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::list::parse_version;
use super::undecodable::{Identity, Undecodable};
use crate::trim::ObjectTrimmer;

/// The content of a line.
#[derive(Debug)]
pub enum LineContent {
    /// An object changed.
    Event(Event),
    /// An object changed, and its new state cannot be decoded.
    Undecodable(Undecodable),
    /// A bookmark or an empty line.
    Nothing,
}

#[derive(Deserialize)]
struct WatchLine<'l> {
    #[serde(rename = "type")]
    type_: &'l str,
    #[serde(borrow)]
    object: &'l RawValue,
}

/// Decodes a line, and sets `version` to the version that it contains.
pub fn parse_line(
    kind: Kind,
    line: &[u8],
    trimmer: &mut ObjectTrimmer,
    version: &mut u64,
) -> Result<LineContent, kube::Error> {
    if line.trim_ascii().is_empty() {
        return Ok(LineContent::Nothing);
    }
    let WatchLine { type_, object } =
        serde_json::from_slice(line).map_err(|error| match serde_json::from_slice(line) {
            Ok(status @ Status { code: 1.., .. }) => kube::Error::Api(status.boxed()),
            _ => kube::Error::SerdeError(error),
        })?;
    let text = object.get();
    match type_ {
        "ADDED" | "MODIFIED" => match Object::from_json(kind, text) {
            Ok(object) => {
                *version = object.version();
                Ok(LineContent::Event(Event::Upserted(trimmer.trim(object))))
            }
            Err(error) => {
                let Some(object) = read::<Identity>(text).ok().filter(Identity::has_name) else {
                    return Err(kube::Error::SerdeError(error));
                };
                *version = object.version();
                Ok(LineContent::Undecodable(Undecodable::new(kind, &object, text, &error)))
            }
        },
        "DELETED" => {
            let object: Identity = read(text)?;
            *version = object.version();
            Ok(LineContent::Event(Event::Deleted { key: object.key(kind), version: object.version() }))
        }
        "BOOKMARK" => {
            let Bookmark { metadata } = read(text)?;
            *version = parse_version(&metadata.resource_version);
            Ok(LineContent::Nothing)
        }
        _ => Err(kube::Error::Api(read(text)?)),
    }
}

fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, kube::Error> {
    serde_json::from_str(text).map_err(kube::Error::SerdeError)
}

/// The current version of the API server, sent in the absence of changes.
#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_an_event_a_bookmark_or_an_error() {
        let parsed = |line: &str| {
            let mut version = 0;
            let content = parse_line(Kind::Namespace, line.as_bytes(), &mut ObjectTrimmer::default(), &mut version);
            let text = match content {
                Ok(LineContent::Nothing) => "nothing".to_owned(),
                Ok(LineContent::Event(Event::Upserted(object))) => format!("changed {}", object.key().name.name),
                Ok(LineContent::Event(Event::Deleted { key, .. })) => format!("deleted {}", key.name.name),
                Ok(LineContent::Event(_)) => "another event".to_owned(),
                Ok(LineContent::Undecodable(Undecodable { object, error, .. })) => format!("{object}: {error}"),
                Err(kube::Error::Api(status)) => format!("code {}", status.code),
                Err(_) => "unreadable".to_owned(),
            };
            (text, version)
        };
        const WRONG: &str = "Namespace a: invalid type: integer `7`, expected a sequence";
        let object = r#"{"metadata": {"name": "a", "resourceVersion": "7"}}"#;
        let wrong = r#"{"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"finalizers": 7}}"#;
        for (line, expected, version) in [
            (format!(r#"{{"type": "ADDED", "object": {object}}}"#), "changed a", 7),
            (format!(r#"{{"object": {object}, "type": "MODIFIED"}}"#), "changed a", 7),
            (format!(r#"{{"type": "DELETED", "object": {object}}}"#), "deleted a", 7),
            (format!(r#"{{"type": "ADDED", "at": 1, "object": {object}}}"#), "changed a", 7),
            (r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}"#.to_owned(), "nothing", 9),
            (r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410}}"#.to_owned(), "code 410", 0),
            (r#"{"kind": "Status", "status": "Failure", "code": 500}"#.to_owned(), "code 500", 0),
            (" \n".to_owned(), "nothing", 0),
            (format!(r#"{{"type": "ADDED", "object": {wrong}}}"#), WRONG, 7),
            (format!(r#"{{"object": {wrong}, "type": "MODIFIED"}}"#), WRONG, 7),
            (format!(r#"{{"type": "DELETED", "object": {wrong}}}"#), "deleted a", 7),
            (r#"{"type": "ADDED", "object": 7}"#.to_owned(), "unreadable", 0),
            (r#"{"type": "ADDED"}"#.to_owned(), "unreadable", 0),
            (format!(r#"{{"object": {object}}}"#), "unreadable", 0),
            (format!(r#"{{"type": "ADDED", "object": {object}}}}}"#), "unreadable", 0),
            ("{}".to_owned(), "unreadable", 0),
        ] {
            assert_eq!(parsed(&line), (expected.to_owned(), version), "{line}");
        }
    }
}

//! A line of a watch: what happened to an object.

use kube::core::Status;
use kube::core::watch::BookmarkMeta;
use reprieve_api::kinds::{Kind, Object};
use reprieve_scheduler::event::Event;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::list::version;
use super::undecodable::{Identity, Undecodable};
use crate::trim::ObjectTrimmer;

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

/// A line: what happened, and to which object.
#[derive(Deserialize)]
struct WatchLine<'l> {
    #[serde(rename = "type")]
    type_: &'l str,
    #[serde(borrow)]
    object: &'l RawValue,
}

/// What a line of a watch says, and as of which version.
pub fn parse_line(kind: Kind, line: &[u8], slim: &mut ObjectTrimmer, at: &mut u64) -> Result<Told, kube::Error> {
    if line.trim_ascii().is_empty() {
        return Ok(Told::Nothing);
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
                *at = object.version();
                Ok(Told::Event(Event::Upserted(slim.trim(object))))
            }
            Err(error) => {
                let Some(object) = read::<Identity>(text).ok().filter(Identity::has_name) else {
                    return Err(kube::Error::SerdeError(error));
                };
                *at = object.version();
                Ok(Told::Undecodable(Undecodable::new(kind, &object, &error)))
            }
        },
        "DELETED" => {
            let object: Identity = read(text)?;
            *at = object.version();
            Ok(Told::Event(Event::Deleted { key: object.key(kind), version: object.version() }))
        }
        "BOOKMARK" => {
            let Bookmark { metadata } = read(text)?;
            *at = version(&metadata.resource_version);
            Ok(Told::Nothing)
        }
        _ => Err(kube::Error::Api(read(text)?)),
    }
}

fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, kube::Error> {
    serde_json::from_str(text).map_err(kube::Error::SerdeError)
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
            let event = parse_line(Kind::Namespace, line.as_bytes(), &mut ObjectTrimmer::default(), &mut at);
            let said = match event {
                Ok(Told::Nothing) => "nothing".to_owned(),
                Ok(Told::Event(Event::Upserted(object))) => format!("changed {}", object.key().name.name),
                Ok(Told::Event(Event::Deleted { key, .. })) => format!("gone {}", key.name.name),
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

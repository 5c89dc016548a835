//! Makes `events.k8s.io` Event objects.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use reprieve_scheduler::EventReason;
use serde_json::{Value, json};

/// The API server rejects notes of more than 1 kB.
const MAX_NOTE_BYTES: usize = 1000;
/// The API server rejects names of more than 253 characters; the time adds up to 17.
const MAX_PREFIX_BYTES: usize = 230;

/// Who writes events.
#[derive(Clone)]
pub struct Reporter {
    pub identity: String,
    /// Whether the messages say that nothing else is written.
    pub dry_run: bool,
}

impl Reporter {
    /// The Event object, with a name that is unique by its time.
    pub fn event(
        &self,
        reason: EventReason,
        message: &str,
        about: &ObjectReference,
        related: Option<&ObjectReference>,
    ) -> Value {
        let note = if self.dry_run { format!("dry run: {message}") } else { message.to_owned() };
        let type_ = if reason.is_warning() { "Warning" } else { "Normal" };
        let now = Timestamp::now();
        let prefix = shortened(about.name.as_deref().unwrap_or_default(), MAX_PREFIX_BYTES);
        // Each part of a name ends with a letter or digit.
        let name = format!("{}.{:x}", prefix.trim_end_matches(['.', '-']), now.as_nanosecond());
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.namespace.as_deref().unwrap_or("default")},
            "eventTime": format!("{now:.6}"),
            "reportingController": "reprieve",
            "reportingInstance": self.identity,
            "type": type_,
            "action": "Scheduling",
            "reason": reason.as_str(),
            "note": shortened(&note, MAX_NOTE_BYTES),
            "regarding": about,
            "related": related,
        })
    }
}

/// The longest beginning of a text with at most this many bytes.
fn shortened(text: &str, max_bytes: usize) -> &str {
    let end =
        text.char_indices().map(|(start, character)| start + character.len_utf8()).take_while(|end| *end <= max_bytes);
    &text[..end.last().unwrap_or(0)]
}

/// The API path of the events about an object: in its namespace, or in `default` for an object without one.
pub fn event_path(about: &ObjectReference) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", about.namespace.as_deref().unwrap_or("default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_about_any_object_has_a_valid_name_and_note() {
        let reporter = Reporter { identity: "a".to_owned(), dry_run: false };
        for (name, start) in
            [("a".repeat(253), "a".repeat(230)), (format!("{}-{}", "a".repeat(229), "b".repeat(23)), "a".repeat(229))]
        {
            let about = ObjectReference { name: Some(name), ..ObjectReference::default() };
            let event = reporter.event(EventReason::Refused, &"\u{20ac}".repeat(900), &about, None);
            let (name, note) = (event["metadata"]["name"].as_str(), event["note"].as_str());
            let (prefix, time) = name.and_then(|name| name.split_once('.')).expect("a name and a time");
            assert!(prefix == start && prefix.len() + 1 + time.len() <= 253, "{prefix}");
            assert_eq!(note.map(str::len), Some(999), "333 characters of 3 bytes");
        }
    }
}

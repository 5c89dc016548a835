//! Makes `events.k8s.io` Event objects.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use reprieve_scheduler::EventReason;
use serde_json::{Value, json};

/// The API server rejects notes of more than 1 kB.
const MAX_NOTE_LENGTH: usize = 1000;

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
        let name = format!("{}.{:x}", about.name.as_deref().unwrap_or_default(), now.as_nanosecond());
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
            "note": note.chars().take(MAX_NOTE_LENGTH).collect::<String>(),
            "regarding": about,
            "related": related,
        })
    }
}

/// The API path of the events about an object: in its namespace, or in `default` for an object without one.
pub fn event_path(about: &ObjectReference) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", about.namespace.as_deref().unwrap_or("default"))
}

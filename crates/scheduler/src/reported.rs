//! The reasons behind the conditions that a scheduler wrote. The message of a condition is text for people: the scheduler compares it as a
//! whole and reads nothing from it.

use std::collections::BTreeMap;

use reprieve_api::ObjectKey;

use crate::wait_reason::WaitReason;

/// The reason for which each object was last reported to wait, and the message that was written for it.
///
/// A restarted scheduler starts without entries. Its first report on an object writes the condition unless the message is the same.
#[derive(Default)]
pub(crate) struct ReportedReasons(BTreeMap<ObjectKey, Reported>);

struct Reported {
    reason: WaitReason,
    message: String,
}

impl ReportedReasons {
    /// Whether this reason must be written, and remembers it. `written` is the message that the object has. A message with other details
    /// of the same reason is not written again; a message that another program wrote is replaced.
    pub fn is_new(&mut self, key: &ObjectKey, written: Option<&str>, reason: WaitReason, message: &str) -> bool {
        let reported = self.0.get(key);
        if reported.is_some_and(|known| known.reason == reason && written == Some(known.message.as_str())) {
            return false;
        }
        self.0.insert(key.clone(), Reported { reason, message: message.to_owned() });
        written != Some(message)
    }

    /// Forgets an object that is deleted.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::{Kind, NamespacedName};

    use super::*;

    #[test]
    fn a_reason_is_new_until_the_object_has_a_message_for_it() {
        let key = ObjectKey::new(Kind::Pod, NamespacedName::new("default", "a"));
        let mut reported = ReportedReasons::default();
        for (written, reason, message, new) in [
            (None, WaitReason::NoFeasiblePlan, "NoFeasiblePlan: one node", true),
            (None, WaitReason::NoFeasiblePlan, "NoFeasiblePlan: one node", true), // the write failed
            (Some("NoFeasiblePlan: one node"), WaitReason::NoFeasiblePlan, "NoFeasiblePlan: two nodes", false),
            (Some("NoFeasiblePlan: one node"), WaitReason::Backoff, "Backoff: later", true),
            (Some("Backoff: later"), WaitReason::Backoff, "Backoff: much later", false),
            (Some("Backoff: by another program"), WaitReason::Backoff, "Backoff: later", true),
        ] {
            assert_eq!(reported.is_new(&key, written, reason, message), new, "{written:?} {message}");
        }
        reported.forget(&key);
        assert!(
            !reported.is_new(&key, Some("Backoff: later"), WaitReason::Backoff, "Backoff: later"),
            "after a restart"
        );
        assert!(
            !reported.is_new(&key, Some("Backoff: later"), WaitReason::Backoff, "Backoff: now"),
            "it is remembered"
        );
    }
}

//! What is wrong with the input without preventing a decision. `plan` prints all warnings; the scheduler tells those about an object on it.

use std::fmt;

use reprieve_api::ObjectKey;

/// A problem of the input that does not prevent a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The object whose owner can correct the problem; `None` for the input as a whole, and if a condition or a law tells the same.
    pub object: Option<ObjectKey>,
    /// The object, the field, the problem and its effect.
    pub text: String,
}

impl Warning {
    /// A warning about one object.
    pub fn about(object: ObjectKey, text: String) -> Self {
        Self { object: Some(object), text }
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Self {
        Self { object: None, text }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

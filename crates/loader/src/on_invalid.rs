//! How loading treats objects that cannot be used.

/// Whether an object that is set aside is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalid {
    /// It is an error, for objects that a program made.
    Reject,
    /// It is a warning, because one object must not stop the decisions about others.
    Quarantine,
}

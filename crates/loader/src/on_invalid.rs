//! How loading treats pods that cannot be used.

/// Whether a pod that cannot be converted, or whose node is not in the input, is an error, or is ignored with a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalid {
    /// Both are errors, because a PreemptionTest contains only objects that matter to it.
    Reject,
    /// Only a missing node is a warning, because files from a cluster may have been written at different times.
    RejectExceptMissingNode,
    /// Both are warnings, because one object must not stop the scheduler of a cluster.
    Quarantine,
}

//! How a pod differs from its group.

use crate::ids::Priority;

/// The field in which a member differs from its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// `priority`.
    Priority {
        /// The priority of the member itself.
        member: Priority,
        /// The priority of the group.
        group: Priority,
    },
    /// `preemptionPolicy`.
    Preempting {
        /// Whether the member itself may preempt.
        member: bool,
        /// Whether the group may preempt.
        group: bool,
    },
}

//! What keeps a pending pod from being placed, whatever room there is.

use crate::ids::TextId;

/// The reason why a pending pod cannot be placed on any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The names of its scheduling gates.
    Gates(Vec<TextId>),
    /// A member of a group or job that names another scheduler.
    OtherScheduler,
    /// A field that the engine does not evaluate.
    Unsupported(TextId),
    /// The queue that it names may not be used.
    QueueRefused {
        /// The name of the queue.
        queue: TextId,
        /// Why.
        cause: QueueRefusal,
    },
}

/// Why a pod may not use the queue that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueRefusal {
    /// The administrator did not give the namespace access to the queue.
    NamespaceHasNoAccess,
    /// The queue is restricted to users, who are not known.
    RestrictedToUsers,
}

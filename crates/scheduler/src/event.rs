//! The events that the scheduler receives, from the watches of a live cluster or from the simulator. An event may come late, twice, out of
//! order, or after a newer list of its kind.

use reprieve_api::object_set::Unreadable;
use reprieve_api::{Kind, Object, ObjectKey};

use crate::action::ActionId;

/// An input of [`Scheduler::observe`](crate::Scheduler::observe).
#[derive(Clone, Debug)]
pub enum Event {
    /// An object was created or changed.
    Upserted(Object),
    /// An object was deleted.
    Deleted {
        /// The deleted object.
        key: ObjectKey,
        /// The resourceVersion of the deletion.
        version: u64,
    },
    /// An object has a version that does not have the form of its kind.
    Unreadable {
        /// The object.
        object: Unreadable,
        /// The resourceVersion of the object, or of the list that contains it, which was received before this event.
        version: u64,
    },
    /// All objects of a kind at one version; an object that is not in the list was deleted.
    Listed {
        /// The kind of the objects.
        kind: Kind,
        /// All objects of the kind.
        objects: Vec<Object>,
        /// The resourceVersion of the list.
        version: u64,
    },
    /// The time of a [`WakeAt`](crate::action::Action::WakeAt) has come.
    TimerFired,
    /// The result of an action.
    ActionCompleted {
        /// The action that the result is for.
        action: ActionId,
        /// Success or the kind of failure.
        result: ActionResult,
    },
}

/// The result of an action.
#[derive(Clone, Debug)]
pub enum ActionResult {
    /// The API server accepted the action.
    Ok {
        /// The new resourceVersion of the object; 0 if no object changed.
        version: u64,
    },
    /// The object as the API server returned it.
    Read(Object),
    /// The uid or version of the object differs from the [`Target`](crate::action::Target).
    Conflict,
    /// The object does not exist.
    NotFound,
    /// The API server rejected the action; the text is its message.
    Forbidden(String),
    /// No response came: the action may have succeeded.
    Unknown,
}

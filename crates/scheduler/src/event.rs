//! What the world tells the scheduler. Events may come late, twice, out of order, or after everything was listed anew.

use reprieve_api::kinds::{Kind, Object, ObjectKey};

use crate::action::ActionId;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// An object appeared or changed.
    Upserted(Object),
    /// An object went.
    Deleted {
        /// Which.
        key: ObjectKey,
        /// The version at which it went.
        version: u64,
    },
    /// All objects of a kind, as of one version; what is not among them is gone.
    Listed {
        /// The kind.
        kind: Kind,
        /// Its objects.
        objects: Vec<Object>,
        /// As of when.
        version: u64,
    },
    /// A time that an action asked for has come.
    TimerFired,
    /// An action was carried out, or was not.
    ActionCompleted {
        /// Which.
        action: ActionId,
        /// How it went.
        result: ActionResult,
    },
}

/// How an action went.
#[derive(Clone, Debug)]
pub enum ActionResult {
    /// It worked; the object has this version now.
    Ok {
        /// The version; 0 where nothing was changed.
        version: u64,
    },
    /// The object as it is now: the answer to a reading.
    Read(Object),
    /// The object is not what the action took it for.
    Conflict,
    /// There is no such object.
    NotFound,
    /// The scheduler has no right to do it.
    Forbidden(String),
    /// No answer came: it may have worked.
    Unknown,
}

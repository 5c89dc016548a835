//! The messages between the scheduler thread and the async tasks: `Message` goes to the thread, `Dispatch` comes from it.

use reprieve_api::{Kind, Object};
use reprieve_scheduler::{Action, ActionId, ActionResult, Event};

/// A message from a watch or the executor to the scheduler thread. `profile` is the index of a profile in the configuration.
pub enum Message {
    /// Objects in the cluster changed.
    Event(Event),
    /// One page of the list that an action of this profile requested.
    Page { profile: usize, action: ActionId, objects: Vec<Object> },
    /// The list of this action is complete as of this version.
    Listed { profile: usize, action: ActionId, kind: Kind, version: u64 },
    /// An action is finished. It has no result if the executor sent no request and never will.
    Done { profile: usize, action: ActionId, result: Option<ActionResult> },
    /// The process shuts down: the thread starts no further action.
    Stop,
}

/// An action of a profile, on its way to the executor.
pub struct Dispatch {
    /// The index of the profile in the configuration.
    pub profile: usize,
    pub id: ActionId,
    pub action: Action,
    /// Set for an action that emits an event.
    pub uids: EventObjectUids,
}

/// The uids of the objects that an event names. The scheduler thread knows them; an action has only the names.
#[derive(Clone, Debug, Default)]
pub struct EventObjectUids {
    pub regarding: Option<String>,
    pub related: Option<String>,
}

impl Dispatch {
    /// The message that ends this action.
    pub fn done(&self, result: Option<ActionResult>) -> Message {
        Message::Done { profile: self.profile, action: self.id, result }
    }
}

//! What the watches and the executor report to the scheduler's thread.

use reprieve_api::kinds::{Kind, Object};
use reprieve_scheduler::action::ActionId;
use reprieve_scheduler::event::{ActionResult, Event};

/// What the thread hears.
pub enum Message {
    /// Something happened in the cluster.
    Event(Event),
    /// Part of the list that a profile asked for.
    Page { profile: usize, action: ActionId, objects: Vec<Object> },
    /// That was all of it, as of this version.
    Listed { profile: usize, action: ActionId, kind: Kind, version: u64 },
    /// An action of a profile was carried out, or was not; no result where nothing was done, nor will be.
    Done { profile: usize, action: ActionId, result: Option<ActionResult> },
    /// Nothing more is to be begun.
    Stop,
}

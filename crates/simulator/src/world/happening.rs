//! What will happen in a virtual cluster.

use reprieve_api::kinds::Object;
use reprieve_api::meta::FullName;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::Event;

/// How long a request, its answer, or the news of a change is under way.
pub(super) const LATENCY_MICROS: i64 = 2_000;
/// How long a controller takes to make a pod anew.
pub(super) const RESTART_MICROS: i64 = 1_000_000;

/// What will happen.
pub(super) enum Happening {
    Arrive(usize),
    /// An event reaches the scheduler that was started so many times.
    Deliver(u64, Event),
    Wake(u64),
    Perform(u64, ActionId, Action),
    Relist,
    Start {
        pod: FullName,
        uid: String,
    },
    Stop {
        pod: FullName,
        uid: String,
    },
    Finish {
        job: usize,
        part: usize,
        turn: u32,
    },
    Renew {
        job: usize,
        part: usize,
    },
    EvictSoftly {
        pod: FullName,
        uid: String,
    },
    Sweep(Vec<FullName>),
    /// The controller of Jobs looks at one.
    Sync(usize),
    /// A Job that is over is cleared away.
    Collect(usize),
    NodeBack(Box<Object>),
    Sample,
}

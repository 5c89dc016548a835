//! What will happen in a virtual cluster.

use reprieve_api::kinds::Object;
use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::action::{Action, ActionId};
use reprieve_scheduler::event::Event;

/// How long a request, its answer, or the news of a change is under way.
pub(super) const LATENCY_MICROS: i64 = 2_000;
/// How long a controller takes to make a pod anew.
pub(super) const RESTART_MICROS: i64 = 1_000_000;

/// What will happen.
pub(crate) enum SimEvent {
    /// A job is submitted.
    Arrive(usize),
    /// An event reaches the scheduler that was started so many times.
    Deliver(u64, Event),
    /// A timer of that scheduler fires.
    Wake(u64),
    /// A request of that scheduler reaches the API server.
    Perform(u64, ActionId, Action),
    /// Everything is listed anew.
    Relist,
    /// A pod has started.
    Start { pod: NamespacedName, uid: String },
    /// A pod has stopped.
    Stop { pod: NamespacedName, uid: String },
    /// A part of a job is done, unless it was interrupted in the meantime.
    Finish { job: usize, part: usize, turn: u32 },
    /// The pods of a part are made anew.
    Renew { job: usize, part: usize },
    /// Another operator deletes a pod that was labelled for it.
    EvictSoftly { pod: NamespacedName, uid: String },
    /// Pods that are done are cleared away.
    Sweep(Vec<NamespacedName>),
    /// The controller of Jobs looks at one.
    Sync(usize),
    /// A Job that is over is cleared away.
    Collect(usize),
    /// A node that vanished comes back.
    NodeBack(Box<Object>),
    /// It is written down how full the cluster is.
    Sample,
}

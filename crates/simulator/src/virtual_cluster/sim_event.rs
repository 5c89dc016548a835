//! The events on the timeline of a virtual cluster.

use reprieve_api::{NamespacedName, Object};
use reprieve_scheduler::{Action, ActionId, Event};

/// The latency of a request, a response or a watch event.
pub(super) const LATENCY_MICROS: i64 = 2_000;
/// The time that a controller takes to recreate a pod.
pub(super) const RESTART_MICROS: i64 = 1_000_000;

pub(crate) enum SimEvent {
    /// The job with this index is submitted.
    Arrive(usize),
    /// An event reaches the scheduler of this incarnation; a restarted scheduler ignores it.
    Deliver(u64, Event),
    /// A timer of the scheduler of this incarnation fires.
    Wake(u64),
    /// A request of the scheduler of this incarnation reaches the API server.
    Perform(u64, ActionId, Action),
    /// The scheduler receives a list of every kind.
    Relist,
    /// A pod has started.
    Start {
        pod: NamespacedName,
        uid: String,
    },
    /// A pod has stopped.
    Stop {
        pod: NamespacedName,
        uid: String,
    },
    /// A part of a job finishes, unless its pods were recreated since (a higher generation).
    Finish {
        job: usize,
        part: usize,
        generation: u32,
    },
    RecreatePods {
        job: usize,
        part: usize,
    },
    /// Another operator deletes a pod with the soft-eviction label.
    SoftEvict {
        pod: NamespacedName,
        uid: String,
    },
    /// Finished pods are removed.
    Sweep(Vec<NamespacedName>),
    /// The Job controller processes the job with this index.
    Sync(usize),
    /// A finished Job is removed.
    Collect(usize),
    /// A lost node is added again.
    NodeBack(Box<Object>),
    /// The usage of the cluster is recorded.
    Sample,
}

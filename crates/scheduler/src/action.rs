//! What the scheduler asks of the world. Each action is one request to a Kubernetes API; its result comes back as an event.

use reprieve_engine::Timestamp;
use reprieve_objects::object::{Key, Kind};
use reprieve_objects::objects::FullName;

/// The number of an action, by which its result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionId(pub u64);

/// On a victim: for whom it is to yield.
pub const PREEMPTED_FOR: &str = "reprieve.dev/preempted-for";
/// On a victim that another operator evicts: the message for it.
pub const SOFT_EVICTION: &str = "scheduling.koordinator.sh/soft-eviction";

/// Which pod is meant, and in what state it must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Its name.
    pub name: FullName,
    /// What sets it apart from others of its name.
    pub uid: String,
    /// Its version.
    pub version: u64,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Bind a pod to a node.
    Bind {
        /// The pod; its uid must be the same.
        pod: Target,
        /// The node.
        node: String,
    },
    /// Say in a pod's status which node it is meant for, or that it is meant for none.
    Nominate {
        /// The pod; its uid must be the same.
        pod: Target,
        /// The node.
        node: Option<String>,
    },
    /// Say on a victim that it is to yield, with the condition `DisruptionTarget`, and for whom.
    Mark {
        /// The victim; its uid must be the same.
        pod: Target,
        /// For whom.
        preemptor: String,
        /// The condition's message.
        message: String,
    },
    /// Take that back.
    Unmark {
        /// The pod; its uid must be the same.
        pod: Target,
    },
    /// Delete a victim with its own grace.
    Evict {
        /// The victim; its uid and its version must be the same.
        pod: Target,
    },
    /// Label a victim so that another operator evicts it.
    SoftEvict {
        /// The victim; its uid must be the same.
        pod: Target,
        /// For whom.
        preemptor: String,
        /// The label's message.
        message: String,
    },
    /// Record an event about one object that names another.
    Record {
        /// The object.
        about: Key,
        /// The other.
        related: Option<Key>,
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// Read an object anew.
    Read {
        /// Which.
        key: Key,
    },
    /// List all objects of a kind anew.
    List {
        /// Which.
        kind: Kind,
    },
    /// Send a [`crate::event::Event::Timer`] at this time.
    Timer {
        /// When.
        at: Timestamp,
    },
}

impl Action {
    /// The pod that it changes, if it changes one.
    pub fn pod(&self) -> Option<&Target> {
        match self {
            Self::Bind { pod, .. }
            | Self::Nominate { pod, .. }
            | Self::Mark { pod, .. }
            | Self::Unmark { pod }
            | Self::Evict { pod }
            | Self::SoftEvict { pod, .. } => Some(pod),
            Self::Record { .. } | Self::Read { .. } | Self::List { .. } | Self::Timer { .. } => None,
        }
    }
}

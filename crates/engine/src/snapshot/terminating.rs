//! The state of a pod that terminates.

use crate::ids::Timestamp;

/// The state of a terminating pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminating {
    /// The end of its grace period.
    pub deadline: Timestamp,
    /// Whether a scheduler preempted the pod.
    pub by_preemption: bool,
}

//! Deliberate bugs, enabled only by the feature `deliberate-bugs`: tests show that the simulator's invariants detect each of them.

/// The name of the unit or object that [`Bug::Panic`], [`Bug::PanicInObserve`] and [`Bug::PanicInRebuild`] fail.
pub(crate) const FATAL: &str = "fatal";

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Terminating victims lose their mark, so the scheduler preempts a second time for the same unit.
    SecondRound,
    /// The last of several victims is not evicted.
    HalfAGang,
    /// The nominations of a preemptor are removed when its victims are evicted.
    ForgottenNomination,
    /// An eviction without a response counts as a success.
    TrustedTimeout,
    /// Preemption fences of YuniKorn queues are ignored.
    IgnoredFence,
    /// The quota of an evicted workload counts as free before the workload is requeued.
    EarlyQuota,
    /// Reading an object named `fatal` panics and leaves a snapshot without pods.
    PanicInObserve,
    /// Reading a pod named `fatal` panics when the snapshot is rebuilt.
    PanicInRebuild,
    /// While an object is set aside, the snapshot is not rebuilt.
    BrokenObjectStopsRebuild,
    /// A bound pod whose labels change is no longer counted on its node.
    ForgottenRelabelledPod,
    /// The decision about a unit named `fatal` panics and leaves a snapshot without pods.
    Panic,
}

/// The deliberate bug of a scheduler; always none without the feature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bugs {
    #[cfg(feature = "deliberate-bugs")]
    pub bug: Option<Bug>,
}

impl Bugs {
    pub fn has(self, bug: Bug) -> bool {
        #[cfg(feature = "deliberate-bugs")]
        let enabled = self.bug;
        #[cfg(not(feature = "deliberate-bugs"))]
        let enabled: Option<Bug> = None;
        enabled == Some(bug)
    }
}

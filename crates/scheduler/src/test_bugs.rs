//! Bugs that are put in on purpose, by a switch that only tests have, so that the checks on the scheduler are known to bite.

/// Whom [`Bug::Panic`] is about.
pub(crate) const FATAL: &str = "fatal";

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Who is leaving is not seen to leave for anybody, so a second round begins.
    SecondRound,
    /// Of several victims the last is left out.
    HalfAGang,
    /// Once the victims are evicted, nobody is meant for their room.
    ForgottenNomination,
    /// An eviction of which nothing was heard is taken to have worked.
    TrustedTimeout,
    /// Fences of queues are not read.
    IgnoredFence,
    /// The quota of workloads that have to yield is given away while they still have it.
    EarlyQuota,
    /// The decision about whoever is called `fatal` ends with a panic, and leaves the tables as if nobody were there.
    Panic,
}

/// The deliberate bug of a scheduler, if it has one; none has, except in tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bugs {
    #[cfg(feature = "deliberate-bugs")]
    pub bug: Option<Bug>,
}

impl Bugs {
    /// Whether it has this bug.
    pub fn has(self, bug: Bug) -> bool {
        #[cfg(feature = "deliberate-bugs")]
        let own = self.bug;
        #[cfg(not(feature = "deliberate-bugs"))]
        let own: Option<Bug> = None;
        own == Some(bug)
    }
}

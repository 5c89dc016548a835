//! Why a unit waits, as a value. Its name is a label of the metric `reprieve_pending_units` and begins the message of a condition.

use std::fmt;

use reprieve_engine::laws::Law;
use reprieve_engine::policy::kueue::SkipReason;

/// Why a unit waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// A law refuses the unit or makes it wait: the law's name.
    Law(&'static str),
    /// No lawful set of victims makes it fit.
    NoFeasiblePlan,
    /// Pods of the unit are missing, or pods of an earlier start are still terminating.
    GangIncomplete,
    /// The outcome of an action on its pods or its victims is not known yet.
    AwaitingApiState,
    /// Its victims are leaving, or an action for it is in flight.
    ActionInFlight,
    /// A unit that has waited longer, or that was preempted, comes first.
    WaitingForOlderUnit,
    /// Other workloads of its queue come first.
    BehindQueueHead,
    /// The object cannot be understood.
    InvalidObject,
    /// Its decision ended with a panic.
    InternalError,
    /// An action for it failed; it is tried again later.
    Backoff,
    /// It waits for its turn.
    Queued,
    /// Kueue: it would borrow, and a workload of its cohort that need not came first in the cycle.
    BorrowingBlocked,
    /// Kueue: a victim was taken for another workload in the same cycle.
    VictimTaken,
    /// Kueue: workloads before it in the cycle took the quota.
    QuotaTaken,
}

impl WaitReason {
    /// The reason of a law with this name.
    pub(crate) fn of_law(law: &Law, name: &'static str) -> Self {
        match law {
            Law::PreemptionInProgress { .. } => Self::ActionInFlight,
            _ => Self::Law(name),
        }
    }

    /// The reason of a workload that a cycle skips.
    pub(crate) fn of_skip(skip: SkipReason) -> Self {
        match skip {
            SkipReason::BorrowingBlocked { .. } => Self::BorrowingBlocked,
            SkipReason::VictimTaken { .. } => Self::VictimTaken,
            SkipReason::QuotaTaken => Self::QuotaTaken,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Law(name) => name,
            Self::NoFeasiblePlan => "NoFeasiblePlan",
            Self::GangIncomplete => "GangIncomplete",
            Self::AwaitingApiState => "AwaitingApiState",
            Self::ActionInFlight => "ActionInFlight",
            Self::WaitingForOlderUnit => "WaitingForOlderUnit",
            Self::BehindQueueHead => "BehindQueueHead",
            Self::InvalidObject => "InvalidObject",
            Self::InternalError => "InternalError",
            Self::Backoff => "Backoff",
            Self::Queued => "Queued",
            Self::BorrowingBlocked => "BorrowingBlocked",
            Self::VictimTaken => "VictimTaken",
            Self::QuotaTaken => "QuotaTaken",
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a condition's message is about this subject: it is the subject, or begins with it and `: `. A condition is rewritten only when
/// its subject changes, so the written message is compared, never parsed.
pub(crate) fn is_about(message: &str, subject: &str) -> bool {
    message.strip_prefix(subject).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All reasons but laws.
    const ALL: [WaitReason; 13] = [
        WaitReason::NoFeasiblePlan,
        WaitReason::GangIncomplete,
        WaitReason::AwaitingApiState,
        WaitReason::ActionInFlight,
        WaitReason::WaitingForOlderUnit,
        WaitReason::BehindQueueHead,
        WaitReason::InvalidObject,
        WaitReason::InternalError,
        WaitReason::Backoff,
        WaitReason::Queued,
        WaitReason::BorrowingBlocked,
        WaitReason::VictimTaken,
        WaitReason::QuotaTaken,
    ];

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = ALL.into_iter().map(WaitReason::as_str).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_message_is_about_what_it_begins_with() {
        assert!(is_about("NoFeasiblePlan: no node has room for it", "NoFeasiblePlan"));
        assert!(is_about("NoFeasiblePlan", "NoFeasiblePlan"));
        assert!(!is_about("NoPlanet: far away", "NoFeasiblePlan"));
        assert!(!is_about("Never: NoFeasiblePlan: x", "NoFeasiblePlan"));
    }
}

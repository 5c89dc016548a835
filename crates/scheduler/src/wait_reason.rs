//! The reasons for which units wait. `docs/laws.md#why-a-unit-is-pending` lists them for users.

use std::fmt;

use reprieve_engine::policy::kueue::SkipReason;

/// Why a unit waits. The name of the reason is the label `reason` of the metric `reprieve_pending_units`, and the message of the unit's
/// condition starts with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// The law with this name refuses the unit or makes it wait.
    Law(&'static str),
    /// No set of victims that the policy allows is enough.
    NoFeasiblePlan,
    /// Pods of the unit are missing, or pods of an earlier start are still terminating.
    GangIncomplete,
    /// The outcome of an action on the unit's pods or victims is not known yet.
    AwaitingApiState,
    /// An action for the unit is in flight.
    ActionInFlight,
    /// A unit that has waited longer, or that was preempted, is scheduled first.
    WaitingForOlderUnit,
    /// Another workload of the same queue is considered first.
    BehindQueueHead,
    /// The object is invalid.
    InvalidObject,
    /// The decision about the unit panicked.
    InternalError,
    /// An action for the unit failed and is retried later.
    Backoff,
    /// The unit has not been decided since something relevant changed.
    Queued,
    /// Kueue: the workload needs to borrow; a workload of the same cohort that does not went first in the cycle.
    BorrowingBlocked,
    /// Kueue: another workload preempted one of the victims in the same cycle.
    VictimTaken,
    /// Kueue: earlier workloads in the cycle took the quota.
    QuotaTaken,
}

impl WaitReason {
    /// Victims of the unit are terminating. The name is that of [`Law::PreemptionInProgress`](reprieve_engine::laws::Law), which makes the
    /// unit wait under the same condition.
    pub(crate) const PREEMPTION_IN_PROGRESS: Self = Self::Law("PreemptionInProgress");

    pub(crate) fn of_skip(skip: SkipReason) -> Self {
        match skip {
            SkipReason::BorrowingBlocked { .. } => Self::BorrowingBlocked,
            SkipReason::VictimTaken { .. } => Self::VictimTaken,
            SkipReason::QuotaTaken => Self::QuotaTaken,
        }
    }

    /// The code of the reason.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All reasons except laws.
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
}

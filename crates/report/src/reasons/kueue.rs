//! Text of the laws of policy Kueue.

use reprieve_engine::{Priority, ShareMilli};

use super::{ReasonText, after_others, reason_text};

pub fn namespace_not_selected(queue: &str) -> ReasonText {
    let text = format!("the namespaceSelector of ClusterQueue {queue} does not select the namespace");
    reason_text("NamespaceNotSelected", text)
}

pub fn invalid_resources() -> ReasonText {
    let text = "a request of a pod exceeds its limit, or a LimitRange of the namespace forbids it";
    reason_text("InvalidResources", text)
}

pub fn other_cohort() -> ReasonText {
    reason_text("OtherCohort", "the ClusterQueue shares no cohort with the preemptor's")
        .of_many("the ClusterQueues share no cohort with the preemptor's")
}

pub fn queue_policy_never() -> ReasonText {
    let text = |unit: &str| format!("the preemption policy of the preemptor's ClusterQueue is Never for {unit}");
    reason_text("QueuePolicyNever", text("this workload")).of_many(text("these workloads"))
}

pub fn within_quota(queue: &str, has_lost: bool) -> ReasonText {
    let after = after_others(has_lost);
    reason_text("WithinQuota", format!("{queue} uses no more than its own quota of what is missing{after}"))
        .of_many("the queues use no more than their own quota of what is missing, some only after other evictions")
}

pub fn fair_share(own: ShareMilli, queue: &str, theirs: ShareMilli, is_final: bool) -> ReasonText {
    let (own, theirs) = (share(own), share(theirs));
    let compared = match is_final {
        true => format!("above the {theirs} of {queue} without the workload"),
        false => format!("not below the {theirs} of {queue}"),
    };
    reason_text("FairShare", format!("the preemptor's fair share (in thousandths) is {own}, {compared}"))
        .of_many("the preemptor's fair share is too large compared with the shares of their queues")
}

pub fn above_threshold(threshold: Priority) -> ReasonText {
    let text = |verb: &str| format!("{verb} above {}, the highest that a borrower may preempt", threshold.0);
    reason_text("AboveThreshold", text("priority is")).of_many(text("priorities are"))
}

/// A share in thousandths.
pub(crate) fn share(share: ShareMilli) -> String {
    match share {
        ShareMilli::Finite(thousandths) => thousandths.to_string(),
        ShareMilli::Infinite => "infinite".to_owned(),
    }
}

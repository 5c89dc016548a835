//! Laws of policy Kueue.

use reprieve_engine::{Priority, ShareMilli};

use super::{ReasonText, reason_text};

pub fn namespace(queue: &str) -> ReasonText {
    reason_text(
        "NamespaceNotSelected",
        format!("the namespaceSelector of ClusterQueue {queue} does not take its namespace"),
    )
}

pub fn invalid_resources() -> ReasonText {
    let text = "a request of its pods exceeds its limit, or a LimitRange of its namespace forbids it";
    reason_text("InvalidResources", text)
}

pub fn other_cohort() -> ReasonText {
    reason_text("OtherCohort", "its queue is in no cohort with the preemptor's")
        .of_many("their queues are in no cohort with the preemptor's")
}

pub fn keeps_peace() -> ReasonText {
    reason_text("QueuePolicyNever", "the preemptor's queue has the policy Never for it")
        .of_many("the preemptor's queue has the policy Never for them")
}

pub fn within_quota(queue: &str, has_lost: bool) -> ReasonText {
    let lost = if has_lost { " once other workloads of it are taken" } else { "" };
    reason_text("WithinQuota", format!("{queue} uses no more than its own quota{lost}"))
        .of_many("their queues use no more than their own quota, some only once others are taken")
}

pub fn fair_share(own: ShareMilli, queue: &str, theirs: ShareMilli, is_final: bool) -> ReasonText {
    let (own, theirs) = (share(own), share(theirs));
    let compared = match is_final {
        true => format!("is above that of {queue} without it, {theirs}"),
        false => format!("is not below that of {queue}, {theirs}"),
    };
    reason_text("FairShare", format!("the preemptor's share in thousandths, {own}, {compared}"))
        .of_many("fair sharing does not allow it: the preemptor's share is too large beside theirs")
}

pub fn above_threshold(threshold: Priority) -> ReasonText {
    let text = format!("its priority is above {}, up to which a borrower may preempt", threshold.0);
    reason_text("AboveThreshold", text)
}

/// A share in thousandths.
pub(crate) fn share(share: ShareMilli) -> String {
    match share {
        ShareMilli::Finite(thousandths) => thousandths.to_string(),
        ShareMilli::Infinite => "infinite".to_owned(),
    }
}

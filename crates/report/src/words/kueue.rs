//! Laws of policy Kueue.

use reprieve_engine::{Priority, Thousandths};

use super::{Words, words};

pub fn namespace(queue: &str) -> Words {
    words("Namespace", format!("the namespaceSelector of ClusterQueue {queue} does not take its namespace"))
}

pub fn invalid_resources() -> Words {
    let text = "a request of its pods exceeds its limit, or a LimitRange of its namespace forbids it";
    words("InvalidResources", text)
}

pub fn other_cohort() -> Words {
    words("OtherCohort", "its queue is in no cohort with the preemptor's")
        .of_many("their queues are in no cohort with the preemptor's")
}

pub fn keeps_peace() -> Words {
    words("KeepsPeace", "the preemptor's queue has the policy Never for it")
        .of_many("the preemptor's queue has the policy Never for them")
}

pub fn within_quota(queue: &str, has_lost: bool) -> Words {
    let lost = if has_lost { " once other workloads of it are taken" } else { "" };
    words("WithinQuota", format!("{queue} uses no more than its own quota{lost}"))
        .of_many("their queues use no more than their own quota, some only once others are taken")
}

pub fn fair_share(own: Thousandths, queue: &str, theirs: Thousandths, is_final: bool) -> Words {
    let (own, theirs) = (share(own), share(theirs));
    let compared = match is_final {
        true => format!("is above that of {queue} without it, {theirs}"),
        false => format!("is not below that of {queue}, {theirs}"),
    };
    words("FairShare", format!("the preemptor's share in thousandths, {own}, {compared}"))
        .of_many("fair sharing does not allow it: the preemptor's share is too large beside theirs")
}

pub fn above_threshold(threshold: Priority) -> Words {
    let text = format!("its priority is above {}, up to which a borrower may preempt", threshold.0);
    words("AboveThreshold", text)
}

/// A share in thousandths.
pub(crate) fn share(share: Thousandths) -> String {
    match share {
        Thousandths::Finite(thousandths) => thousandths.to_string(),
        Thousandths::Infinite => "infinite".to_owned(),
    }
}

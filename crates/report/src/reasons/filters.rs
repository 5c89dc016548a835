//! Text of the filters that refuse a pod on a node, and of the reasons why preemption does not help there.

use std::collections::BTreeSet;

use reprieve_api::NamespacedName;
use reprieve_engine::explanation::NodeRefusal;
use reprieve_engine::filters::FilterFailure;
use reprieve_engine::fit::Shortage;
use reprieve_loader::Names;

use super::{ReasonText, amount, law, list, reason_text};
use crate::plural::count;

/// The filter that refuses a pod on a node. If the filter is about resources, a queue limit or host ports, `shortages` may list every resource
/// that is short; if it is empty, because no explanation was recorded, the text names only the resource in `failure`.
pub fn filter_failure(failure: &FilterFailure, shortages: &[Shortage], names: &Names) -> ReasonText {
    let all = || list(shortages.iter().map(|shortage| shortage_text(shortage, names)));
    match *failure {
        FilterFailure::Cordon => reason_text("Cordon", "the node is cordoned"),
        FilterFailure::Taint(taint) => reason_text("Taint", format!("taint {} is not tolerated", names.taint(&taint))),
        FilterFailure::NodeSelection => {
            reason_text("NodeSelection", "the node selector or node affinity excludes the node")
        }
        FilterFailure::ResizeDisabled => {
            reason_text("ResizeDisabled", "the node does not allow preemption for a resize")
        }
        FilterFailure::Ports if shortages.is_empty() => reason_text("Ports", "a required host port is in use"),
        FilterFailure::Ports => reason_text("Ports", format!("a required host port is in use; short of {}", all())),
        FilterFailure::Resource { resource, short, .. } => {
            let short = if shortages.is_empty() { amount(resource, short, names) } else { all() };
            reason_text("Resources", format!("short of {short}"))
        }
        FilterFailure::QueueLimit { queue, resource, over } => {
            let over = if shortages.is_empty() { amount(resource, over, names) } else { all() };
            reason_text("QueueLimit", format!("queue {} would exceed its maximum by {over}", names.queue(queue)))
        }
        FilterFailure::SpreadLabel(topology) => {
            let label = names.topology(topology);
            reason_text("SpreadLabel", format!("the node lacks the label {label} of a topology spread constraint"))
        }
        FilterFailure::Spread { topology, skew, max_skew } => {
            let label = names.topology(topology);
            reason_text("Spread", format!("the skew over {label} would be {skew}, above the maximum of {max_skew}"))
        }
        FilterFailure::Affinity => reason_text("Affinity", "no running pod satisfies the required pod affinity"),
        FilterFailure::AntiAffinity(topology) => {
            let label = names.topology(topology);
            reason_text("AntiAffinity", format!("required anti-affinity to a pod on a node with the same {label}"))
        }
        FilterFailure::OthersAntiAffinity(topology) => {
            let label = names.topology(topology);
            reason_text(
                "OthersAntiAffinity",
                format!("a pod on a node with the same {label} has required anti-affinity to this pod"),
            )
        }
    }
}

/// Why a pod cannot land on a node, even with preemption; `shortages` as for [`filter_failure`].
pub fn node_refusal(refusal: &NodeRefusal, shortages: &[Shortage], names: &Names) -> ReasonText {
    let (failure, suffix) = match refusal {
        NodeRefusal::FilterFailed(failure) if failure.resolvable() => (failure, ", even without all candidates"),
        NodeRefusal::FilterFailed(failure) => (failure, ""),
        NodeRefusal::NoCandidate(failure) => (failure, ", and no pod there may be evicted"),
        NodeRefusal::Law(reason) => return law(reason, names),
    };
    let ReasonText { name, text, .. } = filter_failure(failure, shortages, names);
    reason_text(name, format!("{text}{suffix}"))
}

/// The room of a node is not known, because these pods on it are set aside.
pub fn unknown_room(pods: &BTreeSet<NamespacedName>) -> ReasonText {
    let first = pods.first().map(ToString::to_string).unwrap_or_default();
    let (others, are) = match pods.len() {
        0 | 1 => (String::new(), "is"),
        all => (format!(" and {}", count(all - 1, "other pod", "other pods")), "are"),
    };
    let text = format!("the free room of the node is unknown, because pod {first}{others} on it {are} set aside");
    reason_text("Resources", text)
}

fn shortage_text(shortage: &Shortage, names: &Names) -> String {
    let short = amount(shortage.resource, shortage.amount, names);
    if shortage.beyond { format!("{short} (requests more than the whole node has)") } else { short }
}

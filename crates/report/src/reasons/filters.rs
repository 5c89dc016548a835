//! Filters, and why a node is refused.

use reprieve_engine::explanation::NodeRefusal;
use reprieve_engine::filters::FilterFailure;
use reprieve_engine::fit::Shortage;
use reprieve_loader::Names;

use super::{ReasonText, amount, law, list, reason_text};

/// A filter that refuses a pod on a node. Where resources or the limit of a queue are why, `shortages` are all of them; where it is
/// empty, the first is named. Where a host port is why, `shortages` are the resources that are short, too.
pub fn misfit(misfit: &FilterFailure, shortages: &[Shortage], names: &Names) -> ReasonText {
    let all = || list(shortages.iter().map(|shortage| shortage_words(shortage, names)));
    match *misfit {
        FilterFailure::Cordon => reason_text("Cordon", "the node is cordoned"),
        FilterFailure::Taint(taint) => reason_text("Taint", format!("taint {} is not tolerated", names.taint(&taint))),
        FilterFailure::NodeSelection => {
            reason_text("NodeSelection", "its node selector or node affinity excludes the node")
        }
        FilterFailure::ResizeDisabled => reason_text("ResizeDisabled", "the node lets no resize preempt"),
        FilterFailure::Ports if shortages.is_empty() => reason_text("Ports", "a host port that it needs is taken"),
        FilterFailure::Ports => {
            reason_text("Ports", format!("a host port that it needs is taken, and it is short of {}", all()))
        }
        FilterFailure::Resource { resource, short, .. } => {
            let short = if shortages.is_empty() { amount(resource, short, names) } else { all() };
            reason_text("Resources", format!("short of {short}"))
        }
        FilterFailure::QueueLimit { queue, resource, over } => {
            let over = if shortages.is_empty() { amount(resource, over, names) } else { all() };
            reason_text("QueueLimit", format!("queue {} would be over its maximum by {over}", names.queue(queue)))
        }
        FilterFailure::SpreadLabel(topology) => {
            reason_text("SpreadLabel", format!("the node lacks the label {} to spread by", names.topology(topology)))
        }
        FilterFailure::Spread { topology, skew, max_skew } => reason_text(
            "Spread",
            format!(
                "uneven over {}: the skew would be {skew}, at most {max_skew} is allowed",
                names.topology(topology)
            ),
        ),
        FilterFailure::Affinity => reason_text("Affinity", "no pod that it must run beside is there"),
        FilterFailure::AntiAffinity(topology) => reason_text(
            "AntiAffinity",
            format!("a pod that it must not share {} with is there", names.topology(topology)),
        ),
        FilterFailure::OthersAntiAffinity(topology) => reason_text(
            "OthersAntiAffinity",
            format!("a pod is there that must not share {} with it", names.topology(topology)),
        ),
    }
}

/// Why a node is refused, even with preemption; `shortages` as for [`misfit`].
pub fn refusal(refusal: &NodeRefusal, shortages: &[Shortage], names: &Names) -> ReasonText {
    match refusal {
        NodeRefusal::FilterFailed(filter) if filter.resolvable() => {
            let ReasonText { name, text, .. } = misfit(filter, shortages, names);
            reason_text(name, format!("{text}, even with every candidate gone"))
        }
        NodeRefusal::FilterFailed(filter) => misfit(filter, shortages, names),
        NodeRefusal::NoCandidate(filter) => {
            let ReasonText { name, text, .. } = misfit(filter, shortages, names);
            reason_text(name, format!("{text}, and nobody there may be taken"))
        }
        NodeRefusal::Law(reason) => law(reason, names),
    }
}

fn shortage_words(shortage: &Shortage, names: &Names) -> String {
    let short = amount(shortage.resource, shortage.amount, names);
    if shortage.beyond { format!("{short} (asks for more than the whole node has)") } else { short }
}

//! Filters, and why a node is refused.

use reprieve_engine::explanation::NodeRefusal;
use reprieve_engine::filters::Misfit;
use reprieve_engine::fit::Shortage;
use reprieve_loader::Names;

use super::{Words, amount, law, list, words};

/// A filter that refuses a pod on a node. Where resources or the limit of a queue are why, `shortages` are all of them; where it is
/// empty, the first is named. Where a host port is why, `shortages` are the resources that are short, too.
pub fn misfit(misfit: &Misfit, shortages: &[Shortage], names: &Names) -> Words {
    let all = || list(shortages.iter().map(|shortage| shortage_words(shortage, names)));
    match *misfit {
        Misfit::Cordon => words("Cordon", "the node is cordoned"),
        Misfit::Taint(taint) => words("Taint", format!("taint {} is not tolerated", names.taint(&taint))),
        Misfit::NodeSelection => words("NodeSelection", "its node selector or node affinity excludes the node"),
        Misfit::ResizeDisabled => words("ResizeDisabled", "the node lets no resize preempt"),
        Misfit::Ports if shortages.is_empty() => words("Ports", "a host port that it needs is taken"),
        Misfit::Ports => words("Ports", format!("a host port that it needs is taken, and it is short of {}", all())),
        Misfit::Resource { resource, short, .. } => {
            let short = if shortages.is_empty() { amount(resource, short, names) } else { all() };
            words("Resources", format!("short of {short}"))
        }
        Misfit::Ceiling { queue, resource, over } => {
            let over = if shortages.is_empty() { amount(resource, over, names) } else { all() };
            words("Ceiling", format!("queue {} would be over its maximum by {over}", names.queue(queue)))
        }
        Misfit::SpreadLabel(topology) => {
            words("SpreadLabel", format!("the node lacks the label {} to spread by", names.topology(topology)))
        }
        Misfit::Spread { topology, skew, max_skew } => words(
            "Spread",
            format!(
                "uneven over {}: the skew would be {skew}, at most {max_skew} is allowed",
                names.topology(topology)
            ),
        ),
        Misfit::Affinity => words("Affinity", "no pod that it must run beside is there"),
        Misfit::AntiAffinity(topology) => {
            words("AntiAffinity", format!("a pod that it must not share {} with is there", names.topology(topology)))
        }
        Misfit::OthersAntiAffinity(topology) => words(
            "OthersAntiAffinity",
            format!("a pod is there that must not share {} with it", names.topology(topology)),
        ),
    }
}

/// Why a node is refused, even with preemption; `shortages` as for [`misfit`].
pub fn refusal(refusal: &NodeRefusal, shortages: &[Shortage], names: &Names) -> Words {
    match refusal {
        NodeRefusal::Misfit(filter) if filter.resolvable() => {
            let Words { name, text, .. } = misfit(filter, shortages, names);
            words(name, format!("{text}, even with every candidate gone"))
        }
        NodeRefusal::Misfit(filter) => misfit(filter, shortages, names),
        NodeRefusal::NoCandidate(filter) => {
            let Words { name, text, .. } = misfit(filter, shortages, names);
            words(name, format!("{text}, and nobody there may be taken"))
        }
        NodeRefusal::Law(reason) => law(reason, names),
    }
}

fn shortage_words(shortage: &Shortage, names: &Names) -> String {
    let short = amount(shortage.resource, shortage.amount, names);
    if shortage.beyond { format!("{short} (asks for more than the whole node has)") } else { short }
}

//! Reasons are values; here they become words. Every law and every filter has one name and one sentence.

use reprieve_engine::explanation::NodeRefusal;
use reprieve_engine::filters::Misfit;
use reprieve_engine::fit::Shortage;
use reprieve_engine::laws::{About, Law, TooLittle};
use reprieve_engine::{ResourceId, Thousandths, Timestamp};

use crate::load::time;
use crate::names::Names;
use crate::quantity::written;

/// A name that programs compare and a sentence that people read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Words {
    /// One word.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub text: String,
}

fn words(name: &'static str, text: impl Into<String>) -> Words {
    Words { name, text: text.into() }
}

/// A law.
pub fn law(law: &Law, names: &Names) -> Words {
    match law {
        Law::Priority { candidate } => {
            words("Priority", format!("its priority {} is not below the preemptor's", candidate.0))
        }
        Law::Toleration { pod, until: Some(until) } => {
            words("Toleration", format!("{} tolerates this preemptor until {}", names.pod(*pod), moment(*until)))
        }
        Law::Toleration { pod, until: None } => {
            words("Toleration", format!("{} tolerates this preemptor for ever", names.pod(*pod)))
        }
        Law::Protected => words("Protected", "nobody is preempted in its namespace".to_owned()),
        Law::OptOut { pod } => words("OptOut", format!("{} opted out of being preempted", names.pod(*pod))),
        Law::UnknownClass { pod } => words(
            "UnknownClass",
            format!("{} names a PriorityClass that is not defined, so its rights are unknown", names.pod(*pod)),
        ),
        Law::Never => words("Never", "its preemptionPolicy is Never"),
        Law::SchedulingGates { pod, gates, gated } => {
            let gates: Vec<&str> = gates.iter().map(|&gate| names.text(gate)).collect();
            let others = match gated {
                0 | 1 => String::new(),
                gated => format!(", and so do {} more of its pods", gated - 1),
            };
            let pod = names.pod(*pod);
            words("SchedulingGates", format!("pod {pod} waits for its scheduling gates: {}{others}", gates.join(", ")))
        }
        Law::OtherScheduler { pod, members: 1 } => words(
            "OtherScheduler",
            format!("too few of its pods are left: {} names another scheduler", names.pod(*pod)),
        ),
        Law::OtherScheduler { pod, members } => words(
            "OtherScheduler",
            format!(
                "too few of its pods are left: {members} of them name another scheduler, {} for one",
                names.pod(*pod)
            ),
        ),
        Law::Unsupported { pod, field } => {
            let of = pod.map(|pod| format!("pod {}: ", names.pod(pod))).unwrap_or_default();
            words("Unsupported", format!("{of}{} is a requirement that Reprieve does not evaluate", names.text(*field)))
        }
        Law::Disagreement { member, about: About::Priority { member: own, group } } => words(
            "Disagreement",
            format!("{} has priority {}, but its group has {}", names.pod(*member), own.0, group.0),
        ),
        Law::Disagreement { member, about: About::Preempting { member: own, group } } => {
            let policy = |preempts: bool| if preempts { "PreemptLowerPriority" } else { "Never" };
            let (own, group) = (policy(*own), policy(*group));
            let member = names.pod(*member);
            words("Disagreement", format!("{member} has preemptionPolicy {own}, but its group has {group}"))
        }
        Law::OwnJob => words("OwnJob", "it is of the preemptor's own job"),
        Law::NotPreemptible => words("NotPreemptible", "it cannot be preempted, by its label or by default"),
        Law::NoTrigger => words(
            "NoTrigger",
            "it does not say quota.scheduling.koordinator.sh/can-preempt: \"true\", which is required",
        ),
        Law::TooFewMembers { members, needed } => {
            words("TooFewMembers", format!("its job has {members} of the {needed} pods that it needs"))
        }
        Law::QuotaLimit { queue, over } => {
            let over = list(over.iter().map(|(resource, over)| amount(*resource, *over, names)));
            words("QuotaLimit", format!("its job would pass the limit of quota {} by {over}", names.queue(*queue)))
        }
        Law::Inactive => words("Inactive", "its spec.active is false, so that it asks for no quota"),
        Law::Namespace { queue } => words(
            "Namespace",
            format!("the namespaceSelector of ClusterQueue {} does not take its namespace", names.queue(*queue)),
        ),
        Law::InvalidResources => words(
            "InvalidResources",
            "a request of its pods exceeds its limit, or a LimitRange of its namespace forbids it",
        ),
        Law::OtherCohort => words("OtherCohort", "its queue is in no cohort with the preemptor's"),
        Law::NotContested => words("NotContested", "it holds nothing of what is short"),
        Law::KeepsPeace => words("KeepsPeace", "the preemptor's queue has the policy Never for it"),
        Law::WithinQuota { queue, has_lost } => {
            let lost = if *has_lost { " once other workloads of it are taken" } else { "" };
            words("WithinQuota", format!("{} uses no more than its own quota{lost}", names.queue(*queue)))
        }
        Law::FairShare { own, queue, theirs, is_final } => {
            let (own, theirs, queue) = (share(*own), share(*theirs), names.queue(*queue));
            let compared = match is_final {
                true => format!("is above that of {queue} without it, {theirs}"),
                false => format!("is not below that of {queue}, {theirs}"),
            };
            words("FairShare", format!("the preemptor's share in thousandths, {own}, {compared}"))
        }
        Law::AboveThreshold { threshold } => words(
            "AboveThreshold",
            format!("its priority is above {}, up to which a borrower may preempt", threshold.0),
        ),
        Law::NotUnderGuarantee { queue, short } => {
            let queue = names.queue(*queue);
            let text = if short.is_empty() {
                format!("queue {queue} is guaranteed nothing of what it asks for, and neither is a queue above it")
            } else {
                format!("queue {queue} has too little left of its guarantee: {}", too_little(short, names))
            };
            words("NotUnderGuarantee", text)
        }
        Law::TooLarge { queue, short } => {
            let queue = names.queue(*queue);
            let left = list(short.iter().map(|one| amount(one.resource, one.left, names)));
            let text = match short.as_slice() {
                [] => format!("queue {queue} has no guarantee by which to take it"),
                _ => format!("it is larger than what queue {queue} has left of its guarantee: {left}"),
            };
            words("TooLarge", text)
        }
        Law::NotOverGuarantee { queue, left } => {
            let queue = names.queue(*queue);
            let left = left.map(|(resource, left)| {
                let name = names.resource(resource);
                format!(": {} {} of it are left", written(name, left), unit(name))
            });
            words("NotOverGuarantee", format!("queue {queue} is not over its guarantee{}", left.unwrap_or_default()))
        }
        Law::KeepsGuarantee { queue, resource, guarantee, after } => {
            let name = names.resource(*resource);
            let (after, guarantee) = (written(name, *after), written(name, *guarantee));
            let queue = names.queue(*queue);
            words(
                "KeepsGuarantee",
                format!("queue {queue} would be left with {after} of the {guarantee} {} it is guaranteed", unit(name)),
            )
        }
        Law::HigherPriority { candidate, limit } => words(
            "HigherPriority",
            match limit {
                Some(limit) => {
                    format!("its priority {} is above {}, up to which its queue yields", candidate.0, limit.0)
                }
                None => format!("its priority {} is behind a priority fence", candidate.0),
            },
        ),
        Law::Fence { root: Some(root) } => {
            words("Fence", format!("it is outside {}, the preemptor's fence", names.queue(*root)))
        }
        Law::Fence { root: None } => words("Fence", "the preemptor is in no queue"),
        Law::OwnQueue => words("OwnQueue", "it is in the preemptor's own queue"),
        Law::QueueDisabled { queue } => words("QueueDisabled", format!("queue {} yields nobody", names.queue(*queue))),
        Law::NoQueue => words("NoQueue", "it is in no queue"),
        Law::DaemonSet => words("DaemonSet", "it belongs to a DaemonSet"),
        Law::Leaving => words("Leaving", "it is leaving already"),
        Law::PreemptionDisabled => words("PreemptionDisabled", "preemption is switched off in the partition"),
        Law::Delay { until } => words("Delay", format!("it may preempt from {} on", moment(*until))),
        Law::Ceiling { queue } => words("Ceiling", format!("queue {} would be over its maximum", names.queue(*queue))),
        Law::Reserved { pod } => words("Reserved", format!("the node is reserved for {}", names.pod(*pod))),
        Law::Underway { leaving, nodes, until } => {
            let nodes: Vec<&str> = nodes.iter().map(|&node| names.node(node)).collect();
            let pods = match leaving.as_slice() {
                [pod] => names.pod(*pod).to_string(),
                pods => format!("{} pods", pods.len()),
            };
            words(
                "Underway",
                format!("{pods} preempted for it must leave {} first, until {}", nodes.join(", "), moment(*until)),
            )
        }
    }
}

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
            let Words { name, text } = misfit(filter, shortages, names);
            words(name, format!("{text}, even with every candidate gone"))
        }
        NodeRefusal::Misfit(filter) => misfit(filter, shortages, names),
        NodeRefusal::NoCandidate(filter) => {
            let Words { name, text } = misfit(filter, shortages, names);
            words(name, format!("{text}, and nobody there may be taken"))
        }
        NodeRefusal::Law(reason) => law(reason, names),
    }
}

/// A share in thousandths.
pub(crate) fn share(share: Thousandths) -> String {
    match share {
        Thousandths::Finite(thousandths) => thousandths.to_string(),
        Thousandths::Infinite => "infinite".to_owned(),
    }
}

/// A moment in RFC 3339.
pub fn moment(timestamp: Timestamp) -> String {
    time(timestamp).map_or_else(|| "the end of time".to_owned(), |time| time.to_string())
}

fn shortage_words(shortage: &Shortage, names: &Names) -> String {
    let short = amount(shortage.resource, shortage.amount, names);
    if shortage.beyond { format!("{short} (asks for more than the whole node has)") } else { short }
}

/// `2 cpu`, `1 pod slots`.
fn amount(resource: ResourceId, amount: i64, names: &Names) -> String {
    let name = names.resource(resource);
    format!("{} {}", written(name, amount), unit(name))
}

/// `1 cpu of 4 asked and 0 nvidia.com/gpu of 3 asked`. A guarantee that is overdrawn has nothing left.
fn too_little(short: &[TooLittle], names: &Names) -> String {
    list(short.iter().map(|one| {
        let total = written(names.resource(one.resource), one.asked);
        format!("{} of {total} asked", amount(one.resource, one.left.max(0), names))
    }))
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        items => items.concat(),
    }
}

fn unit(resource: &str) -> &str {
    if resource == "pods" { "pod slots" } else { resource }
}

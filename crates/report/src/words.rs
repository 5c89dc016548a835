//! Reasons are values; here they become words. Every law and every filter has one name and one sentence.

mod filters;
mod kueue;
mod shared;
mod yunikorn;

use reprieve_engine::laws::Law;
use reprieve_engine::{ResourceId, Timestamp};

pub use filters::{misfit, refusal};
pub(crate) use kueue::share;
use reprieve_api::quantity::written;
use reprieve_loader::Names;
use reprieve_loader::time::time;

/// A name that programs compare and a sentence that people read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Words {
    /// One word.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub text: String,
    /// The sentence about several units, where it is another one.
    pub of_many: Option<String>,
}

impl Words {
    /// With another sentence about several units.
    pub(crate) fn of_many(self, text: impl Into<String>) -> Self {
        Self { of_many: Some(text.into()), ..self }
    }
}

pub(crate) fn words(name: &'static str, text: impl Into<String>) -> Words {
    Words { name, text: text.into(), of_many: None }
}

/// A law. Longer texts are in a file for each policy that has several, those of other laws in `shared`.
pub fn law(law: &Law, names: &Names) -> Words {
    match law {
        // Shared laws.
        Law::Priority { candidate } => shared::priority(*candidate),
        Law::Toleration { pod, until } => shared::toleration(names.pod(*pod), *until),
        Law::Protected => words("Protected", "nobody is preempted in its namespace")
            .of_many("nobody is preempted in their namespaces"),
        Law::OptOut { pod } => words("OptOut", format!("{} opted out of being preempted", names.pod(*pod)))
            .of_many("they opted out of being preempted"),
        Law::UnknownClass { pod } => shared::unknown_class(names.pod(*pod)),
        Law::Never => words("Never", "its preemptionPolicy is Never"),
        Law::SchedulingGates { pod, gates, gated } => shared::scheduling_gates(*pod, gates, *gated, names),
        Law::OtherScheduler { pod, members } => shared::other_scheduler(names.pod(*pod), *members),
        Law::Unsupported { pod, field } => shared::unsupported(*pod, names.text(*field), names),
        Law::NoQueue => words("NoQueue", "it is in no queue").of_many("they are in no queue"),
        Law::Delay { until } => words("Delay", format!("it may preempt from {} on", moment(*until))),
        Law::Underway { leaving, nodes, until } => shared::underway(leaving, nodes, *until, names),
        // Kubernetes.
        Law::Disagreement { member, about } => shared::disagreement(names.pod(*member), about),
        // YuniKorn.
        Law::NotUnderGuarantee { queue, short } => yunikorn::not_under_guarantee(*queue, short, names),
        Law::TooLarge { queue, short } => yunikorn::too_large(*queue, short, names),
        Law::NotOverGuarantee { queue, left } => yunikorn::not_over_guarantee(*queue, *left, names),
        Law::KeepsGuarantee { queue, resource, guarantee, after } => {
            yunikorn::keeps_guarantee(*queue, *resource, *guarantee, *after, names)
        }
        Law::HigherPriority { candidate, limit } => yunikorn::higher_priority(*candidate, *limit),
        Law::Fence { root } => yunikorn::fence(*root, names),
        Law::OwnQueue => {
            words("OwnQueue", "it is in the preemptor's own queue").of_many("they are in the preemptor's own queue")
        }
        Law::QueueDisabled { queue } => words("QueueDisabled", format!("queue {} yields nobody", names.queue(*queue))),
        Law::DaemonSet => words("DaemonSet", "it belongs to a DaemonSet").of_many("they belong to DaemonSets"),
        Law::Leaving => words("Leaving", "it is leaving already").of_many("they are leaving already"),
        Law::PreemptionDisabled => words("PreemptionDisabled", "preemption is switched off in the partition"),
        Law::Ceiling { queue } => words("Ceiling", format!("queue {} would be over its maximum", names.queue(*queue))),
        Law::Reserved { pod } => words("Reserved", format!("the node is reserved for {}", names.pod(*pod))),
        // Koordinator.
        Law::OwnJob => words("OwnJob", "it is of the preemptor's own job"),
        Law::NotPreemptible => words("NotPreemptible", "it cannot be preempted, by its label or by default"),
        Law::NoTrigger => words(
            "NoTrigger",
            "it does not say quota.scheduling.koordinator.sh/can-preempt: \"true\", which is required",
        ),
        Law::TooFewMembers { members, needed } => {
            words("TooFewMembers", format!("its job has {members} of the {needed} pods that it needs"))
        }
        Law::QuotaLimit { queue, over } => shared::quota_limit(*queue, over, names),
        // Kueue.
        Law::Inactive => words("Inactive", "its spec.active is false, so that it asks for no quota"),
        Law::Namespace { queue } => kueue::namespace(names.queue(*queue)),
        Law::InvalidResources => kueue::invalid_resources(),
        Law::OtherCohort => kueue::other_cohort(),
        Law::NotContested => {
            words("NotContested", "it holds nothing of what is short").of_many("they hold nothing of what is short")
        }
        Law::KeepsPeace => kueue::keeps_peace(),
        Law::WithinQuota { queue, has_lost } => kueue::within_quota(names.queue(*queue), *has_lost),
        Law::FairShare { own, queue, theirs, is_final } => {
            kueue::fair_share(*own, names.queue(*queue), *theirs, *is_final)
        }
        Law::AboveThreshold { threshold } => kueue::above_threshold(*threshold),
    }
}

/// A moment in RFC 3339.
pub fn moment(timestamp: Timestamp) -> String {
    time(timestamp).map_or_else(|| "the end of time".to_owned(), |time| time.to_string())
}

/// `2 cpu`, `1 pod slots`.
fn amount(resource: ResourceId, amount: i64, names: &Names) -> String {
    let name = names.resource(resource);
    format!("{} {}", written(name, amount), unit(name))
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

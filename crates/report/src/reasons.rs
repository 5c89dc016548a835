//! Reasons are values; here they become words. Every law and every filter has one name and one sentence.

mod filters;
mod kueue;
mod shared;
mod yunikorn;

use reprieve_engine::laws::Law;
use reprieve_engine::{ResourceId, Timestamp};

pub use filters::{misfit, refusal};
pub(crate) use kueue::share;
use reprieve_api::quantity::format;
use reprieve_loader::Names;
use reprieve_loader::time::time;

/// A name that programs compare and a sentence that people read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReasonText {
    /// One word.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub text: String,
    /// The sentence about several units, where it is another one.
    pub of_many: Option<String>,
}

impl ReasonText {
    /// With another sentence about several units.
    pub(crate) fn of_many(self, text: impl Into<String>) -> Self {
        Self { of_many: Some(text.into()), ..self }
    }
}

pub(crate) fn reason_text(name: &'static str, text: impl Into<String>) -> ReasonText {
    ReasonText { name, text: text.into(), of_many: None }
}

/// A law. Longer texts are in a file for each policy that has several, those of other laws in `shared`.
pub fn law(law: &Law, names: &Names) -> ReasonText {
    match law {
        // Shared laws.
        Law::Priority { candidate } => shared::priority(*candidate),
        Law::Toleration { pod, until } => shared::toleration(names.pod(*pod), *until),
        Law::ProtectedNamespace => reason_text("ProtectedNamespace", "nobody is preempted in its namespace")
            .of_many("nobody is preempted in their namespaces"),
        Law::OptOut { pod } => reason_text("OptOut", format!("{} opted out of being preempted", names.pod(*pod)))
            .of_many("they opted out of being preempted"),
        Law::UnknownPriorityClass { pod } => shared::unknown_class(names.pod(*pod)),
        Law::PreemptionPolicyNever => reason_text("PreemptionPolicyNever", "its preemptionPolicy is Never"),
        Law::SchedulingGates { pod, gates, gated } => shared::scheduling_gates(*pod, gates, *gated, names),
        Law::OtherScheduler { pod, members } => shared::other_scheduler(names.pod(*pod), *members),
        Law::Unsupported { pod, field } => shared::unsupported(*pod, names.text(*field), names),
        Law::NoQueue => reason_text("NoQueue", "it is in no queue").of_many("they are in no queue"),
        Law::PreemptionDelay { until } => {
            reason_text("PreemptionDelay", format!("it may preempt from {} on", format_time(*until)))
        }
        Law::PreemptionInProgress { terminating, nodes, until } => shared::underway(terminating, nodes, *until, names),
        // Kubernetes.
        Law::GroupMismatch { member, about } => shared::disagreement(names.pod(*member), about),
        // YuniKorn.
        Law::NotUnderGuarantee { queue, short } => yunikorn::not_under_guarantee(*queue, short, names),
        Law::ExceedsGuaranteeHeadroom { queue, short } => yunikorn::too_large(*queue, short, names),
        Law::NotOverGuarantee { queue, left } => yunikorn::not_over_guarantee(*queue, *left, names),
        Law::WouldBreakGuarantee { queue, resource, guarantee, after } => {
            yunikorn::keeps_guarantee(*queue, *resource, *guarantee, *after, names)
        }
        Law::HigherPriority { candidate, limit } => yunikorn::higher_priority(*candidate, *limit),
        Law::Fence { root } => yunikorn::fence(*root, names),
        Law::SameQueue => reason_text("SameQueue", "it is in the preemptor's own queue")
            .of_many("they are in the preemptor's own queue"),
        Law::QueueDisabled { queue } => {
            reason_text("QueueDisabled", format!("queue {} yields nobody", names.queue(*queue)))
        }
        Law::DaemonSet => reason_text("DaemonSet", "it belongs to a DaemonSet").of_many("they belong to DaemonSets"),
        Law::Terminating => reason_text("Terminating", "it is leaving already").of_many("they are leaving already"),
        Law::PreemptionDisabled => reason_text("PreemptionDisabled", "preemption is switched off in the partition"),
        Law::QueueLimit { queue } => {
            reason_text("QueueLimit", format!("queue {} would be over its maximum", names.queue(*queue)))
        }
        Law::NodeReserved { pod } => {
            reason_text("NodeReserved", format!("the node is reserved for {}", names.pod(*pod)))
        }
        // Koordinator.
        Law::SameJob => reason_text("SameJob", "it is of the preemptor's own job"),
        Law::NotPreemptible => reason_text("NotPreemptible", "it cannot be preempted, by its label or by default"),
        Law::CanPreemptLabelMissing => reason_text(
            "CanPreemptLabelMissing",
            "it does not say quota.scheduling.koordinator.sh/can-preempt: \"true\", which is required",
        ),
        Law::TooFewMembers { members, needed } => {
            reason_text("TooFewMembers", format!("its job has {members} of the {needed} pods that it needs"))
        }
        Law::QuotaLimit { queue, over } => shared::quota_limit(*queue, over, names),
        // Kueue.
        Law::Inactive => reason_text("Inactive", "its spec.active is false, so that it asks for no quota"),
        Law::NamespaceNotSelected { queue } => kueue::namespace(names.queue(*queue)),
        Law::InvalidResources => kueue::invalid_resources(),
        Law::OtherCohort => kueue::other_cohort(),
        Law::NotContested => reason_text("NotContested", "it holds nothing of what is short")
            .of_many("they hold nothing of what is short"),
        Law::QueuePolicyNever => kueue::keeps_peace(),
        Law::WithinQuota { queue, has_lost } => kueue::within_quota(names.queue(*queue), *has_lost),
        Law::FairShare { own, queue, theirs, is_final } => {
            kueue::fair_share(*own, names.queue(*queue), *theirs, *is_final)
        }
        Law::AboveThreshold { threshold } => kueue::above_threshold(*threshold),
    }
}

/// A moment in RFC 3339.
pub fn format_time(timestamp: Timestamp) -> String {
    time(timestamp).map_or_else(|| "the end of time".to_owned(), |time| time.to_string())
}

/// `2 cpu`, `1 pod slots`.
fn amount(resource: ResourceId, amount: i64, names: &Names) -> String {
    let name = names.resource(resource);
    format!("{} {}", format(name, amount), unit(name))
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

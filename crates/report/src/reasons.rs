//! Reasons as text: every law and every filter has one name and one sentence. The engine returns reasons as values; no code parses the text.
//!
//! A sentence about a law of several policies, of Kubernetes or of Koordinator is in `shared`, one about Kueue or YuniKorn in the file of
//! that policy. Sentences without data are here.

mod filters;
mod kueue;
mod shared;
mod yunikorn;

use reprieve_engine::laws::Law;
use reprieve_engine::{PodId, ResourceId, Timestamp};

pub use filters::{filter_failure, node_refusal, unknown_room};
pub(crate) use kueue::share;
use reprieve_api::quantity::format;
use reprieve_loader::Names;
use reprieve_loader::time::time;

/// A name that programs compare and a sentence that people read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReasonText {
    /// One word in CamelCase.
    pub name: &'static str,
    /// A sentence without a full stop.
    pub text: String,
    /// The sentence about several units, if it differs from the one about a single unit.
    pub of_many: Option<String>,
}

impl ReasonText {
    pub(crate) fn of_many(self, text: impl Into<String>) -> Self {
        Self { of_many: Some(text.into()), ..self }
    }
}

pub(crate) fn reason_text(name: &'static str, text: impl Into<String>) -> ReasonText {
    ReasonText { name, text: text.into(), of_many: None }
}

/// Why a pod has no node, in the form that kube-scheduler writes and that autoscalers read.
pub fn no_node_available(nodes: usize, why: &str) -> String {
    format!("0/{nodes} nodes are available: {why}")
}

/// The name and the sentence of a law. A sentence begins with a fact about the unit that the law spares or refuses, whose name the
/// reader sees beside it.
// Long: one arm for each law.
pub fn law(law: &Law, names: &Names) -> ReasonText {
    match law {
        // Shared laws.
        Law::Priority { candidate } => shared::priority(*candidate),
        Law::Toleration { pod, until } => shared::toleration(names.pod(*pod), *until),
        Law::ProtectedNamespace => reason_text("ProtectedNamespace", "the namespace is protected from preemption")
            .of_many("the namespaces are protected from preemption"),
        Law::SetAside { pod } => shared::set_aside(pod.map(|pod| names.pod(pod))),
        Law::OptOut { pod } => reason_text("OptOut", format!("{} has opted out of preemption", names.pod(*pod)))
            .of_many("the pods have opted out of preemption"),
        Law::UnknownPriorityClass { pod } => shared::unknown_priority_class(names.pod(*pod)),
        Law::PreemptionPolicyNever => reason_text("PreemptionPolicyNever", "preemptionPolicy is Never"),
        Law::SchedulingGates { pod, gates, gated } => shared::scheduling_gates(*pod, gates, *gated, names),
        Law::OtherScheduler { pod, members } => shared::other_scheduler(names.pod(*pod), *members),
        Law::Unsupported { pod, field } => shared::unsupported(*pod, names.text(*field), names),
        Law::QueueRefused { pod, queue, cause } => shared::queue_refused(names.pod(*pod), names.text(*queue), *cause),
        Law::NoQueue => reason_text("NoQueue", "not in any queue"),
        Law::PreemptionDelay { until } => {
            reason_text("PreemptionDelay", format!("the preemptor may not preempt before {}", format_time(*until)))
        }
        Law::PreemptionInProgress { terminating, nodes, until } => {
            shared::in_progress(terminating, nodes, *until, names)
        }
        // Kubernetes.
        Law::GroupMissing { pod } => {
            reason_text("GroupMissing", format!("the PodGroup that {} names does not exist", names.pod(*pod)))
        }
        Law::SearchLimit => reason_text("SearchLimit", shared::SEARCH_LIMIT),
        Law::GroupMismatch { member, mismatch } => shared::group_mismatch(names.pod(*member), mismatch),
        // YuniKorn.
        Law::NotUnderGuarantee { queue, short } => yunikorn::not_under_guarantee(*queue, short, names),
        Law::ExceedsGuaranteeHeadroom { queue, short } => yunikorn::exceeds_headroom(*queue, short, names),
        Law::NotOverGuarantee { queue, left, has_lost } => {
            yunikorn::not_over_guarantee(*queue, *left, *has_lost, names)
        }
        Law::WouldBreakGuarantee { queue, resource, guarantee, after, has_lost } => {
            yunikorn::would_break_guarantee(*queue, *resource, [*guarantee, *after], *has_lost, names)
        }
        Law::HigherPriority { candidate, limit } => yunikorn::higher_priority(*candidate, *limit),
        Law::Fence { root } => yunikorn::fence(*root, names),
        Law::SameQueue => reason_text("SameQueue", "in the same queue as the preemptor"),
        Law::SameApplication => reason_text("SameApplication", "in the same application as the preemptor"),
        Law::WholeGang { member } => yunikorn::whole_gang(*member, names),
        Law::QueueDisabled { queue } => {
            reason_text("QueueDisabled", format!("preemption of pods in queue {} is disabled", names.queue(*queue)))
        }
        Law::DaemonSet => reason_text("DaemonSet", "part of a DaemonSet"),
        Law::Terminating => reason_text("Terminating", "already terminating"),
        Law::PreemptionDisabled => reason_text("PreemptionDisabled", "preemption is disabled in the partition"),
        Law::QueueLimit { queue } => {
            reason_text("QueueLimit", format!("queue {} would exceed its maximum", names.queue(*queue)))
        }
        Law::NodeReserved { pod } => {
            reason_text("NodeReserved", format!("the node is reserved for {}", names.pod(*pod)))
        }
        // Koordinator.
        Law::SameJob => reason_text("SameJob", "part of the preemptor's own job"),
        Law::NotPreemptible => reason_text("NotPreemptible", "not preemptible, by label or by default"),
        Law::CanPreemptLabelFalse => {
            reason_text("CanPreemptLabelFalse", "the label quota.scheduling.koordinator.sh/can-preempt is \"false\"")
        }
        Law::CanPreemptLabelMissing => reason_text(
            "CanPreemptLabelMissing",
            "the required label quota.scheduling.koordinator.sh/can-preempt: \"true\" is missing",
        ),
        Law::TooFewMembers { members, needed } => {
            reason_text("TooFewMembers", format!("the job has {members} of {needed} required pods"))
        }
        Law::QuotaLimit { queue, over } => shared::quota_limit(*queue, over, names),
        // Kueue.
        Law::Inactive => reason_text("Inactive", "spec.active is false, so the workload requests no quota"),
        Law::NamespaceNotSelected { queue } => kueue::namespace_not_selected(names.queue(*queue)),
        Law::InvalidResources => kueue::invalid_resources(),
        Law::OtherCohort => kueue::other_cohort(),
        Law::NotContested => {
            reason_text("NotContested", "uses none of the missing quota").of_many("use none of the missing quota")
        }
        Law::QueuePolicyNever => kueue::queue_policy_never(),
        Law::WithinQuota { queue, has_lost } => kueue::within_quota(names.queue(*queue), *has_lost),
        Law::FairShare { own, queue, theirs, is_final } => {
            kueue::fair_share(*own, names.queue(*queue), *theirs, *is_final)
        }
        Law::AboveThreshold { threshold } => kueue::above_threshold(*threshold),
    }
}

/// The same as [`law`], without the names of the pods that are hidden. Other laws about a unit name only its own pods.
pub fn law_without(law: &Law, names: &Names, is_hidden: impl Fn(PodId) -> bool) -> ReasonText {
    match law {
        Law::PreemptionInProgress { terminating, nodes, until } if terminating.iter().any(|&pod| is_hidden(pod)) => {
            shared::in_progress_without_names(terminating.len(), nodes, *until, names)
        }
        Law::NodeReserved { pod } if is_hidden(*pod) => {
            reason_text("NodeReserved", "the node is reserved for a pod of another namespace")
        }
        law => self::law(law, names),
    }
}

/// The end of a sentence about a queue that the search took units from.
fn after_others(has_lost: bool) -> &'static str {
    if has_lost { " after the other evictions" } else { "" }
}

/// A time in RFC 3339.
pub fn format_time(timestamp: Timestamp) -> String {
    time(timestamp).map_or_else(|| "the year 9999".to_owned(), |time| time.to_string())
}

/// `2 cpu`, `1 pod slot`.
fn amount(resource: ResourceId, amount: i64, names: &Names) -> String {
    let name = names.resource(resource);
    if (name, amount) == ("pods", 1) {
        "1 pod slot".to_owned()
    } else {
        format!("{} {}", format(name, amount), unit(name))
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    match items.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        items => items.concat(),
    }
}

fn unit(resource: &str) -> &str {
    if resource == "pods" { "pod slots" } else { resource }
}

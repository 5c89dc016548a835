//! Text of the laws of several policies, of policy Koordinator and of policy Kubernetes.

use reprieve_api::NamespacedName;
use reprieve_engine::laws::Mismatch;
use reprieve_engine::snapshot::QueueRefusal;
use reprieve_engine::{NodeId, PodId, Priority, QueueId, ResourceId, TextId, Timestamp};
use reprieve_loader::Names;

use super::{ReasonText, amount, format_time, list, reason_text};

pub fn priority(candidate: Priority) -> ReasonText {
    reason_text("Priority", format!("priority {} is not below the preemptor's", candidate.0))
        .of_many("priorities are not below the preemptor's")
}

pub fn toleration(pod: &NamespacedName, until: Option<Timestamp>) -> ReasonText {
    let end = until.map_or_else(|| "without end".to_owned(), |until| format!("until {}", format_time(until)));
    reason_text("Toleration", format!("{pod} cannot be preempted by this preemptor (toleration {end})"))
        .of_many("cannot be preempted by this preemptor (toleration)")
}

pub fn unknown_priority_class(pod: &NamespacedName) -> ReasonText {
    reason_text(
        "UnknownPriorityClass",
        format!("the PriorityClass of {pod} does not exist, so its tolerations are unknown"),
    )
    .of_many("the PriorityClasses do not exist, so their tolerations are unknown")
}

pub fn set_aside(pod: Option<&NamespacedName>) -> ReasonText {
    let object = pod.map_or_else(|| "the object".to_owned(), |pod| format!("the object of {pod}"));
    reason_text("SetAside", format!("{object} has a part that cannot be read, so it is not preempted"))
        .of_many("the objects have a part that cannot be read, so they are not preempted")
}

pub fn scheduling_gates(pod: PodId, gates: &[TextId], gated: usize, names: &Names) -> ReasonText {
    let gates: Vec<&str> = gates.iter().map(|&gate| names.text(gate)).collect();
    let others = match gated {
        0 | 1 => String::new(),
        gated => format!(" (as do {} more pods of the group)", gated - 1),
    };
    let pod = names.pod(pod);
    reason_text("SchedulingGates", format!("pod {pod} has scheduling gates: {}{others}", gates.join(", ")))
}

pub fn other_scheduler(pod: &NamespacedName, members: usize) -> ReasonText {
    let pods = match members {
        1 => format!("{pod} names another scheduler"),
        members => format!("{members} pods name another scheduler, for example {pod}"),
    };
    reason_text("OtherScheduler", format!("too few pods are left: {pods}"))
}

pub fn unsupported(pod: Option<PodId>, field: &str, names: &Names) -> ReasonText {
    let of = pod.map(|pod| format!("pod {}: ", names.pod(pod))).unwrap_or_default();
    reason_text("Unsupported", format!("{of}{field} is a requirement that Reprieve does not evaluate"))
}

pub fn queue_refused(pod: &NamespacedName, queue: &str, cause: QueueRefusal) -> ReasonText {
    let text = match cause {
        QueueRefusal::NamespaceHasNoAccess => {
            format!("namespace {} may not use queue {queue} (queueAccess of the profile)", pod.namespace)
        }
        QueueRefusal::RestrictedToUsers => {
            format!("queue {queue} may not be used: its submitacl is not *, and the users of pods are not known")
        }
    };
    reason_text("QueueRefused", text)
}

pub fn in_progress(terminating: &[PodId], nodes: &[NodeId], until: Option<Timestamp>, names: &Names) -> ReasonText {
    match terminating {
        [pod] => leaving(&format!("victim {} is", names.pod(*pod)), nodes, until, names),
        pods => in_progress_without_names(pods.len(), nodes, until, names),
    }
}

pub fn in_progress_without_names(
    n_terminating: usize,
    nodes: &[NodeId],
    until: Option<Timestamp>,
    names: &Names,
) -> ReasonText {
    let victims = if n_terminating == 1 { "1 victim is".to_owned() } else { format!("{n_terminating} victims are") };
    leaving(&victims, nodes, until, names)
}

fn leaving(victims: &str, nodes: &[NodeId], until: Option<Timestamp>, names: &Names) -> ReasonText {
    let nodes: Vec<&str> = nodes.iter().map(|&node| names.node(node)).collect();
    let end = until.map_or_else(
        || "until another operator deletes what is labelled for it".to_owned(),
        |until| format!("until {} at the latest", format_time(until)),
    );
    let text = format!("{victims} still terminating on {} ({end})", nodes.join(", "));
    reason_text("PreemptionInProgress", text)
}

pub fn quota_limit(queue: QueueId, over: &[(ResourceId, i64)], names: &Names) -> ReasonText {
    let over = list(over.iter().map(|(resource, over)| amount(*resource, *over, names)));
    reason_text("QuotaLimit", format!("the job would exceed the limit of quota {} by {over}", names.queue(queue)))
}

pub const SEARCH_LIMIT: &str = "the search for nodes for its members ended without a result: its step limit is reached";

pub fn group_mismatch(member: &NamespacedName, mismatch: &Mismatch) -> ReasonText {
    let text = match mismatch {
        Mismatch::Priority { member: own, group } => {
            format!("{member} has priority {}, but its group has {}", own.0, group.0)
        }
        Mismatch::Preempting { member: own, group } => {
            let policy = |preempts: bool| if preempts { "PreemptLowerPriority" } else { "Never" };
            format!("{member} has preemptionPolicy {}, but its group has {}", policy(*own), policy(*group))
        }
    };
    reason_text("GroupMismatch", text)
}

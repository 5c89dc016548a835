//! Laws of several policies, of policy Koordinator and of policy Kubernetes.

use reprieve_api::NamespacedName;
use reprieve_engine::laws::Mismatch;
use reprieve_engine::{NodeId, PodId, Priority, QueueId, ResourceId, TextId, Timestamp};
use reprieve_loader::Names;

use super::{ReasonText, amount, format_time, list, reason_text};

pub fn priority(candidate: Priority) -> ReasonText {
    reason_text("Priority", format!("its priority {} is not below the preemptor's", candidate.0))
        .of_many("not below the preemptor's priority")
}

pub fn toleration(pod: &NamespacedName, until: Option<Timestamp>) -> ReasonText {
    let until = until.map_or_else(|| "for ever".to_owned(), |until| format!("until {}", format_time(until)));
    reason_text("Toleration", format!("{pod} tolerates this preemptor {until}")).of_many("they tolerate this preemptor")
}

pub fn unknown_class(pod: &NamespacedName) -> ReasonText {
    let text = format!("{pod} names a PriorityClass that is not defined, so its rights are unknown");
    reason_text("UnknownPriorityClass", text).of_many("their PriorityClass is not defined, so their rights are unknown")
}

pub fn scheduling_gates(pod: PodId, gates: &[TextId], gated: usize, names: &Names) -> ReasonText {
    let gates: Vec<&str> = gates.iter().map(|&gate| names.text(gate)).collect();
    let others = match gated {
        0 | 1 => String::new(),
        gated => format!(", and so do {} more of its pods", gated - 1),
    };
    let pod = names.pod(pod);
    reason_text("SchedulingGates", format!("pod {pod} waits for its scheduling gates: {}{others}", gates.join(", ")))
}

pub fn other_scheduler(pod: &NamespacedName, members: usize) -> ReasonText {
    let who = match members {
        1 => format!("{pod} names another scheduler"),
        members => format!("{members} of them name another scheduler, {pod} for one"),
    };
    reason_text("OtherScheduler", format!("too few of its pods are left: {who}"))
}

pub fn unsupported(pod: Option<PodId>, field: &str, names: &Names) -> ReasonText {
    let of = pod.map(|pod| format!("pod {}: ", names.pod(pod))).unwrap_or_default();
    reason_text("Unsupported", format!("{of}{field} is a requirement that Reprieve does not evaluate"))
}

pub fn underway(leaving: &[PodId], nodes: &[NodeId], until: Timestamp, names: &Names) -> ReasonText {
    let nodes: Vec<&str> = nodes.iter().map(|&node| names.node(node)).collect();
    let pods = match leaving {
        [pod] => names.pod(*pod).to_string(),
        pods => format!("{} pods", pods.len()),
    };
    let text = format!("{pods} preempted for it must leave {} first, until {}", nodes.join(", "), format_time(until));
    reason_text("PreemptionInProgress", text)
}

pub fn quota_limit(queue: QueueId, over: &[(ResourceId, i64)], names: &Names) -> ReasonText {
    let over = list(over.iter().map(|(resource, over)| amount(*resource, *over, names)));
    reason_text("QuotaLimit", format!("its job would pass the limit of quota {} by {over}", names.queue(queue)))
}

pub fn disagreement(member: &NamespacedName, about: &Mismatch) -> ReasonText {
    let text = match about {
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

//! Laws of several policies, of policy Koordinator and of policy Kubernetes.

use reprieve_api::FullName;
use reprieve_engine::laws::About;
use reprieve_engine::{NodeId, PodId, Priority, QueueId, ResourceId, TextId, Timestamp};
use reprieve_loader::Names;

use super::{Words, amount, list, moment, words};

pub fn priority(candidate: Priority) -> Words {
    words("Priority", format!("its priority {} is not below the preemptor's", candidate.0))
        .of_many("not below the preemptor's priority")
}

pub fn toleration(pod: &FullName, until: Option<Timestamp>) -> Words {
    let until = until.map_or_else(|| "for ever".to_owned(), |until| format!("until {}", moment(until)));
    words("Toleration", format!("{pod} tolerates this preemptor {until}")).of_many("they tolerate this preemptor")
}

pub fn unknown_class(pod: &FullName) -> Words {
    let text = format!("{pod} names a PriorityClass that is not defined, so its rights are unknown");
    words("UnknownClass", text).of_many("their PriorityClass is not defined, so their rights are unknown")
}

pub fn scheduling_gates(pod: PodId, gates: &[TextId], gated: usize, names: &Names) -> Words {
    let gates: Vec<&str> = gates.iter().map(|&gate| names.text(gate)).collect();
    let others = match gated {
        0 | 1 => String::new(),
        gated => format!(", and so do {} more of its pods", gated - 1),
    };
    let pod = names.pod(pod);
    words("SchedulingGates", format!("pod {pod} waits for its scheduling gates: {}{others}", gates.join(", ")))
}

pub fn other_scheduler(pod: &FullName, members: usize) -> Words {
    let who = match members {
        1 => format!("{pod} names another scheduler"),
        members => format!("{members} of them name another scheduler, {pod} for one"),
    };
    words("OtherScheduler", format!("too few of its pods are left: {who}"))
}

pub fn unsupported(pod: Option<PodId>, field: &str, names: &Names) -> Words {
    let of = pod.map(|pod| format!("pod {}: ", names.pod(pod))).unwrap_or_default();
    words("Unsupported", format!("{of}{field} is a requirement that Reprieve does not evaluate"))
}

pub fn underway(leaving: &[PodId], nodes: &[NodeId], until: Timestamp, names: &Names) -> Words {
    let nodes: Vec<&str> = nodes.iter().map(|&node| names.node(node)).collect();
    let pods = match leaving {
        [pod] => names.pod(*pod).to_string(),
        pods => format!("{} pods", pods.len()),
    };
    let text = format!("{pods} preempted for it must leave {} first, until {}", nodes.join(", "), moment(until));
    words("Underway", text)
}

pub fn quota_limit(queue: QueueId, over: &[(ResourceId, i64)], names: &Names) -> Words {
    let over = list(over.iter().map(|(resource, over)| amount(*resource, *over, names)));
    words("QuotaLimit", format!("its job would pass the limit of quota {} by {over}", names.queue(queue)))
}

pub fn disagreement(member: &FullName, about: &About) -> Words {
    let text = match about {
        About::Priority { member: own, group } => {
            format!("{member} has priority {}, but its group has {}", own.0, group.0)
        }
        About::Preempting { member: own, group } => {
            let policy = |preempts: bool| if preempts { "PreemptLowerPriority" } else { "Never" };
            format!("{member} has preemptionPolicy {}, but its group has {}", policy(*own), policy(*group))
        }
    };
    words("Disagreement", text)
}

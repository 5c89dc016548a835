//! Text of the laws of policy YuniKorn.

use reprieve_api::quantity::format;
use reprieve_engine::laws::TooLittle;
use reprieve_engine::{PodId, Priority, QueueId, ResourceId};
use reprieve_loader::Names;

use super::{ReasonText, after_others, amount, list, reason_text, unit};

pub fn not_under_guarantee(queue: QueueId, short: &[TooLittle], names: &Names) -> ReasonText {
    let queue = names.queue(queue);
    let text = if short.is_empty() {
        format!("neither queue {queue} nor a queue above it has a guarantee for the requested resources")
    } else {
        format!("queue {queue} has too little of its guarantee left: {}", too_little(short, names))
    };
    reason_text("NotUnderGuarantee", text)
}

pub fn exceeds_headroom(queue: QueueId, short: &[TooLittle], names: &Names) -> ReasonText {
    let queue = names.queue(queue);
    if short.is_empty() {
        return reason_text("ExceedsGuaranteeHeadroom", format!("queue {queue} has no guarantee to preempt for"));
    }
    let left = list(short.iter().map(|short| amount(short.resource, short.left, names)));
    reason_text("ExceedsGuaranteeHeadroom", format!("larger than the guarantee left to queue {queue}: {left}"))
}

pub fn not_over_guarantee(
    queue: QueueId,
    left: Option<(ResourceId, i64)>,
    has_lost: bool,
    names: &Names,
) -> ReasonText {
    let left = left.map(|(resource, left)| format!(": {} left", amount(resource, left, names))).unwrap_or_default();
    let (queue, after) = (names.queue(queue), after_others(has_lost));
    reason_text("NotOverGuarantee", format!("queue {queue} is not over its guarantee{after}{left}"))
        .of_many("the queues are not over their guarantees")
}

/// `amounts` are the guarantee and what would be left of it.
pub fn would_break_guarantee(
    queue: QueueId,
    resource: ResourceId,
    amounts: [i64; 2],
    has_lost: bool,
    names: &Names,
) -> ReasonText {
    let (queue, name) = (names.queue(queue), names.resource(resource));
    let [guarantee, after] = amounts.map(|amount| format(name, amount));
    let (unit, others) = (unit(name), after_others(has_lost));
    let text = format!("queue {queue} would be left with {after} of its guaranteed {guarantee} {unit}{others}");
    reason_text("WouldBreakGuarantee", text).of_many("the queues would be left with less than their guarantees")
}

/// `member` is the pod that keeps its gang from being evicted as a whole.
pub fn whole_gang(member: PodId, names: &Names) -> ReasonText {
    let text =
        format!("its gang would have to go as a whole, and {} of the gang may not be evicted", names.pod(member));
    reason_text("WholeGang", text)
        .of_many("the gangs would have to go as a whole, and other pods of them may not be evicted")
}

pub fn higher_priority(candidate: Priority, limit: Option<Priority>) -> ReasonText {
    let text = match limit {
        Some(limit) => format!("priority {} is above {}, the limit for preemption in its queue", candidate.0, limit.0),
        None => format!("priority {} is behind a priority fence", candidate.0),
    };
    reason_text("HigherPriority", text).of_many("priorities are above the limits for preemption in their queues")
}

pub fn fence(root: Option<QueueId>, names: &Names) -> ReasonText {
    let Some(root) = root else { return reason_text("Fence", "the preemptor is in no queue") };
    reason_text("Fence", format!("outside {}, the preemptor's fence", names.queue(root)))
}

/// `1 cpu of 4 requested and 0 nvidia.com/gpu of 3 requested`. A guarantee that is overdrawn has nothing left.
fn too_little(short: &[TooLittle], names: &Names) -> String {
    list(short.iter().map(|short| {
        let total = format(names.resource(short.resource), short.requested);
        format!("{} of {total} requested", amount(short.resource, short.left.max(0), names))
    }))
}

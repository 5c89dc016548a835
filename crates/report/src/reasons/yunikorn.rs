//! Laws of policy YuniKorn.

use reprieve_api::quantity::format;
use reprieve_engine::laws::TooLittle;
use reprieve_engine::{Priority, QueueId, ResourceId};
use reprieve_loader::Names;

use super::{ReasonText, amount, list, reason_text, unit};

pub fn not_under_guarantee(queue: QueueId, short: &[TooLittle], names: &Names) -> ReasonText {
    let queue = names.queue(queue);
    let text = if short.is_empty() {
        format!("queue {queue} is guaranteed nothing of what it asks for, and neither is a queue above it")
    } else {
        format!("queue {queue} has too little left of its guarantee: {}", too_little(short, names))
    };
    reason_text("NotUnderGuarantee", text)
}

pub fn too_large(queue: QueueId, short: &[TooLittle], names: &Names) -> ReasonText {
    let queue = names.queue(queue);
    if short.is_empty() {
        return reason_text("ExceedsGuaranteeHeadroom", format!("queue {queue} has no guarantee by which to take it"));
    }
    let left = list(short.iter().map(|one| amount(one.resource, one.left, names)));
    let than = format!("larger than what queue {queue} has left of its guarantee: {left}");
    reason_text("ExceedsGuaranteeHeadroom", format!("it is {than}")).of_many(format!("they are {than}"))
}

pub fn not_over_guarantee(queue: QueueId, left: Option<(ResourceId, i64)>, names: &Names) -> ReasonText {
    let left = left.map(|(resource, left)| format!(": {} of it are left", amount(resource, left, names)));
    let (queue, left) = (names.queue(queue), left.unwrap_or_default());
    reason_text("NotOverGuarantee", format!("queue {queue} is not over its guarantee{left}"))
        .of_many("their queues are not over their guarantees")
}

pub fn keeps_guarantee(queue: QueueId, resource: ResourceId, guarantee: i64, after: i64, names: &Names) -> ReasonText {
    let (queue, name) = (names.queue(queue), names.resource(resource));
    let (after, guarantee) = (format(name, after), format(name, guarantee));
    let text = format!("queue {queue} would be left with {after} of the {guarantee} {} it is guaranteed", unit(name));
    reason_text("WouldBreakGuarantee", text).of_many("their queues would be left with less than their guarantees")
}

pub fn higher_priority(candidate: Priority, limit: Option<Priority>) -> ReasonText {
    let text = match limit {
        Some(limit) => format!("its priority {} is above {}, up to which its queue yields", candidate.0, limit.0),
        None => format!("its priority {} is behind a priority fence", candidate.0),
    };
    reason_text("HigherPriority", text).of_many("their priorities are above those up to which their queues yield")
}

pub fn fence(root: Option<QueueId>, names: &Names) -> ReasonText {
    let Some(root) = root else { return reason_text("Fence", "the preemptor is in no queue") };
    let outside = format!("outside {}, the preemptor's fence", names.queue(root));
    reason_text("Fence", format!("it is {outside}")).of_many(format!("they are {outside}"))
}

/// `1 cpu of 4 asked and 0 nvidia.com/gpu of 3 asked`. A guarantee that is overdrawn has nothing left.
fn too_little(short: &[TooLittle], names: &Names) -> String {
    list(short.iter().map(|one| {
        let total = format(names.resource(one.resource), one.requested);
        format!("{} of {total} asked", amount(one.resource, one.left.max(0), names))
    }))
}

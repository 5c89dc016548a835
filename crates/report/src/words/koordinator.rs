//! Laws of policy Koordinator.

use reprieve_engine::{QueueId, ResourceId};
use reprieve_loader::Names;

use super::{Words, amount, list, words};

pub fn no_trigger() -> Words {
    words("NoTrigger", "it does not say quota.scheduling.koordinator.sh/can-preempt: \"true\", which is required")
}

pub fn too_few_members(members: usize, needed: usize) -> Words {
    words("TooFewMembers", format!("its job has {members} of the {needed} pods that it needs"))
}

pub fn quota_limit(queue: QueueId, over: &[(ResourceId, i64)], names: &Names) -> Words {
    let over = list(over.iter().map(|(resource, over)| amount(*resource, *over, names)));
    words("QuotaLimit", format!("its job would pass the limit of quota {} by {over}", names.queue(queue)))
}

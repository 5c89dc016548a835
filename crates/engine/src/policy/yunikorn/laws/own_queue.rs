//! Law 3: nobody is taken within one application; and, because preemption is between queues only, nobody within one queue. (Rule 7
//! of YuniKorn.)

use super::fence::Reach;
use crate::ids::QueueId;
use crate::laws::Law;

pub(crate) fn spares(queue: QueueId, reach: &Reach) -> Option<Law> {
    reach.is_own(queue).then_some(Law::OwnQueue)
}

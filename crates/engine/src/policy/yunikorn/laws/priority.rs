//! Law 6: only lower or equal priority is taken, compared through the priority rules of the queues in between. (Rule 6 of YuniKorn.)

use super::fence::Reach;
use crate::ids::{PodId, QueueId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn spares(snapshot: &Snapshot, pod: PodId, queue: QueueId, reach: &Reach) -> Option<Law> {
    let candidate = snapshot.pod(pod).priority;
    (!reach.yields(queue, candidate)).then(|| Law::HigherPriority { candidate, limit: reach.limit(queue) })
}

//! Law 5: only a queue that is over its guarantee loses pods: it has no guarantee, or uses more than it in something that is asked
//! for. (Rule 9 of YuniKorn.)

use crate::ids::{PodId, QueueId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn spares(snapshot: &Snapshot, preemptor: PodId, queue: QueueId) -> Option<Law> {
    let wants = snapshot.requests(snapshot.pod(preemptor).shape);
    let left = snapshot.queues().left(queue, snapshot.pod(preemptor).queue?)?;
    (!left.is_overdrawn(wants)).then(|| Law::NotOverGuarantee { queue, left: left.least(wants) })
}

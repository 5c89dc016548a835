//! Law 2: no queue is left with less than its guarantee: neither the victim's, nor one above it within the fence, unless the
//! preemptor fills it again. Only what the victim uses counts. (Rule 9 of YuniKorn.)

use super::fence::Reach;
use crate::ids::{PodId, ResourceId};
use crate::laws::Law;
use crate::queues::UNDEFINED;
use crate::snapshot::Snapshot;

pub(crate) fn spares(snapshot: &Snapshot, pod: PodId, reach: &Reach) -> Option<Law> {
    let queues = snapshot.queues();
    let takes = snapshot.requests(snapshot.pod(pod).shape);
    let path = queues.path(snapshot.pod(pod).queue?);
    let mut losing = path.take_while(|&id| Some(id) != reach.root()).filter(|&id| !reach.is_own(id));
    losing.find_map(|queue| {
        takes.iter().enumerate().filter(|(_, take)| **take > 0).find_map(|(at, take)| {
            let guarantee = queues.get(queue).guarantee[at];
            let after = queues.staying(queue, at) - take;
            let resource = ResourceId::new(at);
            (guarantee != UNDEFINED && after < guarantee).then_some(Law::KeepsGuarantee {
                queue,
                resource,
                guarantee,
                after,
            })
        })
    })
}

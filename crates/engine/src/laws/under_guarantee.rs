//! Law 4: only a pod whose queue is under its guarantee may preempt. It fits into what is left of the guarantee; or it would once
//! all candidates are gone, where the guarantee is one that they share. (Rule 10 of YuniKorn.)

use crate::ids::PodId;
use crate::laws::Law;
use crate::queues::Left;
use crate::snapshot::Snapshot;

pub(crate) fn refuses(snapshot: &Snapshot, preemptor: PodId, candidates: &[PodId]) -> Option<Law> {
    let Some(queue) = snapshot.pod(preemptor).queue else {
        return Some(Law::NoQueue);
    };
    let wants = snapshot.requests(snapshot.pod(preemptor).shape);
    let left = left(snapshot, preemptor);
    if left.as_ref().is_some_and(|left| left.fits(wants)) {
        return None;
    }
    let mut queues = snapshot.queues().clone();
    queues.charge(queue, wants, 1, false);
    for &candidate in candidates {
        if let Some(of) = snapshot.pod(candidate).queue {
            queues.charge(of, snapshot.requests(snapshot.pod(candidate).shape), -1, false);
        }
    }
    let enough = queues.left(queue, queue).is_some_and(|after| !after.is_overdrawn(wants));
    (!enough).then(|| Law::NotUnderGuarantee { queue, left: left.and_then(|left| left.least(wants)) })
}

/// Whether the victim, who is gone, is no larger than what is left of the preemptor's guarantee.
pub(crate) fn has_left(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> bool {
    left(snapshot, preemptor).is_some_and(|left| left.fits(snapshot.requests(snapshot.pod(victim).shape)))
}

/// Whether the victim has anything of what the preemptor's guarantee is about.
pub(crate) fn uses_up(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> bool {
    left(snapshot, preemptor).is_some_and(|left| left.is_about(snapshot.requests(snapshot.pod(victim).shape)))
}

fn left(snapshot: &Snapshot, preemptor: PodId) -> Option<Left> {
    let queue = snapshot.pod(preemptor).queue?;
    snapshot.queues().left(queue, queue)
}

//! Laws 2, 4 and 5: preemption brings queues to their guarantees and never below. Only a queue that is under its guarantee may
//! preempt; only one that is over it loses pods; and none so many that it, or a queue above it, ends under its own.

use crate::ids::{PodId, QueueId, ResourceId};
use crate::laws::Law;
use crate::laws::fence::Reach;
use crate::queues::{Queues, UNDEFINED};
use crate::snapshot::Snapshot;

/// What is left of the guarantee, by resource; [`UNDEFINED`] where there is none. (Rule 8.)
struct Left(Vec<i64>);

impl Left {
    fn is_none(&self) -> bool {
        self.0.iter().all(|&left| left == UNDEFINED)
    }

    fn of(queues: &Queues, queue: QueueId, asking: QueueId) -> Self {
        let path: Vec<QueueId> = queues.path(queue).collect();
        let own = |id: QueueId| {
            let guarantee = &queues.get(id).guarantee;
            let left = |(at, &guarantee): (usize, &i64)| match guarantee {
                UNDEFINED => UNDEFINED,
                guarantee => guarantee - queues.staying(id, at),
            };
            Self(guarantee.iter().enumerate().map(left).collect())
        };
        let has_guarantee = |id: QueueId| queues.get(id).guarantee.iter().any(|&guarantee| guarantee != UNDEFINED);
        let mut left = Self(vec![UNDEFINED; queues.get(queue).guarantee.len()]);
        for &id in path.iter().rev() {
            let own = own(id);
            if id == asking && !own.is_none() {
                let merge = |(own, above): (&i64, &i64)| if *own == UNDEFINED { *above } else { *own };
                left = Self(own.0.iter().zip(&left.0).map(merge).collect());
            } else if !own.is_none()
                && queues.get(id).parent.is_some()
                && queues.path(asking).any(|above| above == id)
                && has_guarantee(asking)
            {
                left = Self(vec![UNDEFINED; own.0.len()]);
            } else {
                left = Self(own.0.iter().zip(&left.0).map(|(own, above)| *own.min(above)).collect());
            }
        }
        left
    }
}

/// Law 4: the pod fits into what is left of its queue's guarantee; or it would once all candidates are gone, where the guarantee
/// is one that they share. (Rule 10.)
pub(crate) fn refuses(snapshot: &Snapshot, pod: PodId, candidates: &[PodId]) -> Option<Law> {
    let Some(queue) = snapshot.pod(pod).queue else {
        return Some(Law::NoQueue);
    };
    let wants = snapshot.requests(snapshot.pod(pod).shape);
    let left = Left::of(snapshot.queues(), queue, queue);
    if !left.is_none() && fits(wants, &left) {
        return None;
    }
    let mut queues = snapshot.queues().clone();
    queues.charge(queue, wants, 1, false);
    for &candidate in candidates {
        let Some(of) = snapshot.pod(candidate).queue else {
            continue;
        };
        queues.charge(of, snapshot.requests(snapshot.pod(candidate).shape), -1, false);
    }
    let after = Left::of(&queues, queue, queue);
    let short = wants.iter().zip(&after.0).any(|(want, left)| *want > 0 && *left < 0);
    (after.is_none() || short).then(|| {
        let (resource, left) = least(wants, &left);
        Law::NotUnderGuarantee { queue, resource, left }
    })
}

/// The asked resource of which least is left.
fn least(wants: &[i64], left: &Left) -> (Option<ResourceId>, i64) {
    let asked = wants.iter().zip(&left.0).enumerate().filter(|(_, (want, left))| **want > 0 && **left != UNDEFINED);
    asked.map(|(at, (_, left))| (Some(ResourceId::new(at)), *left)).min_by_key(|(_, left)| *left).unwrap_or((None, 0))
}

fn fits(wants: &[i64], left: &Left) -> bool {
    wants.iter().zip(&left.0).all(|(want, left)| *want == 0 || want <= left)
}

/// Laws 5 and 2: the pod's queue is over its guarantee in something that is asked for, and stays at its guarantees without it, as do
/// the queues above it that the preemptor does not fill again. (Rule 9.)
pub(crate) fn spares(snapshot: &Snapshot, preemptor: PodId, pod: PodId, reach: &Reach) -> Option<Law> {
    let (asking, queue) = (snapshot.pod(preemptor).queue?, snapshot.pod(pod).queue?);
    let queues = snapshot.queues();
    let wants = snapshot.requests(snapshot.pod(preemptor).shape);
    let left = Left::of(queues, queue, asking);
    let over = wants.iter().zip(&left.0).any(|(want, left)| *want > 0 && *left < 0);
    if !left.is_none() && !over {
        let (resource, left) = least(wants, &left);
        return Some(Law::NotOverGuarantee { queue, resource, left });
    }
    let takes = snapshot.requests(snapshot.pod(pod).shape);
    let below = queues.path(queue).take_while(|&id| Some(id) != reach.root()).filter(|&id| !reach.is_own(id));
    for id in below {
        for (at, take) in takes.iter().enumerate().filter(|(_, take)| **take > 0) {
            let guarantee = queues.get(id).guarantee[at];
            let after = queues.staying(id, at) - take;
            if guarantee != UNDEFINED && after < guarantee {
                return Some(Law::KeepsGuarantee { queue: id, resource: ResourceId::new(at), guarantee, after });
            }
        }
    }
    None
}

/// Whether the victim, who is gone, is no larger than what is left of the preemptor's guarantee.
pub(crate) fn has_left(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> bool {
    left_of(snapshot, preemptor).is_some_and(|left| fits(snapshot.requests(snapshot.pod(victim).shape), &left))
}

/// Whether the victim has anything of what the preemptor's guarantee is about.
pub(crate) fn uses_up(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> bool {
    let takes = snapshot.requests(snapshot.pod(victim).shape);
    left_of(snapshot, preemptor)
        .is_some_and(|left| takes.iter().zip(&left.0).any(|(take, left)| *take > 0 && *left != UNDEFINED))
}

fn left_of(snapshot: &Snapshot, preemptor: PodId) -> Option<Left> {
    let queue = snapshot.pod(preemptor).queue?;
    Some(Left::of(snapshot.queues(), queue, queue)).filter(|left| !left.is_none())
}

//! docs/rules/yunikorn.md#y10, docs/rules/yunikorn.md#y12, docs/rules/yunikorn.md#y8: only a pod whose queue is under its guarantee may
//! preempt. As the code of YuniKorn, the pod must also fit into what is left of the guarantee, or would without all candidates if they share
//! the guarantee.

use crate::ids::{PodId, ResourceId};
use crate::laws::{Law, TooLittle};
use crate::queues::{Headroom, UNDEFINED};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The law if the queue is not under its guarantee before the request. Its guarantee is that of the leaf, or else of the nearest ancestor
/// that has one. The queue is under it if it uses more than the guarantee of no requested resource, and less than that of one.
pub(crate) fn refuses(snapshot: &Snapshot, preemptor: PodId) -> Option<Law> {
    let Some(leaf) = snapshot.pod(preemptor).queue else { return Some(Law::NoQueue) };
    let queues = snapshot.queues();
    let Some(queue) = queues.path(leaf).find(|&id| queues.is_guaranteed(id)) else {
        return Some(Law::NotUnderGuarantee { queue: leaf, short: Vec::new() });
    };
    let requests = snapshot.requests(snapshot.pod(preemptor).shape);
    let requested = requests.iter().zip(queues.own_headroom(queue)).enumerate();
    let requested = requested.filter(|(_, (request, left))| **request > 0 && *left != UNDEFINED);
    let all: Vec<TooLittle> = requested
        .map(|(index, (&requested, left))| TooLittle { resource: ResourceId::new(index), left, requested })
        .collect();
    let is_over = all.iter().any(|guaranteed| guaranteed.left < 0);
    if !is_over && all.iter().any(|guaranteed| guaranteed.left > 0) {
        return None;
    }
    let is_short = |guaranteed: &TooLittle| if is_over { guaranteed.left < 0 } else { guaranteed.left == 0 };
    Some(Law::NotUnderGuarantee { queue, short: all.into_iter().filter(is_short).collect() })
}

/// The result of the check before any pod is taken.
pub(crate) enum GuaranteeCheck {
    /// The pod fits into what is left of the guarantee.
    Suffices,
    /// The pod does not fit, and no victim changes that: there is no guarantee, or the queue's own is used up.
    Short(Law),
    /// The pod does not fit, but victims that share the guarantee may leave enough; else this law applies.
    Shared(Law),
}

pub(crate) fn check(snapshot: &Snapshot, preemptor: PodId) -> GuaranteeCheck {
    let Some(queue) = snapshot.pod(preemptor).queue else { return GuaranteeCheck::Short(Law::NoQueue) };
    let queues = snapshot.queues();
    let requests = snapshot.requests(snapshot.pod(preemptor).shape);
    let left = headroom(snapshot, preemptor);
    if left.as_ref().is_some_and(|left| left.fits(requests)) {
        return GuaranteeCheck::Suffices;
    }
    let guarantee = &queues.get(queue).guarantee;
    let own_is_short = requests.iter().enumerate().any(|(index, request)| {
        *request > 0
            && guarantee[index] != UNDEFINED
            && guarantee[index] - queues.used_without_terminating(queue, index) < *request
    });
    let no_victim_helps = left.is_none() || own_is_short;
    let law = Law::NotUnderGuarantee { queue, short: left.map_or_else(Vec::new, |left| too_little(&left, requests)) };
    if no_victim_helps { GuaranteeCheck::Short(law) } else { GuaranteeCheck::Shared(law) }
}

/// Whether the pod fits into a guarantee that it shares with these candidates, without all of them.
pub(crate) fn fits_after_removing(what_if: &mut WhatIf<'_>, preemptor: PodId, candidates: &[PodId]) -> bool {
    let pod = what_if.snapshot().pod(preemptor);
    let (Some(queue), shape) = (pod.queue, pod.shape) else { return false };
    let mark = what_if.mark();
    what_if.charge(queue, shape);
    for &candidate in candidates {
        what_if.remove(candidate);
    }
    let requests = what_if.snapshot().requests(shape);
    let suffices = headroom(what_if.snapshot(), preemptor).is_some_and(|left| !left.is_overdrawn(requests));
    what_if.back_to(mark);
    suffices
}

/// docs/rules/yunikorn.md#y12: whether the victim, which is removed, is not larger than what is left of the preemptor's guarantee.
pub(crate) fn allows(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> Result<(), Law> {
    let Some(queue) = snapshot.pod(preemptor).queue else { return Ok(()) };
    let amounts = snapshot.requests(snapshot.pod(victim).shape);
    match headroom(snapshot, preemptor) {
        None => Err(Law::ExceedsGuaranteeHeadroom { queue, short: Vec::new() }),
        Some(left) if left.fits(amounts) => Ok(()),
        Some(left) => Err(Law::ExceedsGuaranteeHeadroom { queue, short: too_little(&left, amounts) }),
    }
}

/// Every resource of which less than these amounts is left.
fn too_little(left: &Headroom, amounts: &[i64]) -> Vec<TooLittle> {
    let mut rest = amounts.to_vec();
    let mut all = Vec::new();
    while let Some((resource, left)) = left.short(&rest) {
        let requested = std::mem::take(&mut rest[resource.index()]);
        all.push(TooLittle { resource, left, requested });
    }
    all
}

/// Whether the preemptor's guarantee covers any resource of the victim.
pub(crate) fn counts_against_guarantee(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> bool {
    headroom(snapshot, preemptor).is_some_and(|left| left.is_about(snapshot.requests(snapshot.pod(victim).shape)))
}

fn headroom(snapshot: &Snapshot, preemptor: PodId) -> Option<Headroom> {
    let queue = snapshot.pod(preemptor).queue?;
    snapshot.queues().guarantee_headroom(queue, queue)
}

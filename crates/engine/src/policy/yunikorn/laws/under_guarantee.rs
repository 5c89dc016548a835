//! Law 4: only a pod whose queue is under its guarantee may preempt. It fits into what is left of the guarantee; or it would once
//! all candidates are gone, where the guarantee is one that they share. (Rule 10 of YuniKorn.)

use crate::ids::PodId;
use crate::laws::{Law, TooLittle};
use crate::queues::{Headroom, UNDEFINED};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// What the guarantee says before anybody is taken.
pub(crate) enum GuaranteeCheck {
    /// The pod fits into what is left of it.
    Suffices,
    /// It does not, and no victim changes that: there is no guarantee, or the queue's own is short.
    Short(Law),
    /// It does not, but victims who share it may leave enough; else this law holds.
    Shared(Law),
}

pub(crate) fn check(snapshot: &Snapshot, preemptor: PodId) -> GuaranteeCheck {
    let Some(queue) = snapshot.pod(preemptor).queue else { return GuaranteeCheck::Short(Law::NoQueue) };
    let queues = snapshot.queues();
    let wants = snapshot.requests(snapshot.pod(preemptor).shape);
    let left = headroom(snapshot, preemptor);
    if left.as_ref().is_some_and(|left| left.fits(wants)) {
        return GuaranteeCheck::Suffices;
    }
    let guarantee = &queues.get(queue).guarantee;
    let own_is_short = wants.iter().enumerate().any(|(at, want)| {
        *want > 0 && guarantee[at] != UNDEFINED && guarantee[at] - queues.used_without_terminating(queue, at) < *want
    });
    let nobody_helps = left.is_none() || own_is_short;
    let law = Law::NotUnderGuarantee { queue, short: left.map_or_else(Vec::new, |left| too_little(&left, wants)) };
    if nobody_helps { GuaranteeCheck::Short(law) } else { GuaranteeCheck::Shared(law) }
}

/// Whether the pod fits into a guarantee that it shares with these candidates, once all of them are gone.
pub(crate) fn fits_after_removing(what_if: &mut WhatIf<'_>, preemptor: PodId, candidates: &[PodId]) -> bool {
    let pod = what_if.snapshot().pod(preemptor);
    let (Some(queue), shape) = (pod.queue, pod.shape) else { return false };
    let mark = what_if.mark();
    what_if.charge(queue, shape);
    for &candidate in candidates {
        what_if.remove(candidate);
    }
    let wants = what_if.snapshot().requests(shape);
    let suffices = headroom(what_if.snapshot(), preemptor).is_some_and(|left| !left.is_overdrawn(wants));
    what_if.back_to(mark);
    suffices
}

/// Whether what is left of the preemptor's guarantee allows to take the victim, who is gone: it must not be larger. (Rule 12.)
pub(crate) fn allows(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> Result<(), Law> {
    let Some(queue) = snapshot.pod(preemptor).queue else { return Ok(()) };
    let takes = snapshot.requests(snapshot.pod(victim).shape);
    match headroom(snapshot, preemptor) {
        None => Err(Law::ExceedsGuaranteeHeadroom { queue, short: Vec::new() }),
        Some(left) if left.fits(takes) => Ok(()),
        Some(left) => Err(Law::ExceedsGuaranteeHeadroom { queue, short: too_little(&left, takes) }),
    }
}

/// Every resource of which less is left than these amounts.
fn too_little(left: &Headroom, amounts: &[i64]) -> Vec<TooLittle> {
    let mut rest = amounts.to_vec();
    let mut all = Vec::new();
    while let Some((resource, left)) = left.short(&rest) {
        let asked = std::mem::take(&mut rest[resource.index()]);
        all.push(TooLittle { resource, left, requested: asked });
    }
    all
}

/// Whether the victim has anything of what the preemptor's guarantee is about.
pub(crate) fn counts_against_guarantee(snapshot: &Snapshot, preemptor: PodId, victim: PodId) -> bool {
    headroom(snapshot, preemptor).is_some_and(|left| left.is_about(snapshot.requests(snapshot.pod(victim).shape)))
}

fn headroom(snapshot: &Snapshot, preemptor: PodId) -> Option<Headroom> {
    let queue = snapshot.pod(preemptor).queue?;
    snapshot.queues().guarantee_headroom(queue, queue)
}

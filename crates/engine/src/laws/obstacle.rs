//! What keeps a preemptor from being placed, whatever room there is: scheduling gates, another scheduler, and requirements that no
//! decision evaluates. Such a preemptor is refused before anything else is looked at: it is never placed, and nothing is evicted for it.

use crate::fit::{Preemptor, PreemptorId};
use crate::ids::PodId;
use crate::laws::Law;
use crate::snapshot::{Obstacle, Snapshot};

/// The law that refuses the preemptor because of an obstacle, if there is one.
pub(crate) fn refuses(snapshot: &Snapshot, ask: &Preemptor) -> Option<Law> {
    let (needed, all) = match ask.preemptor {
        PreemptorId::Pod(pod) => match ask.job.map(|job| snapshot.job(job)) {
            Some(job) if ask.members.contains(&pod) => (job.min_member, job.members.as_slice()),
            Some(_) if snapshot.pod(pod).obstacle == Some(Obstacle::OtherScheduler) => {
                return Some(Law::OtherScheduler { pod, members: 1 });
            }
            Some(_) | None => return of_pod(snapshot, pod),
        },
        PreemptorId::Group(group) => (snapshot.group(group).min_count.max(1), snapshot.group(group).members.as_slice()),
        PreemptorId::Workload(workload) => {
            let field = snapshot.workload(workload).unsupported;
            return field
                .map(|field| Law::Unsupported { pod: None, field })
                .or_else(|| ask.members.iter().find_map(|&pod| of_pod(snapshot, pod)));
        }
    };
    too_few(snapshot, ask, needed, all).or_else(|| unsupported(snapshot, ask))
}

/// The law that refuses the group of a pending pod: a member is not placed where its gang is not.
pub(crate) fn refuses_gang_of(snapshot: &Snapshot, pod: PodId) -> Option<Law> {
    let pod = snapshot.pod(pod);
    let group = pod.group.filter(|_| pod.node.is_none() && pod.takes_part())?;
    refuses(snapshot, &Preemptor::new(snapshot, PreemptorId::Group(group)))
}

/// The obstacle of a pod that asks alone. It asks whichever scheduler it names.
fn of_pod(snapshot: &Snapshot, pod: PodId) -> Option<Law> {
    match snapshot.pod(pod).obstacle.as_ref()? {
        Obstacle::Gates(gates) => Some(Law::SchedulingGates { pod, gates: gates.clone(), gated: 1 }),
        &Obstacle::Unsupported(field) => Some(Law::Unsupported { pod: Some(pod), field }),
        Obstacle::OtherScheduler => None,
    }
}

/// A gang that lacks members because they are gated, or because another scheduler is to place them.
fn too_few(snapshot: &Snapshot, ask: &Preemptor, needed: usize, all: &[PodId]) -> Option<Law> {
    let bound = all.iter().filter(|&&pod| snapshot.pod(pod).node.is_some()).count();
    if !ask.members.is_empty() && bound + ask.members.len() >= needed {
        return None;
    }
    let mut gated = all.iter().filter_map(|&pod| match &snapshot.pod(pod).obstacle {
        Some(Obstacle::Gates(gates)) => Some((pod, gates)),
        Some(Obstacle::OtherScheduler | Obstacle::Unsupported(_)) | None => None,
    });
    if let Some((pod, gates)) = gated.next() {
        return Some(Law::SchedulingGates { pod, gates: gates.clone(), gated: 1 + gated.count() });
    }
    let is_foreign = |&&pod: &&PodId| snapshot.pod(pod).obstacle == Some(Obstacle::OtherScheduler);
    let mut foreign = all.iter().filter(is_foreign);
    let pod = *foreign.next()?;
    Some(Law::OtherScheduler { pod, members: 1 + foreign.count() })
}

/// A group with a field, or with a member to be placed, that no decision evaluates.
fn unsupported(snapshot: &Snapshot, ask: &Preemptor) -> Option<Law> {
    let of_group = match ask.preemptor {
        PreemptorId::Group(group) => snapshot.group(group).unsupported,
        PreemptorId::Pod(_) | PreemptorId::Workload(_) => None,
    };
    let of_member = |&pod: &PodId| match snapshot.pod(pod).obstacle {
        Some(Obstacle::Unsupported(field)) => Some(Law::Unsupported { pod: Some(pod), field }),
        Some(Obstacle::Gates(_) | Obstacle::OtherScheduler) | None => None,
    };
    of_group.map(|field| Law::Unsupported { pod: None, field }).or_else(|| ask.members.iter().find_map(of_member))
}

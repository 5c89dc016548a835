//! docs/rules/kubernetes-pods.md#p21, docs/rules/kubernetes-pods.md#p22, docs/rules/kubernetes-groups.md#g22,
//! docs/rules/kubernetes-groups.md#g23, docs/rules/kubernetes-groups.md#g26: a preemptor with scheduling gates, for another scheduler, or with
//! a requirement that the engine does not evaluate, or in a queue that it may not use (docs/rules/yunikorn.md#y21), or whose group does not
//! exist, is refused before any search: it is not placed, and no pod is evicted for it.

use crate::fit::{Preemptor, PreemptorId};
use crate::ids::PodId;
use crate::laws::Law;
use crate::snapshot::{Obstacle, Pod, Snapshot};

/// The law that refuses the preemptor because of an obstacle.
pub(crate) fn refuses(snapshot: &Snapshot, preemptor: &Preemptor) -> Option<Law> {
    let (needed, all) = match preemptor.id {
        PreemptorId::Pod(pod) => match preemptor.job.map(|job| snapshot.job(job)) {
            Some(job) if preemptor.members.contains(&pod) => (job.min_member, job.members.as_slice()),
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
                .or_else(|| preemptor.members.iter().find_map(|&pod| of_pod(snapshot, pod)));
        }
    };
    too_few(snapshot, preemptor, needed, all).or_else(|| unsupported(snapshot, preemptor))
}

/// The law that refuses the group of a pending pod. A member is refused with its group, and without it.
pub(crate) fn refuses_gang_of(snapshot: &Snapshot, id: PodId) -> Option<Law> {
    let pod = snapshot.pod(id);
    if pod.node.is_some() || !pod.takes_part() {
        return None;
    }
    let Some(group) = pod.group else { return pod.names_group.then_some(Law::GroupMissing { pod: id }) };
    refuses(snapshot, &Preemptor::new(snapshot, PreemptorId::Group(group)))
}

/// The obstacle of a single pod. The caller has decided that this scheduler places the pod, so the scheduler that the pod names does not
/// matter.
fn of_pod(snapshot: &Snapshot, pod: PodId) -> Option<Law> {
    match snapshot.pod(pod).obstacle.as_ref()? {
        Obstacle::Gates(gates) => Some(Law::SchedulingGates { pod, gates: gates.clone(), gated: 1 }),
        &Obstacle::Unsupported(field) => Some(Law::Unsupported { pod: Some(pod), field }),
        &Obstacle::QueueRefused { queue, cause } => Some(Law::QueueRefused { pod, queue, cause }),
        Obstacle::OtherScheduler => None,
    }
}

/// The law for a gang with too few members because some are gated or name another scheduler.
fn too_few(snapshot: &Snapshot, preemptor: &Preemptor, needed: usize, all: &[PodId]) -> Option<Law> {
    let is_group = matches!(preemptor.id, PreemptorId::Group(_));
    let counts = |pod: &Pod| if is_group { pod.runs() } else { pod.node.is_some() };
    let bound = all.iter().filter(|&&pod| counts(snapshot.pod(pod))).count();
    if !preemptor.members.is_empty() && bound + preemptor.members.len() >= needed {
        return None;
    }
    let mut gated = all.iter().filter_map(|&pod| match &snapshot.pod(pod).obstacle {
        Some(Obstacle::Gates(gates)) => Some((pod, gates)),
        Some(Obstacle::OtherScheduler | Obstacle::Unsupported(_) | Obstacle::QueueRefused { .. }) | None => None,
    });
    if let Some((pod, gates)) = gated.next() {
        return Some(Law::SchedulingGates { pod, gates: gates.clone(), gated: 1 + gated.count() });
    }
    let is_foreign = |&&pod: &&PodId| snapshot.pod(pod).obstacle == Some(Obstacle::OtherScheduler);
    let mut foreign = all.iter().filter(is_foreign);
    let pod = *foreign.next()?;
    Some(Law::OtherScheduler { pod, members: 1 + foreign.count() })
}

/// The law for a group with an unsupported field, or with a pending member that has one or may not use its queue.
fn unsupported(snapshot: &Snapshot, preemptor: &Preemptor) -> Option<Law> {
    let of_group = match preemptor.id {
        PreemptorId::Group(group) => snapshot.group(group).unsupported,
        PreemptorId::Pod(_) | PreemptorId::Workload(_) => None,
    };
    let of_member = |&pod: &PodId| match snapshot.pod(pod).obstacle {
        Some(Obstacle::Unsupported(field)) => Some(Law::Unsupported { pod: Some(pod), field }),
        Some(Obstacle::QueueRefused { queue, cause }) => Some(Law::QueueRefused { pod, queue, cause }),
        Some(Obstacle::Gates(_) | Obstacle::OtherScheduler) | None => None,
    };
    of_group.map(|field| Law::Unsupported { pod: None, field }).or_else(|| preemptor.members.iter().find_map(of_member))
}

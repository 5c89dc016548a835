//! Answers that the scheduler needs between two decisions: whether a placement is still valid, whether a unit or a shape could fit, above
//! which priority a pod can be preempted, and when a preemption toleration ends.

use crate::domains::domains;
use crate::fit::{Placement, Preemptor, PreemptorId};
use crate::ids::{NodeId, PodId, Priority, ShapeId, Timestamp, UnitId};
use crate::laws::toleration;
use crate::place::place_enough;
use crate::policy::{Policy, yunikorn};
use crate::snapshot::{BoundPod, Snapshot, Unit};

/// Whether every pod of the placement would still fit without the pods in `removed`. Room is kept for nominees of a higher priority only,
/// and quota is not checked. The snapshot is unchanged afterwards.
pub fn placement_still_fits(
    snapshot: &mut Snapshot,
    preemptor: &Preemptor,
    placement: &Placement,
    removed: &[PodId],
) -> bool {
    // The filters keep room for nominees of the same or a higher priority. One priority higher, only the latter remain.
    let preemptor = &Preemptor { priority: Priority(preemptor.priority.0.saturating_add(1)), ..preemptor.clone() };
    let mut what_if = preemptor.what_if(snapshot);
    // `what_if` has already removed a member that is resized in place; the other members are pending.
    for &pod in removed.iter().filter(|pod| !preemptor.members.contains(pod)) {
        what_if.remove(pod);
    }
    placement.iter().all(|&(pod, node)| {
        let fits = preemptor.filter_failure(&mut what_if, pod, node).is_none();
        what_if.place(pod, node);
        fits
    })
}

/// Whether the preemptor would fit if only units of a higher priority ran. Units of the same priority are removed too, although the
/// preemptor may not evict them: they end at some time, and until then no younger unit should take the room that becomes free. Quota is not
/// checked. The snapshot is unchanged afterwards.
pub fn fits_without_equal_or_lower_priorities(snapshot: &mut Snapshot, preemptor: &Preemptor) -> bool {
    let domains = domains(snapshot, preemptor);
    let mut what_if = preemptor.what_if(snapshot);
    let units: Vec<UnitId> = what_if.snapshot().unit_ids().collect();
    for unit in units {
        if what_if.snapshot().unit(unit).priority <= preemptor.priority {
            what_if.remove_unit(unit);
        }
    }
    domains.iter().any(|domain| {
        let mark = what_if.mark();
        let fits = place_enough(&mut what_if, preemptor, &domain.nodes, &[], &[]).is_ok();
        what_if.back_to(mark);
        fits
    })
}

/// docs/rules/toleration.md#ta3: the next time at which a preemption toleration of a pod ends that the policy's law of priority lets the
/// preemptor take.
pub fn next_toleration_end(
    snapshot: &Snapshot,
    policy: &Policy,
    preemptor: &Preemptor,
    now: Timestamp,
) -> Option<Timestamp> {
    let earliest = |may_take: &dyn Fn(&Unit, PodId) -> bool| {
        let shielded = snapshot.unit_ids().map(|unit| snapshot.unit(unit)).filter(|unit| unit.shielded);
        let pods = shielded.flat_map(|unit| unit.pods.iter().copied().filter(|&pod| may_take(unit, pod)));
        pods.filter_map(|pod| toleration::ends(snapshot.pod(pod), preemptor.priority, now)).min()
    };
    match (policy, preemptor.id) {
        (Policy::Kubernetes(_), _) => earliest(&|unit, _| unit.priority < preemptor.priority),
        (Policy::Koordinator(_), _) => earliest(&|_, pod| snapshot.pod(pod).priority < preemptor.priority),
        (Policy::YuniKorn(_), PreemptorId::Pod(id)) => {
            let priority_allows = yunikorn::priority_allows(snapshot, id);
            earliest(&|_, pod| priority_allows(pod))
        }
        (Policy::YuniKorn(_), PreemptorId::Group(_) | PreemptorId::Workload(_)) | (Policy::Kueue(_), _) => None,
    }
}

/// The priority above which any preemptor under policy Kubernetes may preempt the unit of a bound pod. `None` if the pod is in no unit, if
/// the unit has a terminating or DaemonSet pod, or if it is shielded: a law other than that of priority may spare it.
pub fn preemptible_above(snapshot: &Snapshot, pod: PodId) -> Option<Priority> {
    let unit = snapshot.unit(snapshot.unit_of(pod)?);
    let is_preemptible = |&pod: &PodId| snapshot.pod(pod).terminating.is_none() && !snapshot.pod(pod).daemon;
    (!unit.shielded && unit.pods.iter().all(is_preemptible)).then_some(unit.priority)
}

/// Whether the resources of a node may suffice for a pod of this shape and priority; other filters are not checked. Nominees of the same or
/// a higher priority keep their room, also the pod itself if it is nominated to the node. Bound pods keep theirs too, except for those of a
/// lower priority if the pod may preempt.
pub fn may_have_room(snapshot: &Snapshot, shape: ShapeId, priority: Priority, preempts: bool, node: NodeId) -> bool {
    let remains = |bound: &&BoundPod| !preempts || bound.priority >= priority;
    let pods = snapshot.bound_pods(node).iter().filter(remains).map(|bound| bound.shape);
    let nominees = snapshot.nominees(node).iter().map(|&pod| snapshot.pod(pod));
    let nominees = nominees.filter(|pod| pod.priority >= priority).map(|pod| pod.shape);
    let mut free = snapshot.allocatable(node).to_vec();
    for shape_on_node in pods.chain(nominees) {
        for (free, amount) in free.iter_mut().zip(snapshot.requests(shape_on_node)) {
            *free -= amount;
        }
    }
    let wants = snapshot.requests(shape).iter().zip(&free);
    wants.into_iter().all(|(want, free)| *want == 0 || want <= free)
}

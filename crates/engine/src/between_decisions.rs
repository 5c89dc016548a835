//! What a scheduler asks between two decisions: whether a placement still stands, and when somebody will tolerate no longer.

use crate::domains::domains;
use crate::fit::{self, Placement, Preemptor};
use crate::ids::{NodeId, PodId, Priority, ShapeId, Timestamp, UnitId};
use crate::laws::toleration;
use crate::place::place;
use crate::snapshot::{BoundPod, Snapshot};

/// Whether every pod of the placement would fit where it is placed, with these pods gone. Only those of higher priority hold room
/// against it; quota plays no part.
pub fn placement_still_fits(snapshot: &mut Snapshot, ask: &Preemptor, placement: &Placement, gone: &[PodId]) -> bool {
    let ask = &Preemptor { priority: Priority(ask.priority.0.saturating_add(1)), ..ask.clone() };
    let mut what_if = ask.what_if(snapshot);
    for &pod in gone.iter().filter(|pod| !ask.members.contains(pod)) {
        what_if.remove(pod);
    }
    placement.iter().all(|&(pod, node)| {
        let fits = fit::filter_failure(&mut what_if, ask, pod, node).is_none();
        what_if.place(pod, node);
        fits
    })
}

/// Whether the unit would fit, were nobody there but those above it. Quota plays no part.
pub fn fits_above_lower_priorities(snapshot: &mut Snapshot, ask: &Preemptor) -> bool {
    let domains = domains(snapshot, ask);
    let mut what_if = ask.what_if(snapshot);
    let units: Vec<UnitId> = what_if.snapshot().unit_ids().collect();
    for unit in units {
        if what_if.snapshot().unit(unit).priority <= ask.priority {
            what_if.remove_unit(unit);
        }
    }
    domains.iter().any(|domain| {
        let mark = what_if.mark();
        let placed = place(&mut what_if, ask, &domain.nodes, &[], &[]).len();
        what_if.back_to(mark);
        placed >= ask.needed
    })
}

/// The next moment at which a lower pod that tolerates a preemptor of this priority no longer will.
pub fn next_toleration_end(snapshot: &Snapshot, preemptor: Priority, now: Timestamp) -> Option<Timestamp> {
    let shielded = snapshot.unit_ids().map(|unit| snapshot.unit(unit));
    let shielded = shielded.filter(|unit| unit.shielded && unit.priority < preemptor);
    shielded.flat_map(|unit| &unit.pods).filter_map(|&pod| toleration::ends(snapshot.pod(pod), preemptor, now)).min()
}

/// The priority above which any preemptor of policy Kubernetes may take a bound pod with its unit; `None` where a law may spare it.
pub fn preemptible_above(snapshot: &Snapshot, pod: PodId) -> Option<Priority> {
    let unit = snapshot.unit(snapshot.unit_of(pod)?);
    let stays = |&pod: &PodId| snapshot.pod(pod).terminating.is_none() && !snapshot.pod(pod).daemon;
    (!unit.shielded && unit.pods.iter().all(stays)).then_some(unit.priority)
}

/// Whether a node may have room for a pod of this shape and priority, as far as resources tell: beside those who hold room there against it,
/// and, unless it preempts, beside everybody.
pub fn may_have_room(snapshot: &Snapshot, shape: ShapeId, priority: Priority, preempts: bool, node: NodeId) -> bool {
    let stays = |slot: &&BoundPod| !preempts || slot.priority >= priority;
    let slots = snapshot.bound_pods(node).iter().filter(stays).map(|slot| slot.shape);
    let nominees = snapshot.nominees(node).iter().map(|&pod| snapshot.pod(pod));
    let nominees = nominees.filter(|pod| pod.priority >= priority).map(|pod| pod.shape);
    let mut free = snapshot.allocatable(node).to_vec();
    for taken in slots.chain(nominees) {
        for (free, amount) in free.iter_mut().zip(snapshot.requests(taken)) {
            *free -= amount;
        }
    }
    let wants = snapshot.requests(shape).iter().zip(&free);
    wants.into_iter().all(|(want, free)| *want == 0 || want <= free)
}

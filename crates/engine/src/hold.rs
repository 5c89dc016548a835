//! What a scheduler asks between two decisions: whether a placement still stands, and when somebody will tolerate no longer.

use crate::decide::open;
use crate::domains::domains;
use crate::fit::{self, Ask, Placement};
use crate::ids::{PodId, Priority, Timestamp, UnitId};
use crate::laws::toleration;
use crate::place::place;
use crate::snapshot::Snapshot;

/// Whether every pod of the placement would fit where it is placed, with these pods gone. Only those of higher priority hold room
/// against it; quota plays no part.
pub fn stands(snapshot: &mut Snapshot, ask: &Ask, placement: &Placement, gone: &[PodId]) -> bool {
    let ask = &Ask { priority: Priority(ask.priority.0.saturating_add(1)), ..ask.clone() };
    let mut what_if = open(snapshot, ask);
    for &pod in gone.iter().filter(|pod| !ask.members.contains(pod)) {
        what_if.remove(pod);
    }
    placement.iter().all(|&(pod, node)| {
        let fits = fit::misfit(&mut what_if, ask, pod, node).is_none();
        what_if.place(pod, node);
        fits
    })
}

/// Whether the unit would fit, were nobody there but those above it. Quota plays no part.
pub fn could_fit(snapshot: &mut Snapshot, ask: &Ask) -> bool {
    let domains = domains(snapshot, ask);
    let mut what_if = open(snapshot, ask);
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

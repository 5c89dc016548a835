//! Whom may it take? Every unit that no law spares, most important first, and how many of each unit's pods would be taken against
//! a disruption budget.

use crate::fit::Ask;
use crate::ids::{NodeId, Timestamp, UnitId};
use crate::laws;
use crate::snapshot::Snapshot;

/// A unit that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub unit: UnitId,
    /// How many of its pods would be taken against a budget.
    pub violations: usize,
}

/// The units with a pod on one of these nodes that no law spares, most important first, charged to the budgets.
pub(crate) fn candidates(
    snapshot: &Snapshot,
    ask: &Ask,
    nodes: impl Iterator<Item = NodeId>,
    now: Timestamp,
) -> Vec<Candidate> {
    let lower = nodes.flat_map(|node| snapshot.slots(node)).filter(|slot| slot.priority < ask.priority);
    let mut units: Vec<UnitId> = lower.map(|slot| slot.unit).collect();
    units.sort_unstable();
    units.dedup();
    units.retain(|&unit| laws::spares(snapshot, ask, unit, now).is_none());
    units.sort_unstable_by_key(|&unit| snapshot.importance(unit));
    charge_budgets(snapshot, units)
}

/// Charges every pod to its budgets, the more important first: what is left over goes to them, and a pod that finds a budget
/// exhausted is taken against it. (Rule 14 of the pods, rule 10 of the groups.)
fn charge_budgets(snapshot: &Snapshot, units: Vec<UnitId>) -> Vec<Candidate> {
    if snapshot.budgets().is_empty() {
        return units.into_iter().map(|unit| Candidate { unit, violations: 0 }).collect();
    }
    let mut allowed = snapshot.budgets().to_vec();
    let mut violates = |pod| {
        let mut exhausted = false;
        for budget in &snapshot.pod(pod).budgets {
            let allowed = &mut allowed[budget.index()];
            *allowed = allowed.saturating_sub(1);
            exhausted |= *allowed < 0;
        }
        exhausted
    };
    let charge = |unit| {
        let violations = snapshot.unit(unit).pods.iter().filter(|&&pod| violates(pod)).count();
        Candidate { unit, violations }
    };
    units.into_iter().map(charge).collect()
}

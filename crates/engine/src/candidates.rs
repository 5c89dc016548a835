//! Whom may it take? Every unit that no law spares, most important first, and how many of each unit's pods would be taken against
//! a disruption budget.

use crate::explanation::Recorder;
use crate::fit::Preemptor;
use crate::ids::{NodeId, Timestamp, UnitId};
use crate::laws::{self, Law, unknown_class};
use crate::snapshot::Snapshot;

/// A unit that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub unit: UnitId,
    /// How many of its pods would be taken against a budget.
    pub violations: usize,
}

/// The units with a pod on one of these nodes that no law spares, most important first, charged to the budgets.
pub(crate) fn candidates<R: Recorder>(
    snapshot: &Snapshot,
    ask: &Preemptor,
    nodes: impl Iterator<Item = NodeId>,
    now: Timestamp,
    recorder: &mut R,
) -> Vec<Candidate> {
    let slots = nodes.flat_map(|node| snapshot.bound_pods(node));
    // The law of priority spares the others; only a recorder needs to know.
    let slots = slots.filter(|slot| R::RECORDS || slot.priority < ask.priority);
    let mut units: Vec<UnitId> = slots.map(|slot| slot.unit).collect();
    units.sort_unstable();
    units.dedup();
    units.retain(|&unit| {
        let law = laws::spares(snapshot, ask, unit, now);
        let is_candidate = law.is_none();
        match law {
            Some(law) => recorder.spared(unit, law),
            None => recorder.candidate(unit),
        }
        is_candidate
    });
    units.sort_unstable_by_key(|&unit| snapshot.importance(unit));
    charge_budgets(snapshot, units)
}

/// The law by which nothing may be taken on the node, if there is one.
pub(crate) fn closed<R: Recorder>(snapshot: &Snapshot, ask: &Preemptor, node: NodeId, recorder: &mut R) -> Option<Law> {
    let law = unknown_class::closes(snapshot, ask, node)?;
    if let Law::UnknownPriorityClass { pod } = law
        && let Some(unit) = snapshot.unit_of(pod)
    {
        recorder.spared(unit, law.clone());
    }
    Some(law)
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

//! The step *candidates* of a decision: the units that no law spares, most important first, and the number of pods of each unit that would
//! violate a disruption budget.

use crate::explanation::Recorder;
use crate::fit::Preemptor;
use crate::ids::{NodeId, Timestamp, UnitId};
use crate::laws::{self, Law, unknown_class};
use crate::snapshot::Snapshot;

/// A unit that no law spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub unit: UnitId,
    /// The number of its pods that would violate a budget.
    pub violations: usize,
}

/// The candidates with a pod on one of these nodes, most important first, charged to the budgets. On the `closed` nodes a law spares all pods.
pub(crate) fn candidates<R: Recorder>(
    snapshot: &Snapshot,
    preemptor: &Preemptor,
    nodes: impl Iterator<Item = NodeId>,
    closed: &[(NodeId, Law)],
    now: Timestamp,
    recorder: &mut R,
) -> Vec<Candidate> {
    let pods = nodes.flat_map(|node| snapshot.bound_pods(node));
    // The law of priority spares the other units; only a recorder needs them. `bound.priority` is that of the unit.
    let pods = pods.filter(|bound| R::RECORDS || bound.priority < preemptor.priority);
    let mut units: Vec<UnitId> = pods.map(|bound| bound.unit).collect();
    units.sort_unstable();
    units.dedup();
    units.retain(|&unit| {
        let law = laws::spares(snapshot, preemptor, unit, now).or_else(|| law_of_node(snapshot, unit, closed));
        let is_candidate = law.is_none();
        match law {
            Some(law) => recorder.spared(unit, law),
            None => recorder.candidate(unit),
        }
        is_candidate
    });
    units.sort_unstable_by_key(|&unit| snapshot.importance(unit)); // the least key is the most important
    charge_budgets(snapshot, units)
}

/// The law that spares the unit because one of its pods is on such a node.
fn law_of_node(snapshot: &Snapshot, unit: UnitId, closed: &[(NodeId, Law)]) -> Option<Law> {
    let nodes = snapshot.unit(unit).pods.iter().filter_map(|&pod| snapshot.bound_node(pod));
    let mut laws = nodes.filter_map(|on| closed.iter().find(|(node, _)| *node == on));
    if closed.is_empty() { None } else { laws.next().map(|(_, law)| law.clone()) }
}

/// docs/rules/toleration.md#t3: the law that spares all pods on the node, because the PriorityClass of a lower pod there is not defined.
/// Only that pod is reported as spared; the node is reported as infeasible by the same law.
pub fn node_law<R: Recorder>(
    snapshot: &Snapshot,
    preemptor: &Preemptor,
    node: NodeId,
    recorder: &mut R,
) -> Option<Law> {
    let law = unknown_class::closes(snapshot, preemptor, node)?;
    if let Law::UnknownPriorityClass { pod } = law
        && let Some(unit) = snapshot.unit_of(pod)
    {
        recorder.spared(unit, law.clone());
    }
    Some(law)
}

/// docs/rules/kubernetes-pods.md#p14, docs/rules/kubernetes-groups.md#g10: charges every pod to its budgets, in order of importance. A pod
/// that finds a budget exhausted violates it.
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

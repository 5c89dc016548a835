//! Finds the units that only the order of names spares: taking one of them instead of a victim would have cost the same. Only explanations
//! use it.

use std::collections::BTreeMap;

use crate::decision::Plan;
use crate::explanation::Recorder;
use crate::fit::Preemptor;
use crate::ids::{NodeId, Priority, QueueId, ShapeId, Timestamp, UnitId};
use crate::laws::unknown_class;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The properties in which interchangeable victims agree. Both are units of one pod without a budget.
type VictimKey = (ShapeId, Priority, Timestamp, Option<QueueId>);

fn victim_key(snapshot: &Snapshot, id: UnitId) -> Option<VictimKey> {
    let unit = snapshot.unit(id);
    let [pod] = unit.pods.as_slice() else { return None };
    let pod = snapshot.pod(*pod);
    let plain = pod.budgets.is_empty() && pod.terminating.is_none() && pod.job.is_none() && !unit.grouped;
    plain.then_some((pod.shape, unit.priority, unit.start, pod.queue))
}

/// Reports the reprieved units that could replace a victim at the same cost: the pods placed on the victim's node would fit on the unit's
/// node. `are_equivalent` is false if the policy prefers one of two nodes, or the pods may not move from the one to the other. If pods have
/// inter-pod constraints it reports nothing.
pub(crate) fn mark_equal_costs<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    plan: &Plan,
    recorder: &mut R,
    are_equivalent: impl Fn(NodeId, NodeId) -> bool,
) {
    if !what_if.inter_pod().is_empty() {
        return;
    }
    let mut reprieved = recorder.candidates();
    reprieved.retain(|unit| !plan.victims.contains(unit));
    let mut victims: BTreeMap<VictimKey, UnitId> = BTreeMap::new();
    for &victim in &plan.victims {
        if let Some(key) = victim_key(what_if.snapshot(), victim) {
            victims.entry(key).or_insert(victim);
        }
    }
    for (key, victim) in victims {
        let Some(victim_node) = node_of(what_if.snapshot(), victim) else { continue };
        let mark = what_if.mark();
        for &other in plan.victims.iter().filter(|other| **other != victim) {
            what_if.remove_unit(other);
        }
        for &(pod, node) in plan.placement.iter().filter(|(_, node)| *node != victim_node) {
            what_if.place(pod, node);
        }
        reprieved.retain(|&unit| {
            let node = node_of(what_if.snapshot(), unit).filter(|&node| are_equivalent(victim_node, node));
            let Some(unit_node) = node.filter(|_| victim_key(what_if.snapshot(), unit) == Some(key)) else {
                return true;
            };
            if unknown_class::closes(what_if.snapshot(), preemptor, unit_node).is_some() {
                return true;
            }
            let mark = what_if.mark();
            what_if.remove_unit(unit);
            let mut moved = plan.placement.iter().filter(|(_, node)| *node == victim_node);
            let fits = moved.all(|&(pod, _)| {
                let fits = preemptor.filter_failure(what_if, pod, unit_node).is_none();
                if fits {
                    what_if.place(pod, unit_node);
                }
                fits
            });
            what_if.back_to(mark);
            if fits {
                recorder.equal_cost(unit, victim);
            }
            !fits
        });
        what_if.back_to(mark);
    }
}

fn node_of(snapshot: &Snapshot, unit: UnitId) -> Option<NodeId> {
    snapshot.unit(unit).pods.first().and_then(|&pod| snapshot.bound_node(pod))
}

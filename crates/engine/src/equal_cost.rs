//! Units that are spared only by the order of names: taking one of them instead of a victim would have cost the same.

use std::collections::BTreeMap;

use crate::decision::Plan;
use crate::explanation::Recorder;
use crate::fit::{self, Preemptor};
use crate::ids::{NodeId, Priority, QueueId, ShapeId, Timestamp, UnitId};
use crate::laws::unknown_class;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// What makes one pod as good a victim as another: a unit of one pod, of equal priority and start, that asks for the same, counts in the
/// same queue and violates no budget.
type VictimKey = (ShapeId, Priority, Timestamp, Option<QueueId>);

fn victim_key(snapshot: &Snapshot, id: UnitId) -> Option<VictimKey> {
    let unit = snapshot.unit(id);
    let [pod] = unit.pods.as_slice() else {
        return None;
    };
    let pod = snapshot.pod(*pod);
    let plain = pod.budgets.is_empty() && pod.terminating.is_none() && pod.job.is_none() && !unit.grouped;
    plain.then_some((pod.shape, unit.priority, unit.start, pod.queue))
}

/// Reports the reprieved units that could be taken instead of a victim at the same cost: the preemptor's pods that are placed on the
/// victim's node fit on the unit's. `alike` says whether the policy itself has no reason to prefer one node to the other. Where pods mind each other
/// nothing is claimed.
pub(crate) fn mark_equal_costs<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    plan: &Plan,
    recorder: &mut R,
    alike: impl Fn(NodeId, NodeId) -> bool,
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
        let Some(from) = node_of(what_if.snapshot(), victim) else {
            continue;
        };
        let mark = what_if.mark();
        for &other in plan.victims.iter().filter(|other| **other != victim) {
            what_if.remove_unit(other);
        }
        for &(pod, node) in plan.placement.iter().filter(|(_, node)| *node != from) {
            what_if.place(pod, node);
        }
        reprieved.retain(|&unit| {
            let home = node_of(what_if.snapshot(), unit).filter(|&home| alike(from, home));
            let Some(to) = home.filter(|_| victim_key(what_if.snapshot(), unit) == Some(key)) else {
                return true;
            };
            if unknown_class::closes(what_if.snapshot(), ask, to).is_some() {
                return true;
            }
            let mark = what_if.mark();
            what_if.remove_unit(unit);
            let mut moved = plan.placement.iter().filter(|(_, node)| *node == from);
            let fits = moved.all(|&(pod, _)| {
                let fits = fit::filter_failure(what_if, ask, pod, to).is_none();
                if fits {
                    what_if.place(pod, to);
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

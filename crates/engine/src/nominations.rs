//! docs/rules/kubernetes-groups.md#g25: whether the placement that a unit is nominated to still stands, so that the unit waits for the pods
//! that were preempted for it instead of preempting others.

use crate::domains::Domain;
use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, Priority};
use crate::laws::Law;
use crate::place::place_enough;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The nodes to which pending pods of the preemptor are nominated; for a pod that is resized in place its own node.
pub(crate) fn nominated_nodes(snapshot: &Snapshot, preemptor: &Preemptor) -> Vec<NodeId> {
    let nominated = preemptor.members.iter().filter_map(|&pod| snapshot.pod(pod).nominated);
    let mut nodes: Vec<NodeId> = nominated.chain(preemptor.resizes_on).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The pods that were preempted for the unit and still terminate: those that the law names, and the other pods of their units.
pub(crate) fn preempted_pods(snapshot: &Snapshot, law: &Law) -> Vec<PodId> {
    let Law::PreemptionInProgress { terminating, .. } = law else { return Vec::new() };
    let units = terminating.iter().filter_map(|&pod| snapshot.unit_of(pod));
    let pods = units.flat_map(|unit| snapshot.unit(unit).pods.iter().copied());
    let is_preempted =
        |pod: &PodId| snapshot.pod(*pod).terminating.is_some_and(|terminating| terminating.by_preemption);
    let mut pods: Vec<PodId> = pods.filter(is_preempted).collect();
    pods.sort_unstable();
    pods.dedup();
    pods
}

/// Whether enough pods of the preemptor fit in one domain once the pods in `leaving` are gone. Its nominated pods keep their nodes where they
/// fit, at least one of them; the others are placed anew. Room is kept for nominees of a higher priority only.
pub(crate) fn placement_stands(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    domains: &[Domain],
    leaving: &[PodId],
) -> bool {
    // The filters keep room for nominees of the same or a higher priority. One priority higher, only the latter remain.
    let whole = Preemptor { priority: Priority(preemptor.priority.0.saturating_add(1)), ..preemptor.clone() };
    let start = what_if.mark();
    for &pod in leaving.iter().filter(|pod| !preemptor.members.contains(pod)) {
        what_if.remove(pod);
    }
    let stands = domains.iter().any(|domain| {
        let mark = what_if.mark();
        let mut others = whole.clone();
        others.members.retain(|&pod| {
            let nominated = what_if.snapshot().pod(pod).nominated.or(preemptor.resizes_on);
            let nominated = nominated.filter(|node| domain.nodes.binary_search(node).is_ok());
            let kept = nominated.filter(|&node| whole.filter_failure(what_if, pod, node).is_none());
            if let Some(node) = kept {
                what_if.place(pod, node);
            }
            kept.is_none()
        });
        let kept = preemptor.members.len() - others.members.len();
        others.needed = preemptor.needed.saturating_sub(kept);
        let fits = kept > 0 && (others.needed == 0 || place_enough(what_if, &others, &domain.nodes, &[], &[]).is_ok());
        what_if.back_to(mark);
        fits
    });
    what_if.back_to(start);
    stands
}

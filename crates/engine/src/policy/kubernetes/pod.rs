//! A pod as the preemptor: the node where it fits without victims, or the node where it costs least.

use super::cascades::{self, RankedPlan};
use super::node_cost::NodeCost;
use super::{Cascades, Kubernetes};
use crate::candidates::{candidates, node_law};
use crate::decision::{Cost, EvictionReason, Plan};
use crate::explanation::{NoRecorder, NodeRefusal, Recorder, RefusedNode};
use crate::filters::FilterFailure;
use crate::fit::Preemptor;
use crate::ids::{NodeId, PodId, Timestamp};
use crate::reprieve::{ReprieveTrial, VictimReasons};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The nominated node if the pod fits there; else the first by name where it fits.
pub(super) fn free_node(what_if: &mut WhatIf<'_>, preemptor: &Preemptor, pod: PodId) -> Option<NodeId> {
    let node_cost = NodeCost::new(what_if.snapshot(), pod);
    let nominated = what_if.snapshot().pod(pod).nominated;
    let all = what_if.snapshot().node_ids();
    nominated.into_iter().chain(all).find(|&node| {
        let has_room = node_cost.as_ref().is_none_or(|node_cost| node_cost.fits(what_if.snapshot(), preemptor, node));
        has_room && preemptor.filter_failure(what_if, pod, node).is_none()
    })
}

/// The plan for the cheapest node; of equal costs the first by name.
pub(super) fn best<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    preemptor: &Preemptor,
    now: Timestamp,
    recorder: &mut R,
) -> Option<Plan> {
    let mut best: Option<(Cost, NodeId)> = None;
    let node_cost = if R::RECORDS { None } else { node_cost(what_if, preemptor) }; // it computes costs without reasons
    for node in what_if.snapshot().node_ids() {
        let bound = best.map(|(cost, _)| cost);
        if let Some(cost) = cost_on(what_if, node_cost.as_ref(), preemptor, node, bound, now, recorder)
            && best.is_none_or(|(best, _)| cost < best)
        {
            best = Some((cost, node));
        }
    }
    let (_, node) = best?;
    let explained_plan = |what_if: &mut WhatIf<'_>, node: NodeId, recorder: &mut R| {
        let mut reasons = Vec::new();
        let plan = plan(what_if, preemptor, node, now, recorder, R::RECORDS.then_some(&mut reasons));
        recorder.victims(reasons);
        plan.expect("a node with a cost has a plan")
    };
    let first = explained_plan(what_if, node, recorder);
    if policy.cascades == Cascades::Ignore {
        return Some(first);
    }
    let others = |what_if: &mut WhatIf<'_>, best: &RankedPlan| cheaper(what_if, preemptor, best, now);
    let first = RankedPlan { plan: first, rank: node.index() };
    let RankedPlan { plan: chosen, rank } = cascades::lowest(what_if, policy, now, first, others, recorder);
    if R::RECORDS && rank != node.index() {
        explained_plan(what_if, NodeId::new(rank), recorder);
    }
    Some(chosen)
}

/// The arithmetic for the cost on a node, if it applies to the pod.
fn node_cost(what_if: &WhatIf<'_>, preemptor: &Preemptor) -> Option<NodeCost> {
    NodeCost::new(what_if.snapshot(), preemptor.members[0]).filter(|_| what_if.inter_pod().is_empty())
}

/// The cost on the node; `None` if the pod cannot be placed there, or possibly if the cost exceeds `bound`.
#[inline]
fn cost_on<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    node_cost: Option<&NodeCost>,
    preemptor: &Preemptor,
    node: NodeId,
    bound: Option<Cost>,
    now: Timestamp,
    recorder: &mut R,
) -> Option<Cost> {
    let snapshot = what_if.snapshot();
    match node_cost {
        Some(node_cost) if snapshot.has_only_single_pod_units(node) => {
            let bound = bound.filter(|cost| cost.violations == 0).unwrap_or(Cost::MAX);
            let cost = node_cost.cost(snapshot, preemptor, node, &bound);
            cost.filter(|_| preemptor.node_failure(snapshot, preemptor.members[0], node).is_none())
        }
        _ => {
            let result = plan(what_if, preemptor, node, now, recorder, None);
            recorder.node(node, &result);
            result.ok().map(|plan| plan.cost)
        }
    }
}

/// The plans that cost less than this one before returning victims count, apart from the first, the cheapest first; at most as many as can
/// be judged, and one more.
fn cheaper(what_if: &mut WhatIf<'_>, preemptor: &Preemptor, best: &RankedPlan, now: Timestamp) -> Vec<RankedPlan> {
    let node_cost = node_cost(what_if, preemptor);
    let limit = best.plan.total_cost();
    let mut costs: Vec<(Cost, usize)> = Vec::new();
    for node in what_if.snapshot().node_ids().filter(|node| node.index() != best.rank) {
        let cost = cost_on(what_if, node_cost.as_ref(), preemptor, node, Some(limit), now, &mut NoRecorder);
        costs.extend(cost.map(|cost| (cost, node.index())).filter(|key| *key < (limit, best.rank)));
    }
    costs.sort_unstable();
    costs.truncate(cascades::MAX_JUDGED);
    let ranked = |(_, rank): (Cost, usize)| {
        let plan = plan(what_if, preemptor, NodeId::new(rank), now, &mut NoRecorder, None).ok()?;
        Some(RankedPlan { plan, rank })
    };
    costs.into_iter().filter_map(ranked).collect()
}

/// The plan for each node where the pod can be placed with preemption.
pub(crate) fn node_plans(snapshot: &mut Snapshot, preemptor: &Preemptor, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let mut what_if = preemptor.what_if(snapshot);
    let nodes = what_if.snapshot().node_ids();
    let plan = |node| Some((node, plan(&mut what_if, preemptor, node, now, &mut NoRecorder, None).ok()?));
    nodes.filter_map(plan).collect()
}

/// The plan for this node: remove all candidates, then reprieve. `reasons` receives the reason for each victim.
fn plan<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    node: NodeId,
    now: Timestamp,
    recorder: &mut R,
    reasons: VictimReasons<'_>,
) -> Result<Plan, RefusedNode> {
    let pod = preemptor.members[0];
    let refused = |what_if: &mut WhatIf<'_>, failure: FilterFailure, refusal: fn(FilterFailure) -> NodeRefusal| {
        let lists_all = R::RECORDS && failure.may_hide_shortages();
        let shortages = lists_all.then(|| preemptor.every_shortage(what_if, pod, node));
        RefusedNode { refusal: refusal(failure), shortages: shortages.unwrap_or_default() }
    };
    let before = preemptor.filter_failure(what_if, pod, node);
    if let Some(failure) = before.filter(|failure| !failure.resolvable()) {
        return Err(refused(what_if, failure, NodeRefusal::FilterFailed));
    }
    if let Some(law) = node_law(what_if.snapshot(), preemptor, node, recorder) {
        return Err(NodeRefusal::Law(law).into());
    }
    let candidates = candidates(what_if.snapshot(), preemptor, std::iter::once(node), &[], now, recorder);
    if let Some(failure) = before.filter(|_| candidates.is_empty()) {
        return Err(refused(what_if, failure, NodeRefusal::NoCandidate));
    }
    let mark = what_if.mark();
    let has_constraints = !what_if.inter_pod().is_empty();
    for candidate in &candidates {
        for index in 0..what_if.snapshot().unit(candidate.unit).pods.len() {
            let pod = what_if.snapshot().unit(candidate.unit).pods[index];
            if has_constraints || what_if.snapshot().bound_node(pod) == Some(node) {
                what_if.remove(pod);
            }
        }
    }
    if let Some(failure) = preemptor.filter_failure(what_if, pod, node) {
        let refused = refused(what_if, failure, NodeRefusal::FilterFailed);
        what_if.back_to(mark);
        return Err(refused);
    }
    what_if.place(pod, node);
    let placement = vec![(pod, node)];
    let victims = ReprieveTrial::new(what_if, preemptor, &placement, reasons).reprieve(&candidates);
    what_if.back_to(mark);
    Ok(Plan::new(what_if.snapshot(), placement, victims, |_| EvictionReason::LowerPriority))
}

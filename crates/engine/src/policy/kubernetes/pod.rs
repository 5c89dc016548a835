//! A pod on one node: where it fits with no victim, and where landing costs least.

use super::node_cost::NodeCost;
use crate::candidates::{candidates, closed};
use crate::decision::{Cost, Plan};
use crate::explanation::{NoRecorder, NodeRefusal, Recorder, RefusedNode};
use crate::filters::FilterFailure;
use crate::fit::{self, Preemptor};
use crate::ids::{NodeId, PodId, Timestamp};
use crate::reprieve::{ReprieveTrial, VictimReasons};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The node that it is nominated to, if it fits there; else the first by name where it does.
pub(super) fn free_node(what_if: &mut WhatIf<'_>, ask: &Preemptor, pod: PodId) -> Option<NodeId> {
    let arithmetic = NodeCost::new(what_if.snapshot(), pod);
    let nominated = what_if.snapshot().pod(pod).nominated;
    let all = what_if.snapshot().node_ids();
    nominated.into_iter().chain(all).find(|&node| {
        let has_room = arithmetic.as_ref().is_none_or(|arithmetic| arithmetic.fits(what_if.snapshot(), ask, node));
        has_room && fit::filter_failure(what_if, ask, pod, node).is_none()
    })
}

/// The plan for the node where landing costs least; on a tie the first by name.
pub(super) fn best<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    pod: PodId,
    now: Timestamp,
    recorder: &mut R,
) -> Option<Plan> {
    let arithmetic = NodeCost::new(what_if.snapshot(), pod).filter(|_| what_if.inter_pod().is_empty());
    let arithmetic = arithmetic.filter(|_| !R::RECORDS); // it gives a cost, and no reason
    let mut best: Option<(Cost, NodeId)> = None;
    for node in what_if.snapshot().node_ids() {
        let snapshot = what_if.snapshot();
        let cost = match &arithmetic {
            Some(arithmetic) if snapshot.has_only_single_pod_units(node) => {
                let bound = best.map(|(cost, _)| cost).filter(|cost| cost.violations == 0).unwrap_or(Cost::MAX);
                let cost = arithmetic.cost(snapshot, ask, node, &bound);
                cost.filter(|_| ask.node_failure(snapshot, pod, node).is_none())
            }
            _ => {
                let result = plan(what_if, ask, node, now, recorder, None);
                recorder.node(node, &result);
                result.ok().map(|plan| plan.cost)
            }
        };
        if let Some(cost) = cost
            && best.is_none_or(|(best, _)| cost < best)
        {
            best = Some((cost, node));
        }
    }
    let (_, node) = best?;
    let mut reasons = Vec::new();
    let plan = plan(what_if, ask, node, now, recorder, R::RECORDS.then_some(&mut reasons));
    recorder.victims(reasons);
    Some(plan.expect("it has a cost, so it has a plan"))
}

/// The victims that landing on each node would take, for every node where that is possible.
pub(crate) fn node_plans(snapshot: &mut Snapshot, ask: &Preemptor, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let mut what_if = ask.what_if(snapshot);
    let nodes = what_if.snapshot().node_ids();
    let plan = |node| Some((node, plan(&mut what_if, ask, node, now, &mut NoRecorder, None).ok()?));
    nodes.filter_map(plan).collect()
}

/// The plan for landing on this node: take all that may be taken, then reprieve. `reasons` gets why each victim is one.
fn plan<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    node: NodeId,
    now: Timestamp,
    recorder: &mut R,
    reasons: VictimReasons<'_>,
) -> Result<Plan, RefusedNode> {
    let pod = ask.members[0];
    let refused = |what_if: &mut WhatIf<'_>, misfit: FilterFailure, refusal: fn(FilterFailure) -> NodeRefusal| {
        let records = R::RECORDS.then(|| fit::shortages_where_refused(what_if, ask, pod, node, misfit));
        RefusedNode { refusal: refusal(misfit), shortages: records.unwrap_or_default() }
    };
    let before = fit::filter_failure(what_if, ask, pod, node);
    if let Some(misfit) = before.filter(|misfit| !misfit.resolvable()) {
        return Err(refused(what_if, misfit, NodeRefusal::FilterFailed));
    }
    if let Some(law) = closed(what_if.snapshot(), ask, node, recorder) {
        return Err(NodeRefusal::Law(law).into());
    }
    let candidates = candidates(what_if.snapshot(), ask, std::iter::once(node), now, recorder);
    if let Some(misfit) = before.filter(|_| candidates.is_empty()) {
        return Err(refused(what_if, misfit, NodeRefusal::NoCandidate));
    }
    let mark = what_if.mark();
    let elsewhere_matters = !what_if.inter_pod().is_empty();
    for candidate in &candidates {
        for at in 0..what_if.snapshot().unit(candidate.unit).pods.len() {
            let pod = what_if.snapshot().unit(candidate.unit).pods[at];
            if elsewhere_matters || what_if.snapshot().bound_node(pod) == Some(node) {
                what_if.remove(pod);
            }
        }
    }
    if let Some(misfit) = fit::filter_failure(what_if, ask, pod, node) {
        let refused = refused(what_if, misfit, NodeRefusal::FilterFailed);
        what_if.back_to(mark);
        return Err(refused);
    }
    what_if.place(pod, node);
    let placement = vec![(pod, node)];
    let victims = ReprieveTrial::new(what_if, ask, &placement, reasons).reprieve(&candidates);
    what_if.back_to(mark);
    Ok(Plan::new(what_if.snapshot(), placement, victims))
}

//! docs/rules/koordinator.md#q8 to docs/rules/koordinator.md#q11: places the whole job without all candidates, and gives back the
//! candidates that can stay.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::Search;
use super::quota::{over_quota, quota_failure};
use super::removed::{RemovedPod, RemovedPods};
use crate::candidates::{Candidate, node_law};
use crate::decision::{EvictionReason, Plan};
use crate::equal_cost::mark_equal_costs;
use crate::explanation::{Recorder, VictimReason};
use crate::filters::FilterFailure;
use crate::fit::{self, Placement};
use crate::ids::{NodeId, PodId, QueueId, ShapeId};
use crate::laws::Law;
use crate::reprieve::ReprieveTrial;
use crate::what_if::WhatIf;

impl Search<'_, '_, '_> {
    /// Places the members that fit now, by name, each on its nominated node or else on the first by name with room. They stay placed in the
    /// what-if.
    pub(super) fn place_free(&mut self) -> Placement {
        let nodes: Vec<NodeId> = self.snapshot().node_ids().collect();
        let mut placement = Placement::new();
        let mut searched = SearchedUpTo::default();
        for &pod in &self.preemptor.members {
            let nominated = self.snapshot().pod(pod).nominated;
            let free = nominated.filter(|&node| self.filter_failure(pod, node).is_none()).or_else(|| {
                let remaining = searched.remaining(self.what_if, pod, nodes.len());
                let found = remaining.clone().find(|&index| self.filter_failure(pod, nodes[index]).is_none());
                searched.advance(self.what_if, pod, found.unwrap_or(remaining.end));
                found.map(|index| nodes[index])
            });
            if let Some(node) = free {
                self.what_if.place(pod, node);
                placement.push((pod, node));
            }
        }
        placement
    }

    /// Places the whole job without all candidates, and gives back those that can stay.
    pub(super) fn plan<R: Recorder>(&mut self, free: Placement, recorder: &mut R) -> Result<Plan, Option<Law>> {
        let mark = self.what_if.mark();
        for &(pod, node) in &free {
            self.what_if.place(pod, node);
        }
        let rest: Vec<PodId> =
            self.preemptor.members.iter().copied().filter(|pod| free.iter().all(|(placed, _)| placed != pod)).collect();
        let nodes = self.open_nodes(&rest, recorder);
        let mut removed_pods = self.remove_candidates(&nodes, &rest, recorder);
        let costs = if R::RECORDS { removed_pods.costs() } else { Vec::new() };
        let found = match self.over_limit_without_candidates(&rest) {
            Some(law) => Err(Some(law)),
            None => self.place_rest(free, &rest, &nodes, &mut removed_pods).ok_or(None),
        };
        let plan = found.map(|placement| {
            let mut reasons = Vec::new();
            let victims = self.assign_back(&placement, removed_pods.removed, R::RECORDS.then_some(&mut reasons));
            recorder.victims(reasons);
            Plan::new(self.what_if.snapshot(), placement, victims, |_| EvictionReason::LowerPriority)
        });
        self.what_if.back_to(mark);
        if let Ok(plan) = plan.as_ref()
            && R::RECORDS
        {
            let are_equivalent = |a: NodeId, b: NodeId| {
                nodes.binary_search(&a).is_ok()
                    && nodes.binary_search(&b).is_ok()
                    && costs[a.index()] == costs[b.index()]
            };
            mark_equal_costs(self.what_if, self.preemptor, plan, recorder, are_equivalent);
        }
        plan
    }

    /// docs/rules/koordinator.md#q8: the nodes where evicting pods could make a member fit.
    fn open_nodes<R: Recorder>(&mut self, members: &[PodId], recorder: &mut R) -> Vec<NodeId> {
        let by_shape = fit::by_shape(self.snapshot(), members);
        let nodes = self.snapshot().node_ids();
        let open = |node: &NodeId| {
            node_law(self.what_if.snapshot(), self.preemptor, *node, recorder).is_none()
                && by_shape.values().any(|&pod| {
                    self.preemptor.filter_failure(self.what_if, pod, *node).is_none_or(|failure| failure.resolvable())
                })
        };
        nodes.filter(open).collect()
    }

    /// docs/rules/koordinator.md#q9: removes the candidates on these nodes, and those of the job's quota on any node, as far as their
    /// removal can matter.
    fn remove_candidates<R: Recorder>(&mut self, nodes: &[NodeId], rest: &[PodId], recorder: &mut R) -> RemovedPods {
        let snapshot = self.what_if.snapshot();
        let mut is_open = vec![false; snapshot.node_ids().len()];
        for node in nodes {
            is_open[node.index()] = true;
        }
        let own = self.queue();
        let over_limit = self.queues_over_limit(rest);
        let has_constraints = !self.what_if.inter_pod().is_empty();
        let mut victims = Vec::new();
        for id in (0..snapshot.n_pods()).map(PodId::new) {
            let Some(node) = snapshot.bound_node(id) else { continue };
            let pod = snapshot.pod(id);
            let in_reach = is_open[node.index()] || own.is_some() && pod.queue == own;
            let (true, Some(unit)) = (in_reach, snapshot.unit_of(id)) else { continue };
            if let Some(law) = self.spares(id) {
                recorder.spared(unit, law);
                continue;
            }
            recorder.candidate(unit);
            let matters = has_constraints || pod.queue.is_some_and(|queue| over_limit[queue.index()]);
            victims.push(RemovedPod { pod: id, node, priority: pod.priority, job: pod.job, matters });
        }
        let removed: Vec<RemovedPod> = victims.iter().filter(|victim| victim.matters).copied().collect();
        for victim in &removed {
            self.what_if.remove(victim.pod);
        }
        RemovedPods::new(victims, removed, is_open.len())
    }

    /// docs/rules/koordinator.md#q10: places each member on the cheapest feasible node; all of them or none.
    fn place_rest(
        &mut self,
        mut placement: Placement,
        rest: &[PodId],
        nodes: &[NodeId],
        removed_pods: &mut RemovedPods,
    ) -> Option<Placement> {
        let costs = removed_pods.costs();
        let mut order: Vec<(usize, NodeId)> = nodes.iter().map(|&node| (costs[node.index()], node)).collect();
        order.sort_unstable();
        let mut searched = SearchedUpTo::default();
        for &pod in rest {
            let remaining = searched.remaining(self.what_if, pod, order.len());
            let index = remaining.into_iter().find(|&index| {
                let (_, node) = order[index];
                removed_pods.clear(self.what_if, node);
                self.filter_failure(pod, node).is_none()
            })?;
            searched.advance(self.what_if, pod, index);
            let (_, node) = order[index];
            self.what_if.place(pod, node);
            placement.push((pod, node));
        }
        placement.sort_unstable_by_key(|&(pod, _)| self.snapshot().pod(pod).rank);
        Some(placement)
    }

    /// docs/rules/koordinator.md#q11: puts pods back, by priority, job and name, if all placed pods still fit and every limit holds.
    /// Returns the others.
    fn assign_back(
        &mut self,
        placement: &Placement,
        mut removed: Vec<RemovedPod>,
        reasons: Option<&mut Vec<VictimReason>>,
    ) -> Vec<Candidate> {
        let snapshot = self.snapshot();
        let order = |victim: &RemovedPod| {
            let job = victim.job.map(|job| snapshot.job(job).rank);
            (Reverse(victim.priority), job, snapshot.pod(victim.pod).rank)
        };
        removed.sort_unstable_by_key(order);
        let tree = self.snapshot().queues();
        let own: Vec<QueueId> = self.queue().map(|queue| tree.path(queue).collect()).unwrap_or_default();
        let mut victims = Vec::new();
        let mut trial = ReprieveTrial::new(self.what_if, self.preemptor, placement, reasons);
        for RemovedPod { pod, .. } in removed {
            let unit = trial.snapshot().unit_of(pod).expect("a victim is bound");
            let stays = match quota_failure(trial.snapshot(), pod, &own) {
                Some(failure) => {
                    let (first_member, node) = placement[0];
                    trial.record(|snapshot| {
                        let shortages = match failure {
                            FilterFailure::QueueLimit { queue, .. } => over_quota(snapshot, pod, queue),
                            _ => Vec::new(),
                        };
                        VictimReason { unit, pod: first_member, node, failure, shortages }
                    });
                    false
                }
                None => trial.return_pod(unit, pod),
            };
            if !stays {
                victims.push(Candidate { unit, violations: 0 });
            }
        }
        victims
    }
}

/// By shape: how many nodes of the list have no room for it. Placing pods only takes room away, so these nodes are not tried again, unless
/// pods have inter-pod constraints.
#[derive(Default)]
struct SearchedUpTo(BTreeMap<ShapeId, usize>);

impl SearchedUpTo {
    fn remaining(&self, what_if: &WhatIf<'_>, pod: PodId, n_nodes: usize) -> Range<usize> {
        self.0.get(&what_if.snapshot().pod(pod).shape).copied().unwrap_or(0)..n_nodes
    }

    fn advance(&mut self, what_if: &WhatIf<'_>, pod: PodId, index: usize) {
        if what_if.inter_pod().is_empty() {
            self.0.insert(what_if.snapshot().pod(pod).shape, index);
        }
    }
}

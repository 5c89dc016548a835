//! docs/rules/koordinator.md#q8 to docs/rules/koordinator.md#q11: places the whole job without all candidates, and gives back the
//! candidates that can stay.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Search;
use super::gangs::Reached;
use super::give_back::VictimCounts;
use super::quota::QuotaCheck;
use super::removed::{RemovedPod, RemovedPods};
use crate::candidates::node_law;
use crate::decision::{EvictionReason, Plan};
use crate::equal_cost::mark_equal_costs;
use crate::explanation::Recorder;
use crate::fit::{self, Placement};
use crate::ids::{NodeId, PodId, ShapeId};
use crate::laws::Law;
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
        let fewest = VictimCounts::new(self.over_limit(QuotaCheck::Run).is_some());
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
            None => self.place_rest(free, &rest, &nodes, &mut removed_pods, fewest).ok_or(None),
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
        let mut reached = Vec::new();
        for id in (0..snapshot.n_pods()).map(PodId::new) {
            let Some(node) = snapshot.bound_node(id) else { continue };
            let pod = snapshot.pod(id);
            let in_reach = is_open[node.index()] || own.is_some() && pod.queue == own;
            if !in_reach || snapshot.unit_of(id).is_none() {
                continue;
            }
            let candidate = RemovedPod { pod: id, node, priority: pod.priority, job: pod.job, matters: false };
            reached.push(Reached { pod: candidate, law: self.spares(id) });
        }
        self.keep_gangs_whole(&mut reached);
        let mut victims = Vec::new();
        for Reached { pod: candidate, law } in reached {
            let Some(unit) = snapshot.unit_of(candidate.pod) else { continue };
            match law {
                Some(law) => recorder.spared(unit, law),
                None => {
                    recorder.candidate(unit);
                    let queue = snapshot.pod(candidate.pod).queue;
                    let matters = has_constraints || queue.is_some_and(|queue| over_limit[queue.index()]);
                    victims.push(RemovedPod { matters, ..candidate });
                }
            }
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
        mut fewest: VictimCounts,
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
            let (cost, _) = order[index];
            let equal: Vec<NodeId> =
                order[index..].iter().take_while(|(other, _)| *other == cost).map(|&(_, node)| node).collect();
            let node = self.node_with_fewest_victims(pod, equal, removed_pods, &mut fewest);
            removed_pods.clear(self.what_if, node);
            self.what_if.place(pod, node);
            placement.push((pod, node));
        }
        placement.sort_unstable_by_key(|&(pod, _)| self.snapshot().pod(pod).rank);
        Some(placement)
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

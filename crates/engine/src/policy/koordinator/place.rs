//! The whole job is placed with all lawful victims gone, and whoever can is given back.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::Search;
use super::quota::{over_quota, quota_failure};
use super::removed::{RemovedPod, RemovedPods};
use crate::candidates::Candidate;
use crate::decision::Plan;
use crate::equal_cost::mark_equal_costs;
use crate::explanation::{Recorder, VictimReason};
use crate::filters::FilterFailure;
use crate::fit::{self, Placement};
use crate::ids::{NodeId, PodId, QueueId, ShapeId};
use crate::laws::{Law, unknown_class};
use crate::reprieve::ReprieveTrial;
use crate::what_if::WhatIf;

impl Search<'_, '_, '_> {
    /// The members that fit now, by name, each on the node that it is nominated to, or else on the first by name with room; they stay
    /// placed in the what-if.
    pub(super) fn place_free(&mut self) -> Placement {
        let nodes: Vec<NodeId> = self.snapshot().node_ids().collect();
        let mut placement = Placement::new();
        let mut looked = SearchedUpTo::default();
        for &pod in &self.ask.members {
            let nominated = self.snapshot().pod(pod).nominated;
            let free = nominated.filter(|&node| self.filter_failure(pod, node).is_none()).or_else(|| {
                let unseen = looked.remaining(self.what_if, pod, nodes.len());
                let at = unseen.clone().find(|&at| self.filter_failure(pod, nodes[at]).is_none());
                looked.advance(self.what_if, pod, at.unwrap_or(unseen.end));
                at.map(|at| nodes[at])
            });
            if let Some(node) = free {
                self.what_if.place(pod, node);
                placement.push((pod, node));
            }
        }
        placement
    }

    /// Places the whole job with all lawful victims gone, and gives back whom it can. (Rules 8 to 11.)
    pub(super) fn plan<R: Recorder>(&mut self, free: Placement, recorder: &mut R) -> Result<Plan, Option<Law>> {
        let mark = self.what_if.mark();
        for &(pod, node) in &free {
            self.what_if.place(pod, node);
        }
        let rest: Vec<PodId> =
            self.ask.members.iter().copied().filter(|pod| free.iter().all(|(placed, _)| placed != pod)).collect();
        let nodes = self.open_nodes(&rest);
        let mut away = self.remove_candidates(&nodes, &rest, recorder);
        let costs = if R::RECORDS { away.costs() } else { Vec::new() };
        let found = match self.over_limit_without_victims(&rest) {
            Some(law) => Err(Some(law)),
            None => self.place_rest(free, &rest, &nodes, &mut away).ok_or(None),
        };
        let plan = found.map(|placement| {
            let mut reasons = Vec::new();
            let victims = self.assign_back(&placement, away.removed, R::RECORDS.then_some(&mut reasons));
            recorder.victims(reasons);
            Plan::new(self.what_if.snapshot(), placement, victims)
        });
        self.what_if.back_to(mark);
        if let Ok(plan) = plan.as_ref()
            && R::RECORDS
        {
            let alike = |one: NodeId, other: NodeId| {
                nodes.binary_search(&one).is_ok()
                    && nodes.binary_search(&other).is_ok()
                    && costs[one.index()] == costs[other.index()]
            };
            mark_equal_costs(self.what_if, self.ask, plan, recorder, alike);
        }
        plan
    }

    /// The nodes that taking pods away could open. (Rule 8.)
    fn open_nodes(&mut self, members: &[PodId]) -> Vec<NodeId> {
        let by_shape = fit::by_shape(self.snapshot(), members);
        let nodes = self.snapshot().node_ids();
        let open = |node: &NodeId| {
            unknown_class::closes(self.what_if.snapshot(), self.ask, *node).is_none()
                && by_shape.values().any(|&pod| {
                    fit::filter_failure(self.what_if, self.ask, pod, *node).is_none_or(|misfit| misfit.resolvable())
                })
        };
        nodes.filter(open).collect()
    }

    /// Takes away lawful victims on those nodes, and the quota's own anywhere (rule 9), as far as it matters who is away.
    fn remove_candidates<R: Recorder>(&mut self, nodes: &[NodeId], rest: &[PodId], recorder: &mut R) -> RemovedPods {
        let snapshot = self.what_if.snapshot();
        let mut is_open = vec![false; snapshot.node_ids().len()];
        for node in nodes {
            is_open[node.index()] = true;
        }
        let own = self.queue();
        let tight = self.queues_over_limit(rest);
        let all_matter = !self.what_if.inter_pod().is_empty();
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
            let matters = all_matter || pod.queue.is_some_and(|queue| tight[queue.index()]);
            victims.push(RemovedPod { pod: id, node, priority: pod.priority, job: pod.job, affects_quota: matters });
        }
        let gone: Vec<RemovedPod> = victims.iter().filter(|victim| victim.affects_quota).copied().collect();
        for victim in &gone {
            self.what_if.remove(victim.pod);
        }
        RemovedPods::new(victims, gone, is_open.len())
    }

    /// Each on the feasible node of least cost; all of them, or nobody. (Rule 10.)
    fn place_rest(
        &mut self,
        mut placement: Placement,
        rest: &[PodId],
        nodes: &[NodeId],
        away: &mut RemovedPods,
    ) -> Option<Placement> {
        let costs = away.costs();
        let mut order: Vec<(usize, NodeId)> = nodes.iter().map(|&node| (costs[node.index()], node)).collect();
        order.sort_unstable();
        let mut looked = SearchedUpTo::default();
        for &pod in rest {
            let unseen = looked.remaining(self.what_if, pod, order.len());
            let at = unseen.into_iter().find(|&at| {
                let (_, node) = order[at];
                away.clear(self.what_if, node);
                self.filter_failure(pod, node).is_none()
            })?;
            looked.advance(self.what_if, pod, at);
            let (_, node) = order[at];
            self.what_if.place(pod, node);
            placement.push((pod, node));
        }
        placement.sort_unstable_by_key(|&(pod, _)| self.snapshot().pod(pod).rank);
        Some(placement)
    }

    /// By priority, job and name: who returns if all placed pods still fit and every limit holds. (Rule 11.)
    fn assign_back(
        &mut self,
        placement: &Placement,
        mut gone: Vec<RemovedPod>,
        reasons: Option<&mut Vec<VictimReason>>,
    ) -> Vec<Candidate> {
        let snapshot = self.snapshot();
        let by_name = |victim: &RemovedPod| {
            let job = victim.job.map(|job| snapshot.job(job).rank);
            (Reverse(victim.priority), job, snapshot.pod(victim.pod).rank)
        };
        gone.sort_unstable_by_key(by_name);
        let tree = self.snapshot().queues();
        let own: Vec<QueueId> = self.queue().map(|queue| tree.path(queue).collect()).unwrap_or_default();
        let mut victims = Vec::new();
        let mut trial = ReprieveTrial::new(self.what_if, self.ask, placement, reasons);
        for RemovedPod { pod, .. } in gone {
            let unit = trial.snapshot().unit_of(pod).expect("a victim is bound");
            let returns = match quota_failure(trial.snapshot(), pod, &own) {
                Some(misfit) => {
                    let (asking, node) = placement[0];
                    trial.record(|snapshot| {
                        let shortages = match misfit {
                            FilterFailure::QueueLimit { queue, .. } => over_quota(snapshot, pod, queue),
                            _ => Vec::new(),
                        };
                        VictimReason { unit, pod: asking, node, failure: misfit, shortages }
                    });
                    false
                }
                None => trial.return_pod(unit, pod),
            };
            if !returns {
                victims.push(Candidate { unit, violations: 0 });
            }
        }
        victims
    }
}

/// How far down the list of nodes pods of each shape have looked in vain. Who is placed only takes room away, so nobody has to look
/// there again, unless pods mind each other.
#[derive(Default)]
struct SearchedUpTo(BTreeMap<ShapeId, usize>);

impl SearchedUpTo {
    fn remaining(&self, what_if: &WhatIf<'_>, pod: PodId, n_nodes: usize) -> Range<usize> {
        self.0.get(&what_if.snapshot().pod(pod).shape).copied().unwrap_or(0)..n_nodes
    }

    fn advance(&mut self, what_if: &WhatIf<'_>, pod: PodId, at: usize) {
        if what_if.inter_pod().is_empty() {
            self.0.insert(what_if.snapshot().pod(pod).shape, at);
        }
    }
}

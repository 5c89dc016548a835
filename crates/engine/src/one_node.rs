//! A pod on one node: what landing there would cost. Where nothing but priorities and resources matters, the answer is arithmetic
//! over the node's pods in their order; everywhere else the exact search gives it.

use crate::candidates::candidates;
use crate::choose::{Cost, Plan};
use crate::filters::Misfit;
use crate::fit::{self, Ask};
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::{Law, unknown_class};
use crate::reprieve::{Reasons, Trial};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// Why a pod cannot land on a node, not even with preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRefusal {
    /// No pod there may be taken, and it does not fit as it is.
    NoCandidate(Misfit),
    /// It does not fit, whoever goes.
    Misfit(Misfit),
    /// A law forbids to take anything there.
    Law(Law),
}

/// The plan for landing on this node: take all that may be taken, then reprieve.
pub(crate) fn plan(
    what_if: &mut WhatIf<'_>,
    ask: &Ask,
    pod: PodId,
    node: NodeId,
    now: Timestamp,
    reasons: Reasons<'_>,
) -> Result<Plan, NodeRefusal> {
    let before = fit::misfit(what_if, ask, pod, node);
    if let Some(misfit) = before.filter(|misfit| !misfit.resolvable()) {
        return Err(NodeRefusal::Misfit(misfit));
    }
    if let Some(law) = unknown_class::closes(what_if.snapshot(), ask, node) {
        return Err(NodeRefusal::Law(law));
    }
    let candidates = candidates(what_if.snapshot(), ask, std::iter::once(node), now);
    if let Some(misfit) = before.filter(|_| candidates.is_empty()) {
        return Err(NodeRefusal::NoCandidate(misfit));
    }
    let mark = what_if.mark();
    for candidate in &candidates {
        what_if.remove_unit(candidate.unit);
    }
    if let Some(misfit) = fit::misfit(what_if, ask, pod, node) {
        what_if.back_to(mark);
        return Err(NodeRefusal::Misfit(misfit));
    }
    what_if.place(pod, node);
    let placement = vec![(pod, node)];
    let victims = Trial::new(what_if, ask, &placement, reasons).reprieve(&candidates);
    what_if.back_to(mark);
    Ok(Plan::new(what_if.snapshot(), placement, victims))
}

/// The arithmetic for one pod, prepared once for all nodes.
pub(crate) struct Arithmetic {
    /// The resources that the pod asks for.
    wants: Vec<(usize, i64)>,
    slack: Vec<i64>,
}

impl Arithmetic {
    pub fn new(snapshot: &Snapshot, pod: PodId) -> Self {
        let requests = snapshot.requests(snapshot.pod(pod).shape);
        let wants: Vec<(usize, i64)> = requests.iter().copied().enumerate().filter(|want| want.1 > 0).collect();
        Self { slack: vec![0; wants.len()], wants }
    }

    /// What landing on the node costs; `None` where it is impossible, or dearer than `bound`, which violates no budget. INVARIANT:
    /// the node is plain, open to the pod, and the pod minds no other pod.
    pub fn cost(&mut self, snapshot: &Snapshot, ask: &Ask, node: NodeId, bound: &Cost) -> Option<Cost> {
        let slots = snapshot.slots(node);
        let lower = &slots[slots.partition_point(|slot| slot.priority >= ask.priority)..];
        if lower.last()?.priority > bound.top {
            return None;
        }
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        for (slack, &(resource, request)) in self.slack.iter_mut().zip(&self.wants) {
            *slack = allocatable[resource] - request;
        }
        if lower.len() < slots.len() {
            for (slack, &(resource, _)) in self.slack.iter_mut().zip(&self.wants) {
                *slack -= used[resource];
                *slack += lower.iter().map(|slot| snapshot.requests(slot.shape)[resource]).sum::<i64>();
            }
        }
        for nominee in ask.nominees(snapshot, node) {
            let requests = snapshot.requests(snapshot.pod(nominee).shape);
            for (slack, &(resource, _)) in self.slack.iter_mut().zip(&self.wants) {
                *slack -= requests[resource];
            }
        }
        if self.slack.iter().any(|&slack| slack < 0) {
            return None;
        }
        let mut cost = Cost::NOTHING;
        for slot in lower {
            let requests = snapshot.requests(slot.shape);
            let returns =
                self.slack.iter().zip(&self.wants).all(|(&slack, &(resource, _))| requests[resource] <= slack);
            if returns {
                for (slack, &(resource, _)) in self.slack.iter_mut().zip(&self.wants) {
                    *slack -= requests[resource];
                }
            } else {
                cost.add_pods(slot.priority, 1, slot.start, 0);
                if cost.top > bound.top || cost.weight > bound.weight && cost.top == bound.top {
                    return None;
                }
            }
        }
        Some(cost)
    }
}

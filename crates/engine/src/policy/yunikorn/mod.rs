//! The YuniKorn policy: queues with guarantees, fences and the seven laws. Victims are taken one by one, each lawful given those
//! taken before it, until the pod fits; then whoever is not needed is given back. All victims are on the node where the pod
//! lands, unless a node has room already and only quota is short.

mod explain;
mod lawful;
mod take;

use std::cell::Cell;

use crate::decide::open;
use crate::decision::{Outcome, Plan};
use crate::explanation::Explanation;
use crate::filters::Misfit;
use crate::fit::{self, Ask};
use crate::ids::{NodeId, PodId, QueueId, Timestamp};
use crate::laws::under_guarantee::Look;
use crate::laws::{self, Law, delay, fence, under_guarantee, underway};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;
use lawful::opted_out;

/// Decides for one pod.
pub(crate) fn decide(snapshot: &mut Snapshot, ask: &Ask, pod: PodId, now: Timestamp) -> Outcome {
    let mut what_if = open(snapshot, ask);
    let mut search = Search::new(&mut what_if, ask, pod, now);
    if let Some(node) = search.free_node() {
        return Outcome::Schedule(vec![(pod, node)]);
    }
    if let Some(law) = search.gate() {
        return match law {
            Law::Underway { .. } | Law::Delay { .. } => Outcome::Wait(law),
            _ => Outcome::Unschedulable(Some(law)),
        };
    }
    match search.best() {
        Ok(plan) => Outcome::Preempt(plan),
        Err(law) => Outcome::Unschedulable(law),
    }
}

/// Explains an outcome of `decide`.
pub(crate) fn explain(
    snapshot: &mut Snapshot,
    ask: &Ask,
    pod: PodId,
    now: Timestamp,
    plan: Option<&Plan>,
) -> Explanation {
    let mut what_if = open(snapshot, ask);
    let mut search = Search::new(&mut what_if, ask, pod, now);
    let mut explanation = Explanation::default();
    search.explain_nodes(&mut explanation, plan);
    search.explain_spared(&mut explanation, plan);
    explanation
}

/// The victims that landing on each node would take.
pub(crate) fn node_plans(snapshot: &mut Snapshot, ask: &Ask, pod: PodId, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let mut what_if = open(snapshot, ask);
    let mut search = Search::new(&mut what_if, ask, pod, now);
    let nodes = search.what_if.snapshot().node_ids();
    nodes.filter_map(|node| Some((node, search.plan_on(node, None, None).ok()?))).collect()
}

/// One pod's search for a place.
struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    ask: &'a Ask,
    pod: PodId,
    now: Timestamp,
    /// Its queue; a pod without one has nothing but the nodes.
    queue: Option<QueueId>,
    reach: fence::Reach,
    /// By queue: whether it could lose a pod before anybody is taken, once that is known.
    open: Vec<Cell<Option<bool>>>,
}

/// Which plan is best: nobody who opted out, no originator, the fewest, the first by name. (Rule 14.)
type Rank = (bool, bool, usize, NodeId);

impl<'w, 's, 'a> Search<'w, 's, 'a> {
    fn new(what_if: &'w mut WhatIf<'s>, ask: &'a Ask, pod: PodId, now: Timestamp) -> Self {
        let snapshot = what_if.snapshot();
        let queue = snapshot.pod(pod).queue;
        let reach = fence::Reach::new(snapshot, pod);
        let open = vec![Cell::new(None); snapshot.queues().ids().len()];
        Self { what_if, ask, pod, now, queue, reach, open }
    }

    fn snapshot(&self) -> &Snapshot {
        self.what_if.snapshot()
    }

    fn wants(&self) -> &[i64] {
        self.snapshot().requests(self.snapshot().pod(self.pod).shape)
    }

    fn is_daemon(&self) -> bool {
        self.snapshot().pod(self.pod).daemon
    }

    /// The queue that the pod would take over its ceiling, if any.
    fn over_ceiling(&self) -> Option<Misfit> {
        let (queue, resource, over) = self.snapshot().queues().over_ceiling(self.queue?, self.wants())?;
        Some(Misfit::Ceiling { queue, resource, over })
    }

    /// Why the pod does not fit on the node as things are.
    fn node_misfit(&self, node: NodeId) -> Option<Misfit> {
        self.ask.closed(self.snapshot(), self.pod, node).or_else(|| fit::misfit_beside(self.what_if, self.pod, node))
    }

    /// Whether another pod has reserved the node. (Rules 13 and 19.)
    fn reserved(&self, node: NodeId) -> Option<Law> {
        let other = self.snapshot().nominees(node).iter().copied().find(|&pod| pod != self.pod)?;
        Some(Law::Reserved { pod: other })
    }

    fn is_free(&self, node: NodeId) -> bool {
        self.reserved(node).is_none() && self.node_misfit(node).is_none()
    }

    /// Where it fits with no victim, in its queues and on a node. (Rule 2.)
    fn free_node(&self) -> Option<NodeId> {
        self.over_ceiling().is_none().then(|| self.node_with_room())?
    }

    fn node_with_room(&self) -> Option<NodeId> {
        let nominated = self.snapshot().pod(self.pod).nominated;
        nominated.into_iter().chain(self.snapshot().node_ids()).find(|&node| self.is_free(node))
    }

    /// (Rule 3.)
    fn gate(&mut self) -> Option<Law> {
        let snapshot = self.snapshot();
        if !snapshot.queues().enabled {
            return Some(Law::PreemptionDisabled);
        }
        laws::never::refuses(snapshot, self.ask)
            .or_else(|| underway::still_leaving(snapshot, snapshot.pod(self.pod).nominated, &self.reach))
            .or_else(|| delay::refuses(snapshot, self.pod, self.now))
    }

    /// The best plan, or the law by which there is none.
    fn best(&mut self) -> Result<Plan, Option<Law>> {
        if self.is_daemon() {
            if let Some(Misfit::Ceiling { queue, .. }) = self.over_ceiling() {
                return Err(Some(Law::Ceiling { queue }));
            }
        } else if let Some(law) = self.not_under_guarantee() {
            return Err(Some(law));
        }
        if !self.is_daemon()
            && self.over_ceiling().is_some()
            && let Some(node) = self.node_with_room()
        {
            return self.plan_for_quota(node, None).ok_or(None);
        }
        let mut best: Option<(Rank, Plan)> = None;
        for node in self.snapshot().node_ids() {
            let least = best.as_ref().map(|(rank, _)| *rank);
            if least.is_some_and(|(opted_out, originator, n, _)| n == 1 && !opted_out && !originator) {
                break; // nothing is better, and on a tie the earlier node stays
            }
            if !self.may_rank_below(node, least) {
                continue;
            }
            if let Ok(plan) = self.plan_on(node, None, None) {
                let rank = self.rank(&plan, node);
                if least.is_none_or(|least| rank < least) {
                    best = Some((rank, plan));
                }
            }
        }
        best.map(|(_, plan)| plan).ok_or(None)
    }

    fn rank(&self, plan: &Plan, node: NodeId) -> Rank {
        let snapshot = self.snapshot();
        let pods = || plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods);
        let any = |is: fn(&crate::snapshot::Pod) -> bool| pods().any(|&pod| is(snapshot.pod(pod)));
        (any(opted_out), any(|pod| pod.originator), pods().count(), node)
    }

    /// Whether a plan on the node might rank below `least`, or might be at all, as far as sums tell: its victims free what the
    /// node is short of, and each frees no more than the largest pod does.
    fn may_rank_below(&self, node: NodeId, least: Option<Rank>) -> bool {
        let snapshot = self.snapshot();
        let (allocatable, used) = (snapshot.allocatable(node), snapshot.used(node));
        let wants = self.wants().iter().enumerate().filter(|(_, want)| **want > 0);
        wants.map(|(at, want)| (at, want + used[at] - allocatable[at])).filter(|(_, short)| *short > 0).all(
            |(at, short)| {
                let amounts = snapshot.slots(node).iter().map(|slot| snapshot.requests(slot.shape)[at]);
                let (sum, largest) = amounts.fold((0, 0), |(sum, largest), amount| (sum + amount, amount.max(largest)));
                let fewest = |largest: i64| (short + largest - 1) / largest;
                sum >= short
                    && least.is_none_or(|(opted_out, originator, n, _)| {
                        opted_out || originator || i64::try_from(n).is_ok_and(|n| fewest(largest) < n)
                    })
            },
        )
    }

    /// Law 4.
    fn not_under_guarantee(&mut self) -> Option<Law> {
        match under_guarantee::look(self.snapshot(), self.pod) {
            Look::Suffices => None,
            Look::Short(law) => Some(law),
            Look::Shared(law) => {
                let candidates = self.all_candidates();
                (!under_guarantee::suffices_without(self.what_if, self.pod, &candidates)).then_some(law)
            }
        }
    }
}

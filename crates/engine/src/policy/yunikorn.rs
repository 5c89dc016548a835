//! The YuniKorn policy: queues with guarantees, fences and the seven laws. Victims are taken one by one, each lawful given those
//! taken before it, until the pod fits; then whoever is not needed is given back. All victims are on the node where the pod
//! lands, unless a node has room already and only quota is short.

use std::cell::Cell;
use std::cmp::Reverse;

use crate::candidates::Candidate;
use crate::choose::Plan;
use crate::decide::{Outcome, open};
use crate::explain::{Explanation, NodeVerdict, Spared};
use crate::filters::Misfit;
use crate::fit::{self, Ask};
use crate::ids::{NodeId, PodId, Priority, QueueId, Timestamp, UnitId};
use crate::laws::under_guarantee::Look;
use crate::laws::{
    self, Law, delay, fence, keeps_guarantee, leaving, lower_or_equal, over_guarantee, own_queue, under_guarantee,
    underway, unknown_class,
};
use crate::one_node::NodeRefusal;
use crate::reprieve::Reason;
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

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
    nodes.filter_map(|node| Some((node, search.plan_on(node, None).ok()?))).collect()
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
        self.snapshot().pod(self.pod).daemon_of.is_some()
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
            if let Ok(plan) = self.plan_on(node, None) {
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

    /// The law that spares a pod before anybody is taken. (Rules 5 to 9; rule 17 for a DaemonSet's pod.)
    fn spares(&self, pod: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let common = self.pod_spares(pod);
        if self.is_daemon() {
            let priority = snapshot.pod(pod).priority;
            return common.or_else(|| (priority > self.ask.priority).then_some(Law::Priority { candidate: priority }));
        }
        common.or_else(|| self.queue_spares(pod)).or_else(|| {
            let queue = snapshot.pod(pod).queue?;
            over_guarantee::spares(snapshot, self.pod, queue)
                .or_else(|| keeps_guarantee::spares(snapshot, pod, &self.reach))
        })
    }

    /// The laws that look at the pod alone.
    fn pod_spares(&self, pod: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let unit = snapshot.unit_of(pod).map(|unit| snapshot.unit(unit))?;
        leaving::spares(snapshot, pod)
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| laws::toleration::spares(snapshot, unit, self.ask, self.now))
    }

    /// The laws that look at the pod's queue, whoever uses what.
    fn queue_spares(&self, pod: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let Some(queue) = snapshot.pod(pod).queue else {
            return Some(Law::NoQueue);
        };
        self.closed_queue(queue).or_else(|| lower_or_equal::spares(snapshot, pod, queue, &self.reach))
    }

    fn closed_queue(&self, queue: QueueId) -> Option<Law> {
        let snapshot = self.snapshot();
        let disabled = !snapshot.queues().get(queue).yields;
        fence::spares(snapshot, queue, &self.reach)
            .or_else(|| own_queue::spares(queue, &self.reach))
            .or_else(|| disabled.then_some(Law::QueueDisabled { queue }))
    }

    /// Laws 5 and 2, given those taken so far.
    fn guarantees_allow(&self, pod: PodId) -> bool {
        let snapshot = self.snapshot();
        let queue = snapshot.pod(pod).queue;
        queue.is_none_or(|queue| over_guarantee::spares(snapshot, self.pod, queue).is_none())
            && keeps_guarantee::spares(snapshot, pod, &self.reach).is_none()
    }

    /// Whether the laws that look at a queue alone let it lose a pod. INVARIANT: asked only while nobody is taken.
    fn is_open(&self, queue: QueueId) -> bool {
        let known = &self.open[queue.index()];
        known.get().unwrap_or_else(|| {
            let snapshot = self.snapshot();
            let open =
                self.closed_queue(queue).is_none() && over_guarantee::spares(snapshot, self.pod, queue).is_none();
            known.set(Some(open));
            open
        })
    }

    /// The pods anywhere that no law spares, in the order in which they are taken. (Rule 11.)
    fn all_candidates(&self) -> Vec<PodId> {
        let snapshot = self.snapshot();
        let bound = (0..snapshot.n_pods()).map(PodId::new).filter(|&pod| snapshot.pod(pod).node.is_some());
        let mut pods: Vec<PodId> = bound.filter(|&pod| self.may_go(pod)).collect();
        pods.sort_by_cached_key(|&pod| self.order(pod));
        pods
    }

    /// Opted-in first, then non-originators, then the newest. For a DaemonSet's pod: ordinary, opted out, originator; then lower
    /// priority, the newer, the smaller.
    fn order(&self, id: PodId) -> impl Ord + use<> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let newest = Reverse(pod.created);
        if self.is_daemon() {
            let kind = if pod.originator { 2 } else { u8::from(opted_out(pod)) };
            let size: Vec<i64> = snapshot.requests(pod.shape).to_vec();
            return (kind, pod.priority, newest, size, pod.rank);
        }
        (2 * u8::from(opted_out(pod)) + u8::from(pod.originator), Priority(0), newest, Vec::new(), pod.rank)
    }

    /// The plan for landing on this node. (Rules 12, 13, 16 and 17.)
    fn plan_on(&mut self, node: NodeId, reasons: Option<&mut Vec<Reason>>) -> Result<Plan, NodeRefusal> {
        if let Some(misfit) = self.ask.closed(self.snapshot(), self.pod, node) {
            return Err(NodeRefusal::Misfit(misfit));
        }
        let reserved = self.reserved(node).or_else(|| unknown_class::closes(self.snapshot(), self.ask, node));
        if let Some(law) = reserved {
            return Err(NodeRefusal::Law(law));
        }
        let before = match self.node_misfit(node) {
            Some(misfit) if misfit.resolvable() => misfit,
            Some(misfit) => return Err(NodeRefusal::Misfit(misfit)),
            None => match self.over_ceiling() {
                Some(misfit) => misfit,
                None => return Err(NodeRefusal::NoCandidate(Misfit::NodeSelection)),
            },
        };
        let mut pods: Vec<PodId> = self.snapshot().pods_on(node).filter(|&pod| self.may_go(pod)).collect();
        if pods.is_empty() {
            return Err(NodeRefusal::NoCandidate(before));
        }
        pods.sort_by_cached_key(|&pod| self.order(pod));
        let queue = if self.is_daemon() { pods } else { self.useful_first(node, &pods) };
        let mark = self.what_if.mark();
        let taken = self.take_until_it_fits(&queue, Some(node));
        let misfit = self.misfit_with(Some(node));
        let plan = match misfit {
            Some(misfit) => Err(NodeRefusal::Misfit(misfit)),
            None => Ok(self.give_back(taken, node, Some(node), reasons)),
        };
        self.what_if.back_to(mark);
        plan
    }

    /// Whether no law spares the pod before anybody is taken.
    fn may_go(&self, pod: PodId) -> bool {
        let snapshot = self.snapshot();
        if pod == self.pod || self.is_daemon() {
            return pod != self.pod && self.spares(pod).is_none();
        }
        snapshot.pod(pod).queue.is_some_and(|queue| {
            self.is_open(queue)
                && lower_or_equal::spares(snapshot, pod, queue, &self.reach).is_none()
                && self.pod_spares(pod).is_none()
                && keeps_guarantee::spares(snapshot, pod, &self.reach).is_none()
        })
    }

    /// Those who reduce what the node is short of, and behind them the others. (Rule 12.)
    fn useful_first(&mut self, node: NodeId, pods: &[PodId]) -> Vec<PodId> {
        let mut short = self.shortfall(node);
        let (mut head, tail) = self.within_guarantee(pods, |search, _| {
            let left = search.shortfall(node);
            let helps = left != short;
            if helps {
                short = left;
            }
            helps
        });
        head.extend(tail);
        head
    }

    /// Those who help, and the others, each lawful given those who help before it. It ends at the first who is larger than what
    /// is left of the pod's own guarantee, which each who helps uses up. `helps` is asked while the pod is gone.
    fn within_guarantee(
        &mut self,
        pods: &[PodId],
        mut helps: impl FnMut(&Self, PodId) -> bool,
    ) -> (Vec<PodId>, Vec<PodId>) {
        let Some(queue) = self.queue else {
            return (pods.to_vec(), Vec::new());
        };
        let mark = self.what_if.mark();
        let (mut helping, mut others) = (Vec::new(), Vec::new());
        for &pod in pods {
            if !self.guarantees_allow(pod) {
                continue;
            }
            let step = self.what_if.mark();
            self.what_if.remove(pod);
            if !under_guarantee::has_left(self.snapshot(), self.pod, pod) {
                break;
            }
            if helps(self, pod) {
                let shape = self.snapshot().pod(pod).shape;
                self.what_if.charge(queue, shape);
                helping.push(pod);
            } else {
                self.what_if.back_to(step);
                others.push(pod);
            }
        }
        self.what_if.back_to(mark);
        (helping, others)
    }

    /// What the node lacks of each resource.
    fn shortfall(&self, node: NodeId) -> Vec<i64> {
        let (allocatable, used) = (self.snapshot().allocatable(node), self.snapshot().used(node));
        let short = |(at, want): (usize, &i64)| if *want > 0 { (want + used[at] - allocatable[at]).max(0) } else { 0 };
        self.wants().iter().enumerate().map(short).collect()
    }

    /// Removes one after the other, each lawful given those before it, until the pod fits.
    fn take_until_it_fits(&mut self, pods: &[PodId], node: Option<NodeId>) -> Vec<PodId> {
        let mut taken = Vec::new();
        for &pod in pods {
            if self.misfit_with(node).is_none() {
                break;
            }
            let lawful = self.is_daemon() || self.guarantees_allow(pod);
            if lawful {
                self.what_if.remove(pod);
                taken.push(pod);
            }
        }
        taken
    }

    /// Why the pod does not fit now: on the node, if one is meant, and in its queues.
    fn misfit_with(&self, node: Option<NodeId>) -> Option<Misfit> {
        node.and_then(|node| self.node_misfit(node)).or_else(|| self.over_ceiling())
    }

    /// Gives back whoever is not needed, the last taken first; the rest are the victims of landing on `at`. For a DaemonSet's pod
    /// the order is strict, and nobody is given back.
    fn give_back(
        &mut self,
        taken: Vec<PodId>,
        at: NodeId,
        node: Option<NodeId>,
        mut reasons: Option<&mut Vec<Reason>>,
    ) -> Plan {
        let mut victims: Vec<UnitId> = Vec::new();
        for &pod in taken.iter().rev() {
            let mark = self.what_if.mark();
            let home = self.snapshot().home(pod).expect("a victim is bound");
            self.what_if.place(pod, home);
            let misfit = self.misfit_with(node);
            if misfit.is_none() && !self.is_daemon() {
                continue;
            }
            let unit = self.snapshot().unit_of(pod).expect("a victim is bound");
            if let (Some(reasons), Some(misfit)) = (&mut reasons, misfit) {
                reasons.push(Reason { unit, pod: self.pod, node: at, misfit });
            }
            self.what_if.back_to(mark);
            victims.push(unit);
        }
        let victims = victims.into_iter().map(|unit| Candidate { unit, violations: 0 }).collect();
        Plan::new(self.snapshot(), vec![(self.pod, at)], victims)
    }

    /// A node has room, and only quota is short: victims from anywhere, until every ceiling holds. (Rule 15.)
    fn plan_for_quota(&mut self, node: NodeId, reasons: Option<&mut Vec<Reason>>) -> Option<Plan> {
        let pods = self.all_candidates();
        let is_about = |search: &Self, pod| under_guarantee::uses_up(search.snapshot(), search.pod, pod);
        let (useful, _) = self.within_guarantee(&pods, is_about);
        let mark = self.what_if.mark();
        let taken = self.take_until_it_fits(&useful, None);
        let plan = self.misfit_with(None).is_none().then(|| self.give_back(taken, node, None, reasons));
        self.what_if.back_to(mark);
        plan
    }

    fn explain_nodes(&mut self, explanation: &mut Explanation, plan: Option<&Plan>) {
        let chosen = plan.and_then(|plan| plan.placement.first()).map(|&(_, node)| node);
        for node in self.snapshot().node_ids() {
            let is_chosen = chosen == Some(node);
            let reasons = is_chosen.then_some(&mut explanation.victims);
            let quota_only = is_chosen && self.is_free(node);
            let found = if quota_only {
                self.plan_for_quota(node, reasons).ok_or(NodeRefusal::NoCandidate(Misfit::NodeSelection))
            } else {
                self.plan_on(node, reasons)
            };
            let verdict = match found {
                Ok(_) if is_chosen => NodeVerdict::Chosen,
                Ok(plan) => NodeVerdict::Dearer(plan),
                Err(refusal) => NodeVerdict::Refused(refusal),
            };
            explanation.nodes.push((node, verdict));
        }
    }

    fn explain_spared(&self, explanation: &mut Explanation, plan: Option<&Plan>) {
        let snapshot = self.snapshot();
        let chosen = plan.and_then(|plan| plan.placement.first()).map(|&(_, node)| node);
        for unit in snapshot.unit_ids() {
            if plan.is_some_and(|plan| plan.victims.contains(&unit)) {
                continue;
            }
            let &pod = snapshot.unit(unit).pods.first().expect("a unit has a pod");
            match self.spares(pod) {
                Some(law) => explanation.spared.push((unit, Spared::Law(law))),
                None if snapshot.home(pod) == chosen => explanation.spared.push((unit, Spared::Reprieved)),
                None => {}
            }
        }
    }
}

/// The word on the pod beats the one on its class. (Rule 18.)
fn opted_out(pod: &crate::snapshot::Pod) -> bool {
    pod.own_opt_out.unwrap_or(pod.opted_out)
}

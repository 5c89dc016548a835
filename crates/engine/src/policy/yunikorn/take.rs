//! Victims are taken one by one, each lawful given those taken before it, until the pod fits; then whoever is not needed is given
//! back.

use super::Search;
use super::laws::under_guarantee;
use crate::candidates::{Candidate, closed};
use crate::decision::Plan;
use crate::explanation::{NodeRefusal, Recorder, RefusedNode, VictimReason};
use crate::filters::FilterFailure;
use crate::fit::{self, Shortage};
use crate::ids::{NodeId, PodId, UnitId};
use crate::reprieve::VictimReasons;

impl Search<'_, '_, '_> {
    /// The plan for landing on this node. (Rules 12, 13, 16 and 17.) `reasons` gets why each victim is one.
    pub(super) fn plan_on<R: Recorder>(
        &mut self,
        node: NodeId,
        recorder: &mut R,
        reasons: VictimReasons<'_>,
    ) -> Result<Plan, RefusedNode> {
        let refused = |search: &Self, misfit: FilterFailure, refusal: fn(FilterFailure) -> NodeRefusal| {
            let records = R::RECORDS.then(|| search.every_shortage(node, misfit));
            RefusedNode { refusal: refusal(misfit), shortages: records.unwrap_or_default() }
        };
        if let Some(misfit) = self.ask.node_failure(self.snapshot(), self.pod, node) {
            return Err(NodeRefusal::FilterFailed(misfit).into());
        }
        let reserved = self.reserved(node).or_else(|| closed(self.snapshot(), self.ask, node, recorder));
        if let Some(law) = reserved {
            return Err(NodeRefusal::Law(law).into());
        }
        let before = match self.node_failure(node) {
            Some(misfit) if misfit.resolvable() => misfit,
            Some(misfit) => return Err(refused(self, misfit, NodeRefusal::FilterFailed)),
            None => match self.over_limit() {
                Some(misfit) => misfit,
                None => return Err(NodeRefusal::NoCandidate(FilterFailure::NodeSelection).into()),
            },
        };
        let pods = self.eligible(self.snapshot().pods_on(node), recorder);
        if pods.is_empty() {
            return Err(refused(self, before, NodeRefusal::NoCandidate));
        }
        let queue = if self.is_daemon() { pods } else { self.useful_first(node, &pods, recorder) };
        let mark = self.what_if.mark();
        let taken = self.take_until_it_fits(&queue, Some(node), recorder);
        let misfit = self.filter_failure(Some(node));
        let plan = match misfit {
            Some(misfit) => Err(refused(self, misfit, NodeRefusal::FilterFailed)),
            None => Ok(self.give_back(taken, node, Some(node), reasons)),
        };
        self.what_if.back_to(mark);
        plan
    }

    /// A node has room, and only quota is short: victims from anywhere, until every ceiling holds. (Rule 15.)
    pub(super) fn plan_for_quota<R: Recorder>(
        &mut self,
        node: NodeId,
        recorder: &mut R,
        reasons: VictimReasons<'_>,
    ) -> Option<Plan> {
        let pods = self.all_eligible(recorder);
        let is_about =
            |search: &Self, pod| under_guarantee::counts_against_guarantee(search.snapshot(), search.pod, pod);
        let (useful, _) = self.within_guarantee(&pods, is_about, recorder);
        let mark = self.what_if.mark();
        let taken = self.take_until_it_fits(&useful, None, recorder);
        let plan = self.filter_failure(None).is_none().then(|| self.give_back(taken, node, None, reasons));
        self.what_if.back_to(mark);
        plan
    }

    /// Those who reduce what the node is short of, and behind them the others. (Rule 12.)
    fn useful_first<R: Recorder>(&mut self, node: NodeId, pods: &[PodId], recorder: &mut R) -> Vec<PodId> {
        let mut short = self.shortfall(node);
        let helps = |search: &Self, _| {
            let left = search.shortfall(node);
            let helps = left != short;
            if helps {
                short = left;
            }
            helps
        };
        let (mut head, tail) = self.within_guarantee(pods, helps, recorder);
        head.extend(tail);
        head
    }

    /// Those who help, and the others, each lawful given those who help before it. It ends at the first who is larger than what
    /// is left of the pod's own guarantee, which each who helps uses up. `helps` is asked while the pod is gone.
    fn within_guarantee<R: Recorder>(
        &mut self,
        pods: &[PodId],
        mut helps: impl FnMut(&Self, PodId) -> bool,
        recorder: &mut R,
    ) -> (Vec<PodId>, Vec<PodId>) {
        let Some(queue) = self.queue else { return (pods.to_vec(), Vec::new()) };
        let mark = self.what_if.mark();
        let (mut helping, mut others) = (Vec::new(), Vec::new());
        for &pod in pods {
            if !self.report(pod, self.guarantees_allow(pod), recorder) {
                continue;
            }
            let step = self.what_if.mark();
            self.what_if.remove(pod);
            if !self.report(pod, under_guarantee::allows(self.snapshot(), self.pod, pod), recorder) {
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
        self.requests().iter().enumerate().map(short).collect()
    }

    /// Removes one after the other, each lawful given those before it, until the pod fits.
    fn take_until_it_fits<R: Recorder>(
        &mut self,
        pods: &[PodId],
        node: Option<NodeId>,
        recorder: &mut R,
    ) -> Vec<PodId> {
        if R::RECORDS {
            pods.iter().filter_map(|&pod| self.snapshot().unit_of(pod)).for_each(|unit| recorder.candidate(unit));
        }
        let mut taken = Vec::new();
        for &pod in pods {
            if self.filter_failure(node).is_none() {
                break;
            }
            if self.is_daemon() || self.report(pod, self.guarantees_allow(pod), recorder) {
                self.what_if.remove(pod);
                taken.push(pod);
            }
        }
        taken
    }

    /// Why the pod does not fit now: on the node, if one is meant, and in its queues.
    fn filter_failure(&self, node: Option<NodeId>) -> Option<FilterFailure> {
        node.and_then(|node| self.node_failure(node)).or_else(|| self.over_limit())
    }

    /// Every resource that is short on the node, or over the limit of the queue, where that is what `misfit` says.
    fn every_shortage(&self, node: NodeId, misfit: FilterFailure) -> Vec<Shortage> {
        match misfit {
            FilterFailure::QueueLimit { queue, .. } => {
                fit::shortages_below_limit(self.snapshot().queues(), queue, self.requests())
            }
            misfit => fit::shortages_ignoring_nominations(self.snapshot(), self.pod, node, misfit),
        }
    }

    /// Gives back whoever is not needed, the last taken first; the rest are the victims of landing on `at`. For a DaemonSet's pod
    /// the order is strict, and nobody is given back: each is a victim because of what was short when it was taken, with those who
    /// were taken after it in place.
    fn give_back(
        &mut self,
        taken: Vec<PodId>,
        at: NodeId,
        node: Option<NodeId>,
        mut reasons: VictimReasons<'_>,
    ) -> Plan {
        let mut victims: Vec<UnitId> = Vec::new();
        for &pod in taken.iter().rev() {
            let mark = self.what_if.mark();
            let home = self.snapshot().bound_node(pod).expect("a victim is bound");
            self.what_if.place(pod, home);
            let Some(misfit) = self.filter_failure(node) else { continue };
            let unit = self.snapshot().unit_of(pod).expect("a victim is bound");
            if let Some(reasons) = &mut reasons {
                let shortages = self.every_shortage(at, misfit);
                reasons.push(VictimReason { unit, pod: self.pod, node: at, failure: misfit, shortages });
            }
            if !self.is_daemon() {
                self.what_if.back_to(mark);
            }
            victims.push(unit);
        }
        let victims = victims.into_iter().map(|unit| Candidate { unit, violations: 0 }).collect();
        Plan::new(self.snapshot(), vec![(self.pod, at)], victims)
    }
}

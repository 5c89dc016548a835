//! The search "take one by one, then give back": victims are taken one by one, each allowed given those before it, until the pod fits;
//! victims that are not needed are then given back.

use std::collections::BTreeMap;

use super::Search;
use super::gangs::Take;
use super::laws::under_guarantee;
use crate::candidates::{Candidate, node_law};
use crate::decision::{EvictionReason, Plan};
use crate::explanation::{NodeRefusal, Recorder, RefusedNode, VictimReason};
use crate::filters::FilterFailure;
use crate::fit::{self, Shortage};
use crate::ids::{GroupId, NodeId, PodId, QueueId, ResourceId, ShapeId, UnitId};
use crate::laws::Law;
use crate::reprieve::VictimReasons;

impl Search<'_, '_, '_> {
    /// docs/rules/yunikorn.md#y12, docs/rules/yunikorn.md#y13, docs/rules/yunikorn.md#y16, docs/rules/yunikorn.md#y17: the plan for this
    /// node. `reasons` receives the reason for each victim.
    pub(super) fn plan_on<R: Recorder>(
        &mut self,
        node: NodeId,
        recorder: &mut R,
        reasons: VictimReasons<'_>,
    ) -> Result<Plan, RefusedNode> {
        let refused = |search: &Self, failure: FilterFailure, refusal: fn(FilterFailure) -> NodeRefusal| {
            let records = R::RECORDS.then(|| search.every_shortage(node, failure));
            RefusedNode { refusal: refusal(failure), shortages: records.unwrap_or_default() }
        };
        if let Some(failure) = self.preemptor.node_failure(self.snapshot(), self.pod, node) {
            return Err(NodeRefusal::FilterFailed(failure).into());
        }
        let reserved = self.reserved(node).or_else(|| node_law(self.snapshot(), self.preemptor, node, recorder));
        if let Some(law) = reserved {
            return Err(NodeRefusal::Law(law).into());
        }
        let before = match self.node_failure(node) {
            Some(failure) if failure.resolvable() => failure,
            Some(failure) => return Err(refused(self, failure, NodeRefusal::FilterFailed)),
            None => match self.over_limit() {
                Some(failure) => failure,
                // The pod fits as it is. `outcome` finds that before any search, so only `node_plans` comes here.
                None => return Err(NodeRefusal::NoCandidate(FilterFailure::NodeSelection).into()),
            },
        };
        let pods = self.eligible(self.snapshot().pods_on(node), recorder);
        let takes = self.takes(pods, recorder);
        if takes.is_empty() {
            return Err(refused(self, before, NodeRefusal::NoCandidate));
        }
        let in_order = match (self.is_daemon(), self.settings.follows_code) {
            (true, true) => takes,
            (true, false) => self.lawful_first(node, takes),
            (false, _) => self.useful_first(node, takes, recorder),
        };
        let mark = self.what_if.mark();
        let taken = self.take_until_fits(&in_order, Some(node), recorder);
        let failure = self.filter_failure(Some(node));
        let plan = match failure {
            Some(failure) => Err(refused(self, failure, NodeRefusal::FilterFailed)),
            None => Ok(self.give_back(taken, node, Some(node), reasons)),
        };
        self.what_if.back_to(mark);
        plan
    }

    /// docs/rules/yunikorn.md#y15: as the code of YuniKorn, if a node has room and only quota is short: victims on any node, until every
    /// limit holds.
    pub(super) fn plan_for_quota<R: Recorder>(
        &mut self,
        node: NodeId,
        recorder: &mut R,
        reasons: VictimReasons<'_>,
    ) -> Option<Plan> {
        let pods = self.all_eligible(recorder);
        let takes = self.takes(pods, recorder);
        // A victim helps if it uses a resource that the preemptor's guarantee covers.
        let helps = |search: &Self, pod| under_guarantee::counts_against_guarantee(search.snapshot(), search.pod, pod);
        let (useful, useless) = self.within_guarantee(takes, helps, recorder);
        self.report_candidates(&useless, recorder);
        let mark = self.what_if.mark();
        let taken = self.take_until_fits(&useful, None, recorder);
        let plan = self.filter_failure(None).is_none().then(|| self.give_back(taken, node, None, reasons));
        self.what_if.back_to(mark);
        plan
    }

    /// docs/rules/yunikorn.md#y12: first the pods that reduce what the pod lacks, then the others.
    fn useful_first<R: Recorder>(&mut self, node: NodeId, takes: Vec<Take>, recorder: &mut R) -> Vec<Take> {
        let mut lacks = self.lacks(node);
        let helps = |search: &Self, _| {
            let left = search.lacks(node);
            let helps = left != lacks;
            if helps {
                lacks = left;
            }
            helps
        };
        let (mut head, tail) = self.within_guarantee(takes, helps, recorder);
        head.extend(tail);
        head
    }

    /// Splits the pods into those that help and the others, each allowed by its own queue's guarantee given those that help before it. As
    /// the code of YuniKorn, it stops at the first pod that is larger than what is left of the preemptor's guarantee, which each pod that
    /// helps uses up. `helps` is called while the pod is removed.
    fn within_guarantee<R: Recorder>(
        &mut self,
        takes: Vec<Take>,
        mut helps: impl FnMut(&Self, PodId) -> bool,
        recorder: &mut R,
    ) -> (Vec<Take>, Vec<Take>) {
        let Some(queue) = self.queue else { return (takes, Vec::new()) };
        let follows_code = self.settings.follows_code;
        let mark = self.what_if.mark();
        let (mut helping, mut others) = (Vec::new(), Vec::new());
        for take in takes {
            let step = self.what_if.mark();
            if self.remove(&take, recorder).is_none() {
                continue;
            }
            if follows_code {
                let allowed = under_guarantee::allows(self.snapshot(), self.pod, take.pod);
                if self.report(take.pod, allowed, recorder).is_none() {
                    break;
                }
            }
            if helps(self, take.pod) {
                if follows_code {
                    let shape = self.snapshot().pod(take.pod).shape;
                    self.what_if.charge(queue, shape);
                }
                helping.push(take);
            } else {
                self.what_if.back_to(step);
                others.push(take);
            }
        }
        self.what_if.back_to(mark);
        (helping, others)
    }

    /// Removes pods one by one, each allowed given those before it. `None`, and no change, if a law spares one of them, or if they are
    /// removed already because their gang is.
    fn remove<R: Recorder>(&mut self, take: &Take, recorder: &mut R) -> Option<Taken> {
        self.snapshot().pod(take.pod).node?;
        let first = self.report(take.pod, self.guarantees_allow(take.pod), recorder)?;
        let mark = self.what_if.mark();
        self.what_if.remove(take.pod);
        let mut rest = Vec::new();
        for &pod in &take.rest {
            if self.snapshot().pod(pod).node.is_none() {
                continue;
            }
            let Ok(reason) = self.guarantees_allow(pod) else {
                self.what_if.back_to(mark);
                return self.report(take.pod, Err(Law::WholeGang { member: pod }), recorder);
            };
            self.what_if.remove(pod);
            rest.push((pod, reason));
        }
        Some(Taken { first: (take.pod, first), rest, gang: take.gang, is_whole: !take.rest.is_empty() })
    }

    /// What the pod lacks on the node, and below the maxima of its queues unless the code of YuniKorn is followed.
    pub(super) fn lacks(&self, node: NodeId) -> Lacks {
        let (allocatable, used) = (self.snapshot().allocatable(node), self.snapshot().used(node));
        let lacks =
            |(i, request): (usize, &i64)| if *request > 0 { (request + used[i] - allocatable[i]).max(0) } else { 0 };
        let limits = if self.settings.follows_code { Vec::new() } else { self.all_over_limit().collect() };
        Lacks { on_node: self.requests().iter().enumerate().map(lacks).collect(), limits }
    }

    /// Removes pods, each allowed given those before it, until the preemptor fits.
    fn take_until_fits<R: Recorder>(&mut self, takes: &[Take], node: Option<NodeId>, recorder: &mut R) -> Vec<Taken> {
        self.report_candidates(takes, recorder);
        let mut taken = Vec::new();
        for take in takes {
            if self.filter_failure(node).is_none() {
                break;
            }
            taken.extend(self.remove(take, recorder));
        }
        taken
    }

    fn report_candidates<R: Recorder>(&self, takes: &[Take], recorder: &mut R) {
        if R::RECORDS {
            let pods = takes.iter().flat_map(Take::pods);
            pods.filter_map(|pod| self.snapshot().unit_of(pod)).for_each(|unit| recorder.candidate(unit));
        }
    }

    /// Reports again the pods that a law spared because of others that the search took before them: only the victims of the chosen plan are
    /// removed now, not those of other nodes and those that were given back.
    pub(super) fn report_again<R: Recorder>(&mut self, plan: &Plan, recorder: &mut R) {
        let Some(queue) = self.queue.filter(|_| R::RECORDS && !self.is_daemon()) else { return };
        let snapshot = self.snapshot();
        let pods = plan.victims.iter().flat_map(|&victim| &snapshot.unit(victim).pods);
        let shapes: Vec<ShapeId> = pods.map(|&pod| snapshot.pod(pod).shape).collect();
        let mark = self.what_if.mark();
        plan.victims.iter().for_each(|&victim| self.what_if.remove_unit(victim));
        let units: Vec<UnitId> = self.snapshot().unit_ids().collect();
        for unit in units {
            let (
                Some(
                    Law::WouldBreakGuarantee { has_lost: true, .. }
                    | Law::NotOverGuarantee { has_lost: true, .. }
                    | Law::ExceedsGuaranteeHeadroom { .. },
                ),
                Some(&pod),
            ) = (recorder.law_of(unit), self.snapshot().unit(unit).pods.first())
            else {
                continue;
            };
            let step = self.what_if.mark();
            let allowed = self.guarantees_allow(pod).and_then(|_| {
                if !self.settings.follows_code {
                    return Ok(());
                }
                shapes.iter().for_each(|&shape| self.what_if.charge(queue, shape));
                self.what_if.remove(pod);
                under_guarantee::allows(self.snapshot(), self.pod, pod)
            });
            self.what_if.back_to(step);
            match allowed {
                Ok(()) => recorder.candidate(unit),
                Err(law) => recorder.spared(unit, law),
            }
        }
        self.what_if.back_to(mark);
    }

    /// The reason why the pod does not fit: on the node, if one is given, or in its queues.
    fn filter_failure(&self, node: Option<NodeId>) -> Option<FilterFailure> {
        node.and_then(|node| self.node_failure(node)).or_else(|| self.over_limit())
    }

    /// Every resource that is short on the node or over the limit of the queue, whichever `failure` is about.
    fn every_shortage(&self, node: NodeId, failure: FilterFailure) -> Vec<Shortage> {
        match failure {
            FilterFailure::QueueLimit { queue, .. } => {
                fit::shortages_below_limit(self.snapshot().queues(), queue, self.requests())
            }
            FilterFailure::Resource { .. } => fit::every_shortage_without_nominees(self.snapshot(), self.pod, node),
            _ => Vec::new(),
        }
    }

    /// Gives back the pods that are not needed, the last taken first; the others are the victims of placing the pod on `node`. `checked` is
    /// the node on which the pod must fit; `None` checks the limits alone. A pod of a gang that goes as a whole is not given back. As the
    /// code of YuniKorn, all pods that a DaemonSet pod takes are victims: each is put back and left in place, so that the pod never fits
    /// again, and the reason for a victim is what was short when it was taken.
    fn give_back(
        &mut self,
        taken: Vec<Taken>,
        node: NodeId,
        checked: Option<NodeId>,
        mut reasons: VictimReasons<'_>,
    ) -> Plan {
        let keeps_all = self.is_daemon() && self.settings.follows_code;
        let mut victims: BTreeMap<UnitId, EvictionReason> = BTreeMap::new();
        let mut whole_gangs: BTreeMap<GroupId, (FilterFailure, Vec<Shortage>)> = BTreeMap::new();
        for taken in taken.iter().rev() {
            let mark = self.what_if.mark();
            let of_gang = taken.gang.and_then(|gang| whole_gangs.get(&gang).cloned());
            let (failure, shortages) = match of_gang {
                Some(known) => known,
                None => {
                    for (pod, _) in taken.pods() {
                        let bound_node = self.snapshot().bound_node(pod).expect("a victim is bound");
                        self.what_if.place(pod, bound_node);
                    }
                    let Some(failure) = self.filter_failure(checked) else { continue };
                    let shortages = reasons.is_some().then(|| self.every_shortage(node, failure));
                    (failure, shortages.unwrap_or_default())
                }
            };
            for (pod, reason) in taken.pods() {
                let unit = self.snapshot().unit_of(pod).expect("a victim is bound");
                let is_new = victims.insert(unit, reason).is_none();
                if let Some(reasons) = reasons.as_mut().filter(|_| is_new) {
                    let shortages = shortages.clone();
                    reasons.push(VictimReason { unit, pod: self.pod, node, failure, shortages });
                }
            }
            if !keeps_all {
                self.what_if.back_to(mark);
            }
            if let Some(gang) = taken.gang.filter(|_| taken.is_whole) {
                whole_gangs.insert(gang, (failure, shortages));
            }
        }
        // YuniKorn considers no disruption budgets.
        let candidates = victims.keys().map(|&unit| Candidate { unit, violations: 0 }).collect();
        Plan::new(self.snapshot(), vec![(self.pod, node)], candidates, |unit| victims[&unit])
    }
}

/// What the pod lacks.
#[derive(PartialEq, Eq)]
pub(super) struct Lacks {
    /// By resource: what the node lacks.
    on_node: Vec<i64>,
    /// By how much each maximum would be exceeded.
    limits: Vec<(QueueId, ResourceId, i64)>,
}

/// Removed pods, each with the reason why the laws about guarantees allow to take it.
struct Taken {
    first: (PodId, EvictionReason),
    rest: Vec<(PodId, EvictionReason)>,
    gang: Option<GroupId>,
    /// Whether it is all that was left of the gang.
    is_whole: bool,
}

impl Taken {
    fn pods(&self) -> impl Iterator<Item = (PodId, EvictionReason)> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

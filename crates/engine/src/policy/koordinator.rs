//! The Koordinator policy: elastic quotas and whole jobs. All pods of a job are placed or nobody is evicted; a quota's min is for
//! those who cannot be preempted, its max for all; idle quota goes to the first comer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::candidates::Candidate;
use crate::choose::Plan;
use crate::decide::{Outcome, open};
use crate::explain::{Explanation, Spared};
use crate::filters::Misfit;
use crate::fit::{self, Ask, Placement};
use crate::ids::{JobId, NodeId, PodId, QueueId, ResourceId, Timestamp, UnitId};
use crate::laws::{Law, never, not_preemptible, opt_out, toleration, underway, unknown_class};
use crate::queues::UNDEFINED;
use crate::reprieve::{Reason, Trial};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// The settings of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Koordinator {
    /// Whether a pod that does not say so cannot be preempted.
    pub disable_default_preemptible: bool,
    /// Whether a pod must say that it may preempt.
    pub disable_default_trigger: bool,
    /// Whether victims are deleted, rather than labelled for somebody else to delete.
    pub deletes_victims: bool,
}

/// Decides for the job of one pod.
pub(crate) fn decide(snapshot: &mut Snapshot, policy: &Koordinator, ask: &Ask, pod: PodId, now: Timestamp) -> Outcome {
    let mut what_if = open(snapshot, ask);
    let mut search = Search { what_if: &mut what_if, policy, ask, pod, now };
    let enough = search.too_few().is_none();
    let may_run = enough && search.over_limit(Purpose::Run).is_none();
    let mark = search.what_if.mark();
    let free = if may_run { search.place_free() } else { Placement::new() };
    if may_run && free.len() == ask.members.len() {
        return Outcome::Schedule(free);
    }
    if let Some(law) = search.may_not_trigger() {
        return Outcome::Unschedulable(Some(law));
    }
    search.what_if.back_to(mark);
    if let Some(law) = search.underway() {
        return Outcome::Wait(law);
    }
    if let Some(law) = search.too_few().or_else(|| search.over_limit(Purpose::Trigger)) {
        return Outcome::Unschedulable(Some(law));
    }
    match search.plan(free, None) {
        Ok(plan) => Outcome::Preempt(plan),
        Err(law) => Outcome::Unschedulable(law),
    }
}

/// Explains an outcome of `decide`.
pub(crate) fn explain(
    snapshot: &mut Snapshot,
    policy: &Koordinator,
    ask: &Ask,
    pod: PodId,
    now: Timestamp,
    plan: Option<&Plan>,
) -> Explanation {
    let mut explanation = Explanation::default();
    let mut what_if = open(snapshot, ask);
    let mut search = Search { what_if: &mut what_if, policy, ask, pod, now };
    if plan.is_some() {
        let mark = search.what_if.mark();
        let may_run = search.over_limit(Purpose::Run).is_none();
        let free = if may_run { search.place_free() } else { Placement::new() };
        search.what_if.back_to(mark);
        let _ = search.plan(free, Some(&mut explanation.victims));
    }
    for unit in search.snapshot().unit_ids() {
        if plan.is_some_and(|plan| plan.victims.contains(&unit)) {
            continue;
        }
        let law = search.snapshot().unit(unit).pods.iter().find_map(|&pod| search.spares(pod));
        explanation.spared.push((unit, law.map_or(Spared::Reprieved, Spared::Law)));
    }
    explanation
}

/// What quota is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Run,
    Trigger,
}

struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    policy: &'a Koordinator,
    ask: &'a Ask,
    pod: PodId,
    now: Timestamp,
}

impl Search<'_, '_, '_> {
    fn snapshot(&self) -> &Snapshot {
        self.what_if.snapshot()
    }

    fn queue(&self) -> Option<QueueId> {
        self.snapshot().pod(self.pod).queue
    }

    fn job(&self) -> Option<JobId> {
        self.snapshot().pod(self.pod).job
    }

    /// On which side of its quota a pod counts. (Rule 1.)
    fn is_preemptible(&self, pod: PodId) -> bool {
        self.snapshot().pod(pod).preemptible.unwrap_or(!self.policy.disable_default_preemptible)
    }

    /// A job needs all its pods. (Rule 7.)
    fn too_few(&self) -> Option<Law> {
        let job = self.snapshot().job(self.job()?);
        (job.members.len() < job.min_member)
            .then_some(Law::TooFewMembers { members: job.members.len(), needed: job.min_member })
    }

    /// What the members that need a place ask for.
    fn asked(&self) -> Vec<i64> {
        let snapshot = self.snapshot();
        let mut total = vec![0; snapshot.resource_ids().len()];
        for &pod in &self.ask.members {
            for (total, request) in total.iter_mut().zip(snapshot.requests(snapshot.pod(pod).shape)) {
                *total += request;
            }
        }
        total
    }

    /// The limit that the job would pass, if any. (Rules 3 to 6.)
    fn over_limit(&self, purpose: Purpose) -> Option<Law> {
        let snapshot = self.snapshot();
        let queue = self.queue()?;
        let tree = snapshot.queues();
        let asked = self.asked();
        let (mut firm, mut firm_request) = (vec![0; asked.len()], vec![0; asked.len()]);
        for id in (0..snapshot.n_pods()).map(PodId::new) {
            let pod = snapshot.pod(id);
            if pod.queue != Some(queue) || self.is_preemptible(id) {
                continue;
            }
            for (at, request) in snapshot.requests(pod.shape).iter().enumerate() {
                firm_request[at] += request;
                if pod.node.is_some() {
                    firm[at] += request;
                }
            }
        }
        let limits = tree.get(queue);
        let used = tree.used(queue);
        let preemptible = self.is_preemptible(self.pod);
        for (at, asked) in asked.iter().enumerate().filter(|(at, _)| limits.ceiling[*at] != UNDEFINED) {
            let (min, max) = (limits.guarantee[at], limits.ceiling[at]);
            let over = |amount: i64, limit: i64| {
                let resource = ResourceId::new(at);
                (limit != UNDEFINED && amount > limit).then_some(Law::QuotaLimit {
                    queue,
                    resource,
                    over: amount - limit,
                })
            };
            let law = if preemptible {
                let reserved = if min == UNDEFINED { firm_request[at] } else { min.min(firm_request[at]) };
                over(reserved + (used[at] - firm[at]) + asked, max)
            } else {
                let run = (purpose == Purpose::Run).then(|| over(used[at] + asked, max)).flatten();
                over(firm[at] + asked, min).or(run)
            };
            if law.is_some() {
                return law;
            }
        }
        match purpose {
            Purpose::Run => self.over_above(&asked),
            Purpose::Trigger => None,
        }
    }

    /// The quota above that the job would take over its max.
    fn over_above(&self, asked: &[i64]) -> Option<Law> {
        let tree = self.snapshot().queues();
        let parent = tree.get(self.queue()?).parent?;
        let (queue, resource, over) = tree.over_ceiling(parent, asked)?;
        Some(Law::QuotaLimit { queue, resource, over })
    }

    /// (Rule 2.)
    fn may_not_trigger(&self) -> Option<Law> {
        let silent = self.policy.disable_default_trigger && !self.snapshot().pod(self.pod).can_preempt;
        never::refuses(self.snapshot(), self.ask).or(silent.then_some(Law::NoTrigger))
    }

    /// (Rule 12.)
    fn underway(&mut self) -> Option<Law> {
        let own = self.snapshot().pod(self.pod).nominated;
        let given_up = own.filter(|&node| {
            fit::misfit(self.what_if, self.ask, self.pod, node).is_some_and(|misfit| !misfit.resolvable())
        });
        if given_up.is_some() {
            return None;
        }
        let snapshot = self.snapshot();
        let nodes: BTreeSet<NodeId> = self.ask.members.iter().filter_map(|&pod| snapshot.pod(pod).nominated).collect();
        let holds_up = |pod: PodId| {
            let leaving = snapshot.pod(pod).leaving.is_some_and(|leaving| leaving.preempted);
            leaving && snapshot.pod(pod).priority < self.ask.priority && self.is_preemptible(pod)
        };
        let leaving = nodes.into_iter().flat_map(|node| snapshot.pods_on(node)).filter(|&pod| holds_up(pod)).collect();
        underway::law(snapshot, leaving)
    }

    /// The members that fit now, by name, each on the first node by name with room; they stay placed in the what-if.
    fn place_free(&mut self) -> Placement {
        let mut placement = Placement::new();
        for &pod in &self.ask.members {
            let nodes = self.snapshot().node_ids();
            let nominated = self.snapshot().pod(pod).nominated.filter(|_| self.ask.members.len() == 1);
            let free = nominated.into_iter().chain(nodes).find(|&node| self.misfit(pod, node).is_none());
            if let Some(node) = free {
                self.what_if.place(pod, node);
                placement.push((pod, node));
            }
        }
        placement
    }

    fn misfit(&mut self, pod: PodId, node: NodeId) -> Option<Misfit> {
        fit::misfit(self.what_if, self.ask, pod, node)
    }

    /// The law that spares a pod.
    fn spares(&self, id: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let unit = snapshot.unit(snapshot.unit_of(id)?);
        if pod.job.is_some() && pod.job == self.job() {
            return Some(Law::OwnJob);
        }
        (pod.priority >= self.ask.priority)
            .then_some(Law::Priority { candidate: pod.priority })
            .or_else(|| not_preemptible::spares(snapshot, id, self.is_preemptible(id)))
            .or_else(|| opt_out::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, self.ask, self.now))
    }

    /// Places the whole job with all lawful victims gone, and gives back whom it can. (Rules 8 to 11.)
    fn plan(&mut self, free: Placement, reasons: Option<&mut Vec<Reason>>) -> Result<Plan, Option<Law>> {
        let mark = self.what_if.mark();
        for &(pod, node) in &free {
            self.what_if.place(pod, node);
        }
        let rest: Vec<PodId> =
            self.ask.members.iter().copied().filter(|pod| free.iter().all(|(placed, _)| placed != pod)).collect();
        let nodes = self.open_nodes(&rest);
        let gone = self.potential_victims(&nodes);
        let costs = self.costs(&gone);
        for &pod in &gone {
            self.what_if.remove(pod);
        }
        let found = match self.over_after(&rest) {
            Some(law) => Err(Some(law)),
            None => self.place_rest(free, &rest, &nodes, &costs).ok_or(None),
        };
        let plan = found.map(|placement| {
            let victims = self.assign_back(&placement, gone, reasons);
            Plan::new(self.what_if.snapshot(), placement, victims)
        });
        self.what_if.back_to(mark);
        plan
    }

    /// The nodes that taking pods away could open. (Rule 8.)
    fn open_nodes(&mut self, members: &[PodId]) -> Vec<NodeId> {
        let nodes = self.snapshot().node_ids();
        let open = |node: &NodeId| {
            unknown_class::closes(self.what_if.snapshot(), self.ask, *node).is_none()
                && members.iter().any(|&pod| {
                    fit::misfit(self.what_if, self.ask, pod, *node).is_none_or(|misfit| misfit.resolvable())
                })
        };
        nodes.filter(open).collect()
    }

    /// Lawful victims on those nodes, and the quota's own anywhere. (Rule 9.)
    fn potential_victims(&self, nodes: &[NodeId]) -> Vec<PodId> {
        let snapshot = self.snapshot();
        let open: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let own = self.queue();
        let in_reach = |&pod: &PodId| {
            let bound = snapshot.home(pod);
            bound.is_some_and(|node| open.contains(&node))
                || bound.is_some() && own.is_some() && snapshot.pod(pod).queue == own
        };
        let pods = (0..snapshot.n_pods()).map(PodId::new).filter(in_reach);
        pods.filter(|&pod| self.spares(pod).is_none()).collect()
    }

    /// By node: the sum over the distinct jobs of its potential victims of the rank of their priority. (Rule 10.)
    fn costs(&self, gone: &[PodId]) -> BTreeMap<NodeId, usize> {
        let snapshot = self.snapshot();
        let priorities: BTreeSet<_> = gone.iter().map(|&pod| snapshot.pod(pod).priority).collect();
        let rank: BTreeMap<_, usize> =
            priorities.into_iter().enumerate().map(|(rank, priority)| (priority, rank)).collect();
        let mut jobs: BTreeMap<NodeId, BTreeMap<JobKey, usize>> = BTreeMap::new();
        for &pod in gone {
            if let Some(node) = snapshot.home(pod) {
                let of_pod = rank[&snapshot.pod(pod).priority];
                let of_job = jobs.entry(node).or_default().entry(self.job_key(pod)).or_default();
                *of_job = of_pod.max(*of_job);
            }
        }
        jobs.into_iter().map(|(node, jobs)| (node, jobs.values().sum())).collect()
    }

    fn job_key(&self, pod: PodId) -> JobKey {
        self.snapshot().pod(pod).job.map_or(JobKey::Pod(pod), JobKey::Job)
    }

    /// With all victims gone, whether the rest of the job still passes a limit.
    fn over_after(&self, rest: &[PodId]) -> Option<Law> {
        let snapshot = self.snapshot();
        let mut asked = vec![0; snapshot.resource_ids().len()];
        for &pod in rest {
            for (total, request) in asked.iter_mut().zip(snapshot.requests(snapshot.pod(pod).shape)) {
                *total += request;
            }
        }
        let (queue, resource, over) = snapshot.queues().over_ceiling(self.queue()?, &asked)?;
        Some(Law::QuotaLimit { queue, resource, over })
    }

    /// Each on the feasible node of least cost; all of them, or nobody.
    fn place_rest(
        &mut self,
        mut placement: Placement,
        rest: &[PodId],
        nodes: &[NodeId],
        costs: &BTreeMap<NodeId, usize>,
    ) -> Option<Placement> {
        let mut order: Vec<(usize, NodeId)> =
            nodes.iter().map(|node| (costs.get(node).copied().unwrap_or_default(), *node)).collect();
        order.sort_unstable();
        for &pod in rest {
            let &(_, node) = order.iter().find(|&&(_, node)| self.misfit(pod, node).is_none())?;
            self.what_if.place(pod, node);
            placement.push((pod, node));
        }
        placement.sort_unstable();
        Some(placement)
    }

    /// By priority, job and name: who returns if all placed pods still fit and every limit holds. (Rule 11.)
    fn assign_back(
        &mut self,
        placement: &Placement,
        mut gone: Vec<PodId>,
        mut reasons: Option<&mut Vec<Reason>>,
    ) -> Vec<Candidate> {
        let snapshot = self.what_if.snapshot();
        gone.sort_by_key(|&pod| (Reverse(snapshot.pod(pod).priority), snapshot.pod(pod).job, pod));
        let own: Vec<QueueId> = self.queue().map(|queue| snapshot.queues().path(queue).collect()).unwrap_or_default();
        let units: Vec<(UnitId, PodId)> =
            gone.iter().map(|&pod| (snapshot.unit_of(pod).expect("a victim is bound"), pod)).collect();
        let mut victims = Vec::new();
        for (unit, pod) in units {
            if let Some(misfit) = quota_misfit(self.what_if.snapshot(), pod, &own) {
                if let Some(reasons) = &mut reasons {
                    let (asking, node) = placement[0];
                    reasons.push(Reason { unit, pod: asking, node, misfit });
                }
                victims.push(Candidate { unit, violations: 0 });
                continue;
            }
            let mut trial = Trial::new(self.what_if, self.ask, placement, reasons.as_deref_mut());
            if !trial.return_pod(unit, pod) {
                victims.push(Candidate { unit, violations: 0 });
            }
        }
        victims
    }
}

/// A job, or a pod of none, which counts as one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JobKey {
    Job(JobId),
    Pod(PodId),
}

/// The limit of the preemptor's quotas that the pod's return would pass.
fn quota_misfit(snapshot: &Snapshot, pod: PodId, own: &[QueueId]) -> Option<Misfit> {
    let tree = snapshot.queues();
    let requests = snapshot.requests(snapshot.pod(pod).shape);
    let shared = tree.path(snapshot.pod(pod).queue?).find(|queue| own.contains(queue))?;
    let (queue, resource, over) = tree.over_ceiling(shared, requests)?;
    Some(Misfit::Ceiling { queue, resource, over })
}

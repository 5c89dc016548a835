//! The Koordinator policy: elastic quotas and whole jobs. All pods of a job are placed or nobody is evicted; a quota's min is for
//! those who cannot be preempted, its max for all; idle quota goes to the first comer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::candidates::Candidate;
use crate::choose::Plan;
use crate::decide::{Outcome, open};
use crate::explain::{Explanation, Spared};
use crate::filters::Misfit;
use crate::fit::{self, Ask, Placement};
use crate::ids::{JobId, NodeId, PodId, Priority, QueueId, ResourceId, ShapeId, Timestamp};
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
    let mut search = Search::new(&mut what_if, policy, ask, pod, now);
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
    let mut search = Search::new(&mut what_if, policy, ask, pod, now);
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
        let reprieved = plan.is_some().then_some(Spared::Reprieved);
        explanation.spared.extend(law.map(Spared::Law).or(reprieved).map(|spared| (unit, spared)));
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
    firm: Firm,
}

/// What those of the asking quota who cannot be preempted use, and what they ask for, pending ones included; by resource.
struct Firm {
    used: Vec<i64>,
    request: Vec<i64>,
}

impl<'w, 's, 'a> Search<'w, 's, 'a> {
    fn new(what_if: &'w mut WhatIf<'s>, policy: &'a Koordinator, ask: &'a Ask, pod: PodId, now: Timestamp) -> Self {
        let zeros = vec![0; what_if.snapshot().resource_ids().len()];
        let firm = Firm { used: zeros.clone(), request: zeros };
        let mut search = Self { what_if, policy, ask, pod, now, firm };
        if let Some(queue) = search.queue() {
            search.firm = search.firm(queue);
        }
        search
    }

    fn firm(&self, queue: QueueId) -> Firm {
        let snapshot = self.snapshot();
        let mut firm = Firm { used: self.firm.used.clone(), request: self.firm.request.clone() };
        for id in (0..snapshot.n_pods()).map(PodId::new) {
            let pod = snapshot.pod(id);
            if pod.queue != Some(queue) || self.is_preemptible(id) {
                continue;
            }
            for (at, request) in snapshot.requests(pod.shape).iter().enumerate() {
                firm.request[at] += request;
                if pod.node.is_some() {
                    firm.used[at] += request;
                }
            }
        }
        firm
    }

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

    /// What these pods ask for together.
    fn asked(&self, pods: &[PodId]) -> Vec<i64> {
        let snapshot = self.snapshot();
        let mut total = vec![0; snapshot.resource_ids().len()];
        for &pod in pods {
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
        let asked = self.asked(&self.ask.members);
        let Firm { used: firm, request: firm_request } = &self.firm;
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

    /// The members that fit now, by name, each on the node that it is nominated to, or else on the first by name with room; they stay
    /// placed in the what-if.
    fn place_free(&mut self) -> Placement {
        let nodes: Vec<NodeId> = self.snapshot().node_ids().collect();
        let mut placement = Placement::new();
        let mut looked = Looked::default();
        for &pod in &self.ask.members {
            let nominated = self.snapshot().pod(pod).nominated;
            let free = nominated.filter(|&node| self.misfit(pod, node).is_none()).or_else(|| {
                let unseen = looked.unseen(self.what_if, pod, nodes.len());
                let at = unseen.clone().find(|&at| self.misfit(pod, nodes[at]).is_none());
                looked.saw(self.what_if, pod, at.unwrap_or(unseen.end));
                at.map(|at| nodes[at])
            });
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
        let mut away = self.away(&nodes, &rest);
        let found = match self.over_after(&rest) {
            Some(law) => Err(Some(law)),
            None => self.place_rest(free, &rest, &nodes, &mut away).ok_or(None),
        };
        let plan = found.map(|placement| {
            let victims = self.assign_back(&placement, away.gone, reasons);
            Plan::new(self.what_if.snapshot(), placement, victims)
        });
        self.what_if.back_to(mark);
        plan
    }

    /// The nodes that taking pods away could open. (Rule 8.)
    fn open_nodes(&mut self, members: &[PodId]) -> Vec<NodeId> {
        let mut by_shape: BTreeMap<ShapeId, PodId> = BTreeMap::new();
        for &pod in members {
            by_shape.entry(self.snapshot().pod(pod).shape).or_insert(pod);
        }
        let nodes = self.snapshot().node_ids();
        let open = |node: &NodeId| {
            unknown_class::closes(self.what_if.snapshot(), self.ask, *node).is_none()
                && by_shape.values().any(|&pod| {
                    fit::misfit(self.what_if, self.ask, pod, *node).is_none_or(|misfit| misfit.resolvable())
                })
        };
        nodes.filter(open).collect()
    }

    /// Takes away lawful victims on those nodes, and the quota's own anywhere (rule 9), as far as it matters who is away.
    fn away(&mut self, nodes: &[NodeId], rest: &[PodId]) -> Away {
        let snapshot = self.what_if.snapshot();
        let mut is_open = vec![false; snapshot.node_ids().len()];
        for node in nodes {
            is_open[node.index()] = true;
        }
        let own = self.queue();
        let tight = self.tight(rest);
        let all_matter = !self.what_if.relations().is_empty();
        let mut victims = Vec::new();
        for id in (0..snapshot.n_pods()).map(PodId::new) {
            let Some(node) = snapshot.home(id) else { continue };
            let pod = snapshot.pod(id);
            let in_reach = is_open[node.index()] || own.is_some() && pod.queue == own;
            if in_reach && self.spares(id).is_none() {
                let matters = all_matter || pod.queue.is_some_and(|queue| tight[queue.index()]);
                victims.push(Victim { pod: id, node, priority: pod.priority, job: pod.job, matters });
            }
        }
        let gone: Vec<Victim> = victims.iter().filter(|victim| victim.matters).copied().collect();
        for victim in &gone {
            self.what_if.remove(victim.pod);
        }
        Away::new(victims, gone, is_open.len())
    }

    /// By queue: whether its pods count in a quota of the asking pod that has no room for the rest of the job and all who run.
    fn tight(&self, rest: &[PodId]) -> Vec<bool> {
        let tree = self.snapshot().queues();
        let asked = self.asked(rest);
        let mut tight = vec![false; tree.ids().len()];
        for id in self.queue().into_iter().flat_map(|own| tree.path(own)) {
            let (ceiling, used) = (&tree.get(id).ceiling, tree.used(id));
            tight[id.index()] =
                (0..asked.len()).any(|at| ceiling[at] != UNDEFINED && used[at] + asked[at] > ceiling[at]);
        }
        for id in tree.ids() {
            let above = tree.get(id).parent.is_some_and(|parent| tight[parent.index()]);
            tight[id.index()] |= above;
        }
        tight
    }

    /// With all victims gone, whether the rest of the job still passes a limit. (Rule 9.)
    fn over_after(&self, rest: &[PodId]) -> Option<Law> {
        let queue = self.queue()?;
        let asked = self.asked(rest);
        let tree = self.snapshot().queues();
        let (ceiling, used) = (&tree.get(queue).ceiling, tree.used(queue));
        let own = (0..asked.len()).find(|&at| ceiling[at] != UNDEFINED && used[at] + asked[at] > ceiling[at]);
        let over = |at: usize| used[at] + asked[at] - ceiling[at];
        own.map(|at| Law::QuotaLimit { queue, resource: ResourceId::new(at), over: over(at) })
            .or_else(|| self.over_above(&asked))
    }

    /// Each on the feasible node of least cost; all of them, or nobody. (Rule 10.)
    fn place_rest(
        &mut self,
        mut placement: Placement,
        rest: &[PodId],
        nodes: &[NodeId],
        away: &mut Away,
    ) -> Option<Placement> {
        let costs = away.costs();
        let mut order: Vec<(usize, NodeId)> = nodes.iter().map(|&node| (costs[node.index()], node)).collect();
        order.sort_unstable();
        let mut looked = Looked::default();
        for &pod in rest {
            let unseen = looked.unseen(self.what_if, pod, order.len());
            let at = unseen.into_iter().find(|&at| {
                let (_, node) = order[at];
                away.clear(self.what_if, node);
                self.misfit(pod, node).is_none()
            })?;
            looked.saw(self.what_if, pod, at);
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
        mut gone: Vec<Victim>,
        reasons: Option<&mut Vec<Reason>>,
    ) -> Vec<Candidate> {
        let snapshot = self.snapshot();
        let by_name = |victim: &Victim| {
            let job = victim.job.map(|job| snapshot.job(job).rank);
            (Reverse(victim.priority), job, snapshot.pod(victim.pod).rank)
        };
        gone.sort_unstable_by_key(by_name);
        let tree = self.snapshot().queues();
        let own: Vec<QueueId> = self.queue().map(|queue| tree.path(queue).collect()).unwrap_or_default();
        let mut victims = Vec::new();
        let mut trial = Trial::new(self.what_if, self.ask, placement, reasons);
        for Victim { pod, .. } in gone {
            let unit = trial.snapshot().unit_of(pod).expect("a victim is bound");
            let returns = match quota_misfit(trial.snapshot(), pod, &own) {
                Some(misfit) => {
                    let (asking, node) = placement[0];
                    trial.keep(Reason { unit, pod: asking, node, misfit });
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

/// A pod that may be taken.
#[derive(Clone, Copy)]
struct Victim {
    pod: PodId,
    node: NodeId,
    priority: Priority,
    job: Option<JobId>,
    /// Whether it matters to others than those who look at its node.
    matters: bool,
}

/// All who may be taken. Who stands on a node that nobody looks at, and counts in no quota that is tight, would come back whatever
/// happens: it stays where it is.
struct Away {
    /// By node.
    victims: Vec<Victim>,
    starts: Vec<usize>,
    cleared: Vec<bool>,
    /// Those who are off their nodes.
    gone: Vec<Victim>,
}

impl Away {
    fn new(mut victims: Vec<Victim>, gone: Vec<Victim>, n_nodes: usize) -> Self {
        victims.sort_by_key(|victim| victim.node);
        let mut starts = vec![0; n_nodes + 1];
        for victim in &victims {
            starts[victim.node.index() + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        Self { victims, starts, cleared: vec![false; n_nodes], gone }
    }

    /// Takes all off a node.
    fn clear(&mut self, what_if: &mut WhatIf<'_>, node: NodeId) {
        if std::mem::replace(&mut self.cleared[node.index()], true) {
            return;
        }
        for victim in &self.victims[self.starts[node.index()]..self.starts[node.index() + 1]] {
            if !victim.matters {
                what_if.remove(victim.pod);
                self.gone.push(*victim);
            }
        }
    }

    /// By node: the sum over the distinct jobs of its potential victims of the rank of their priority; a pod of no job is a job.
    /// (Rule 10.)
    fn costs(&self) -> Vec<usize> {
        let priorities: BTreeSet<Priority> = self.victims.iter().map(|victim| victim.priority).collect();
        let priorities: Vec<Priority> = priorities.into_iter().collect();
        let rank = |victim: &Victim| priorities.partition_point(|&priority| priority < victim.priority);
        let mut jobs: Vec<(JobId, usize)> = Vec::new();
        let mut cost = |at: Range<usize>| {
            jobs.clear();
            let mut sum = 0;
            for victim in &self.victims[at] {
                match victim.job {
                    Some(job) => jobs.push((job, rank(victim))),
                    None => sum += rank(victim),
                }
            }
            jobs.sort_unstable_by_key(|&(job, rank)| (job, Reverse(rank)));
            jobs.dedup_by_key(|(job, _)| *job);
            sum + jobs.iter().map(|(_, rank)| rank).sum::<usize>()
        };
        self.starts.windows(2).map(|at| cost(at[0]..at[1])).collect()
    }
}

/// How far down the list of nodes pods of each shape have looked in vain. Who is placed only takes room away, so nobody has to look
/// there again, unless pods mind each other.
#[derive(Default)]
struct Looked(BTreeMap<ShapeId, usize>);

impl Looked {
    fn unseen(&self, what_if: &WhatIf<'_>, pod: PodId, n_nodes: usize) -> Range<usize> {
        self.0.get(&what_if.snapshot().pod(pod).shape).copied().unwrap_or(0)..n_nodes
    }

    fn saw(&mut self, what_if: &WhatIf<'_>, pod: PodId, at: usize) {
        if what_if.relations().is_empty() {
            self.0.insert(what_if.snapshot().pod(pod).shape, at);
        }
    }
}

/// The limit of the preemptor's quotas that the pod's return would pass.
fn quota_misfit(snapshot: &Snapshot, pod: PodId, own: &[QueueId]) -> Option<Misfit> {
    let tree = snapshot.queues();
    let requests = snapshot.requests(snapshot.pod(pod).shape);
    let shared = tree.path(snapshot.pod(pod).queue?).find(|queue| own.contains(queue))?;
    let (queue, resource, over) = tree.over_ceiling(shared, requests)?;
    Some(Misfit::Ceiling { queue, resource, over })
}

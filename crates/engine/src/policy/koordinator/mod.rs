//! The Koordinator policy: elastic quotas and whole jobs. All pods of a job are placed or nobody is evicted; a quota's min is for
//! those who cannot be preempted, its max for all; idle quota goes to the first comer.

mod away;
mod place;
mod quota;

use std::collections::BTreeSet;

use crate::decide::open;
use crate::decision::{Outcome, Plan};
use crate::explain::mark_equal_costs;
use crate::explanation::{Explanation, Spared, SparedUnit};
use crate::filters::Misfit;
use crate::fit::{self, Ask, Placement};
use crate::ids::{JobId, NodeId, PodId, QueueId, Timestamp};
use crate::laws::{Law, never, not_preemptible, opt_out, protected, toleration, underway, unknown_class};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;
use quota::{Firm, Purpose};

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
        let otherwise = if plan.is_some() { Spared::Reprieved } else { Spared::InVain };
        let spared = law.map_or(otherwise, Spared::Law);
        explanation.spared.push(SparedUnit { unit, spared, decisive: true });
    }
    if let Some(plan) = plan {
        let costs = search.node_costs();
        let alike =
            |one: NodeId, other: NodeId| costs[one.index()].is_some() && costs[one.index()] == costs[other.index()];
        mark_equal_costs(search.what_if, ask, plan, &mut explanation.spared, alike);
    }
    explanation
}

struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    policy: &'a Koordinator,
    ask: &'a Ask,
    pod: PodId,
    now: Timestamp,
    firm: Firm,
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
        let members = job.members.iter().filter(|&&pod| self.snapshot().pod(pod).takes_part()).count();
        (members < job.min_member).then_some(Law::TooFewMembers { members, needed: job.min_member })
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
            .or_else(|| protected::spares(snapshot, unit))
            .or_else(|| opt_out::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, self.ask, self.now))
    }
}

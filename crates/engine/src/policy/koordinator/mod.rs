//! The Koordinator policy: elastic quotas and whole jobs. All pods of a job are placed, or no pod is evicted. The min of a quota is for
//! non-preemptible pods, its max for all; unused quota is available to any job.

mod gangs;
mod give_back;
mod place;
mod quota;
mod removed;

use std::collections::BTreeSet;

use crate::decision::Outcome;
use crate::decisive::{self, Closed};
use crate::explanation::{Decisive, Recorder};
use crate::filters::FilterFailure;
use crate::fit::{Placement, Preemptor};
use crate::ids::{JobId, NodeId, PodId, QueueId, Timestamp};
use crate::laws::{Law, in_progress, never, opt_out, protected, set_aside, toleration, unknown_class};
use crate::policy::owner_kinds::OwnerKinds;
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;
use quota::{NonPreemptibleUse, QuotaCheck};

/// The settings of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Koordinator {
    /// Whether pods without the preemptible label are not preemptible.
    pub disable_default_preemptible: bool,
    /// Whether a pod needs a label to preempt.
    pub disable_default_trigger: bool,
    /// Whether victims are deleted, or labelled for another controller to delete.
    pub deletes_victims: bool,
    /// Whether a running gang that would fall below its minimum is evicted whole or not at all.
    pub whole_gangs: bool,
    /// The owners whose pods form a gang without a PodGroup.
    pub gangs_from_owners: OwnerKinds,
}

impl Default for Koordinator {
    fn default() -> Self {
        Self {
            disable_default_preemptible: false,
            disable_default_trigger: false,
            deletes_victims: false,
            whole_gangs: true,
            gangs_from_owners: OwnerKinds::default(),
        }
    }
}

/// Decides for the job of one pod.
pub(crate) fn decide<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Koordinator,
    preemptor: &Preemptor,
    pod: PodId,
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    let mut what_if = preemptor.what_if(snapshot);
    let outcome = Search::new(&mut what_if, policy, preemptor, pod, now).outcome(recorder);
    report_decisive(&mut what_if, policy, preemptor, pod, recorder);
    outcome
}

/// Reports what the outcome may depend on: the job's own pods, the pods that count in a quota of the job or above it, and the pods on nodes
/// where a pod of the job might be placed.
fn report_decisive<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Koordinator,
    preemptor: &Preemptor,
    pod: PodId,
    recorder: &mut R,
) {
    let Some(closed) = Closed::new::<R>(what_if, preemptor) else { return };
    let snapshot = what_if.snapshot();
    let tree = snapshot.queues();
    let own: Vec<QueueId> = snapshot.pod(pod).queue.into_iter().flat_map(|queue| tree.path(queue)).collect();
    // A gang that is evicted whole, or not at all, depends on its pods on any node.
    let is_in_gang = |pod: &Pod| {
        let needs_many = |job: JobId| policy.whole_gangs && snapshot.job(job).min_member > 1;
        pod.group.is_some() || pod.job.is_some_and(needs_many)
    };
    let is_needed = |pod: &Pod| {
        let mut counts_in = pod.queue.into_iter().flat_map(|queue| tree.path(queue));
        decisive::is_of_gang(snapshot, preemptor, pod) || is_in_gang(pod) || counts_in.any(|queue| own.contains(&queue))
    };
    recorder.decisive(Decisive::with(snapshot, closed.others(snapshot, preemptor), is_needed, &[], &closed));
}

struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    policy: &'a Koordinator,
    preemptor: &'a Preemptor,
    pod: PodId,
    now: Timestamp,
    non_preemptible: NonPreemptibleUse,
}

impl<'w, 's, 'a> Search<'w, 's, 'a> {
    fn new(
        what_if: &'w mut WhatIf<'s>,
        policy: &'a Koordinator,
        preemptor: &'a Preemptor,
        pod: PodId,
        now: Timestamp,
    ) -> Self {
        let mut search = Self { what_if, policy, preemptor, pod, now, non_preemptible: NonPreemptibleUse::default() };
        search.non_preemptible = search.non_preemptible_use();
        search.charge_nominated();
        search
    }

    fn outcome<R: Recorder>(&mut self, recorder: &mut R) -> Outcome {
        let enough = self.too_few().is_none();
        let may_run = enough && self.over_limit(QuotaCheck::Run).is_none();
        let mark = self.what_if.mark();
        let free = if may_run { self.place_free() } else { Placement::new() };
        if may_run && free.len() == self.preemptor.members.len() {
            return Outcome::Schedule(free);
        }
        if let Some(law) = self.refuses_trigger() {
            return Outcome::Unschedulable(Some(law));
        }
        self.what_if.back_to(mark);
        if let Some(law) = self.in_progress() {
            return Outcome::Wait(law);
        }
        if let Some(law) = self.too_few().or_else(|| self.over_limit(QuotaCheck::Trigger)) {
            return Outcome::Unschedulable(Some(law));
        }
        match self.plan(free, recorder) {
            Ok(plan) => Outcome::Preempt(plan),
            Err(law) => Outcome::Unschedulable(law),
        }
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

    /// docs/rules/koordinator.md#q1: whether a pod counts as preemptible in its quota.
    fn is_preemptible(&self, pod: PodId) -> bool {
        self.snapshot().pod(pod).preemptible.unwrap_or(!self.policy.disable_default_preemptible)
    }

    /// docs/rules/koordinator.md#q1: a pod that is not preemptible, by its label or by default, is no victim.
    fn not_preemptible(&self, pod: PodId) -> Option<Law> {
        let is_spared = !self.is_preemptible(pod) || self.snapshot().pod(pod).preemption_disabled;
        is_spared.then_some(Law::NotPreemptible)
    }

    /// docs/rules/koordinator.md#q7: a job needs all its pods.
    fn too_few(&self) -> Option<Law> {
        let job = self.snapshot().job(self.job()?);
        let members = job.members.iter().filter(|&&pod| self.snapshot().pod(pod).takes_part()).count();
        (members < job.min_member).then_some(Law::TooFewMembers { members, needed: job.min_member })
    }

    /// docs/rules/koordinator.md#q2
    fn refuses_trigger(&self) -> Option<Law> {
        let by_label = match self.snapshot().pod(self.pod).can_preempt {
            Some(true) => None,
            Some(false) => Some(Law::CanPreemptLabelFalse),
            None => self.policy.disable_default_trigger.then_some(Law::CanPreemptLabelMissing),
        };
        never::refuses(self.snapshot(), self.preemptor).or(by_label)
    }

    /// docs/rules/koordinator.md#q12
    fn in_progress(&mut self) -> Option<Law> {
        let own = self.snapshot().pod(self.pod).nominated;
        let given_up = own.filter(|&node| {
            self.preemptor.filter_failure(self.what_if, self.pod, node).is_some_and(|failure| !failure.resolvable())
        });
        if given_up.is_some() {
            return None;
        }
        let snapshot = self.snapshot();
        let nodes: BTreeSet<_> = self.preemptor.members.iter().filter_map(|&pod| snapshot.pod(pod).nominated).collect();
        if nodes.is_empty() {
            return None;
        }
        let is_victim = |pod: PodId| snapshot.pod(pod).priority < self.preemptor.priority && self.is_preemptible(pod);
        let blocks = |pod: PodId| {
            let pod = snapshot.pod(pod);
            pod.soft_evicted || pod.terminating.is_some_and(|terminating| terminating.by_preemption)
        };
        let on_nodes = nodes.into_iter().flat_map(|node| snapshot.pods_on(node)).filter(|&pod| blocks(pod));
        let terminating: BTreeSet<PodId> =
            on_nodes.chain(self.soft_evicted_of_quotas()).filter(|&pod| is_victim(pod)).collect();
        in_progress::law(snapshot, terminating.into_iter().collect())
    }

    fn filter_failure(&mut self, pod: PodId, node: NodeId) -> Option<FilterFailure> {
        self.preemptor.filter_failure(self.what_if, pod, node)
    }

    /// docs/rules/koordinator.md#q1: the law that spares a pod.
    fn spares(&self, id: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let unit = snapshot.unit(snapshot.unit_of(id)?);
        if pod.job.is_some() && pod.job == self.job() {
            return Some(Law::SameJob);
        }
        (pod.priority >= self.preemptor.priority)
            .then_some(Law::Priority { candidate: pod.priority })
            .or_else(|| self.not_preemptible(id))
            .or_else(|| protected::spares(snapshot, unit))
            .or_else(|| set_aside::spares(snapshot, unit))
            .or_else(|| opt_out::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, self.preemptor, self.now))
    }
}

//! The Koordinator policy: elastic quotas and whole jobs. All pods of a job are placed or nobody is evicted; a quota's min is for
//! those who cannot be preempted, its max for all; idle quota goes to the first comer.

mod place;
mod quota;
mod removed;

use std::collections::BTreeSet;

use crate::decision::Outcome;
use crate::decisive::{self, Closed};
use crate::explanation::{Decisive, Recorder};
use crate::filters::FilterFailure;
use crate::fit::{self, Placement, Preemptor};
use crate::ids::{JobId, NodeId, PodId, QueueId, Timestamp};
use crate::laws::{Law, in_progress, never, opt_out, protected, toleration, unknown_class};
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;
use quota::{NonPreemptibleUse, QuotaCheck};

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
pub(crate) fn decide<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Koordinator,
    ask: &Preemptor,
    pod: PodId,
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    let mut what_if = ask.what_if(snapshot);
    let outcome = Search::new(&mut what_if, policy, ask, pod, now).outcome(recorder);
    if R::RECORDS {
        report_decisive(&mut what_if, ask, pod, recorder);
    }
    outcome
}

/// Reports what the outcome may depend on: the job's own pods, what counts in a quota of the job or above, and what runs where a
/// pod of the job might land.
fn report_decisive<R: Recorder>(what_if: &mut WhatIf<'_>, ask: &Preemptor, pod: PodId, recorder: &mut R) {
    let Some(closed) = Closed::new(what_if, ask) else { return };
    let snapshot = what_if.snapshot();
    let tree = snapshot.queues();
    let own: Vec<QueueId> = snapshot.pod(pod).queue.into_iter().flat_map(|queue| tree.path(queue)).collect();
    let is_needed = |pod: &Pod| {
        let mut counts_in = pod.queue.into_iter().flat_map(|queue| tree.path(queue));
        decisive::is_of_gang(snapshot, ask, pod) || counts_in.any(|queue| own.contains(&queue))
    };
    recorder.decisive(Decisive::with(snapshot, closed.others(snapshot, ask), is_needed, &[], &closed));
}

struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    policy: &'a Koordinator,
    ask: &'a Preemptor,
    pod: PodId,
    now: Timestamp,
    non_preemptible: NonPreemptibleUse,
}

impl<'w, 's, 'a> Search<'w, 's, 'a> {
    fn new(
        what_if: &'w mut WhatIf<'s>,
        policy: &'a Koordinator,
        ask: &'a Preemptor,
        pod: PodId,
        now: Timestamp,
    ) -> Self {
        let zeros = vec![0; what_if.snapshot().resource_ids().len()];
        let firm = NonPreemptibleUse { used: zeros.clone(), request: zeros };
        let mut search = Self { what_if, policy, ask, pod, now, non_preemptible: firm };
        if let Some(queue) = search.queue() {
            search.non_preemptible = search.non_preemptible_use(queue);
        }
        search
    }

    fn outcome<R: Recorder>(&mut self, recorder: &mut R) -> Outcome {
        let enough = self.too_few().is_none();
        let may_run = enough && self.over_limit(QuotaCheck::Run).is_none();
        let mark = self.what_if.mark();
        let free = if may_run { self.place_free() } else { Placement::new() };
        if may_run && free.len() == self.ask.members.len() {
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

    /// On which side of its quota a pod counts. (Rule 1.)
    fn is_preemptible(&self, pod: PodId) -> bool {
        self.snapshot().pod(pod).preemptible.unwrap_or(!self.policy.disable_default_preemptible)
    }

    /// A pod that is not preemptible, by its label or by default, is no victim. (Rule 1.)
    fn not_preemptible(&self, pod: PodId) -> Option<Law> {
        let is_spared = !self.is_preemptible(pod) || self.snapshot().pod(pod).preemption_disabled;
        is_spared.then_some(Law::NotPreemptible)
    }

    /// A job needs all its pods. (Rule 7.)
    fn too_few(&self) -> Option<Law> {
        let job = self.snapshot().job(self.job()?);
        let members = job.members.iter().filter(|&&pod| self.snapshot().pod(pod).takes_part()).count();
        (members < job.min_member).then_some(Law::TooFewMembers { members, needed: job.min_member })
    }

    /// (Rule 2.)
    fn refuses_trigger(&self) -> Option<Law> {
        let silent = self.policy.disable_default_trigger && !self.snapshot().pod(self.pod).can_preempt;
        never::refuses(self.snapshot(), self.ask).or(silent.then_some(Law::CanPreemptLabelMissing))
    }

    /// (Rule 12.)
    fn in_progress(&mut self) -> Option<Law> {
        let own = self.snapshot().pod(self.pod).nominated;
        let given_up = own.filter(|&node| {
            fit::filter_failure(self.what_if, self.ask, self.pod, node).is_some_and(|misfit| !misfit.resolvable())
        });
        if given_up.is_some() {
            return None;
        }
        let snapshot = self.snapshot();
        let nodes: BTreeSet<NodeId> = self.ask.members.iter().filter_map(|&pod| snapshot.pod(pod).nominated).collect();
        let holds_up = |pod: PodId| {
            let leaving = snapshot.pod(pod).terminating.is_some_and(|leaving| leaving.by_preemption);
            leaving && snapshot.pod(pod).priority < self.ask.priority && self.is_preemptible(pod)
        };
        let leaving = nodes.into_iter().flat_map(|node| snapshot.pods_on(node)).filter(|&pod| holds_up(pod)).collect();
        in_progress::law(snapshot, leaving)
    }

    fn filter_failure(&mut self, pod: PodId, node: NodeId) -> Option<FilterFailure> {
        fit::filter_failure(self.what_if, self.ask, pod, node)
    }

    /// The law that spares a pod.
    fn spares(&self, id: PodId) -> Option<Law> {
        let snapshot = self.snapshot();
        let pod = snapshot.pod(id);
        let unit = snapshot.unit(snapshot.unit_of(id)?);
        if pod.job.is_some() && pod.job == self.job() {
            return Some(Law::SameJob);
        }
        (pod.priority >= self.ask.priority)
            .then_some(Law::Priority { candidate: pod.priority })
            .or_else(|| self.not_preemptible(id))
            .or_else(|| protected::spares(snapshot, unit))
            .or_else(|| opt_out::spares(snapshot, unit))
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, self.ask, self.now))
    }
}

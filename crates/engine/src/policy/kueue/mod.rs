//! The Kueue policy: workloads hold quota of flavors in queues; queues lend to each other in cohorts, and cohorts in trees. Who has
//! borrowed gives back; who may preempt at home does so by priority. Nodes play no part, unless the placement is joint.

mod candidates;
mod class_key;
mod classical;
mod cycle;
mod eligibility;
mod fair;
mod fair_order;
mod flavors;
mod joint;
mod order;
mod queue_usage;
mod quota_usage;
mod record;

use crate::decision::{Outcome, Plan};
use crate::explanation::{NoRecorder, Recorder};
use crate::fit::{Placement, Preemptor, PreemptorId};
use crate::ids::{FlavorId, FlavorResourceId, QueueId, Timestamp, UnitId, WorkloadId};
use crate::laws::{Law, obstacle};
use crate::snapshot::Snapshot;
use crate::workloads::{QueueRules, Workload};

pub use crate::decision::{AssignedResource, Assignment, Decision, PodSetAssignment, PreemptionReason};
pub use crate::explanation::{FlavorAttempt, FlavorMode};
pub use crate::ids::ShareMilli;
pub use class_key::WorkloadClassKey;
pub use cycle::{CycleEntry, CycleResult, SkipReason, run_cycle, run_cycle_with_progress};
pub use queue_usage::{FlavorResourceUsage, QueueUsage, queue_usage};

use flavors::{Assigned, FlavorTrace};
use quota_usage::QuotaUsage;

/// The settings of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kueue {
    /// Fair sharing, if it is on.
    pub fair_sharing: Option<FairSharing>,
    /// Whether nodes play a part.
    pub placement: PlacementMode,
}

/// What a workload needs besides quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementMode {
    /// Nothing: nodes play no part.
    #[default]
    QuotaOnly,
    /// A node for every pod, decided together with the quota.
    Joint,
}

/// Which comparisons of shares allow a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairSharing {
    /// The first that is tried.
    pub first: Strategy,
    /// And the one for those who failed it.
    pub second: Option<Strategy>,
}

/// A comparison of shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The preemptor's share is at most what the other's will be.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share is less than what the other's was.
    LessThanInitialShare,
}

/// Decides for one workload.
pub fn decide(snapshot: &Snapshot, policy: &Kueue, preemptor: WorkloadId, now: Timestamp) -> Decision {
    decide_recording(snapshot, policy, preemptor, now, &mut NoRecorder)
}

/// Decides for one workload and reports why.
pub(crate) fn decide_recording<R: Recorder>(
    snapshot: &Snapshot,
    policy: &Kueue,
    preemptor: WorkloadId,
    now: Timestamp,
    recorder: &mut R,
) -> Decision {
    let mut ground = joint::scratch_snapshot(snapshot, policy);
    let mut quota = QuotaUsage::new(snapshot);
    HeadDecision::new(&mut quota, policy, preemptor, now, ground.as_mut(), recorder).into_decision()
}

/// A decision for one workload, and what it would ask for if it could.
struct HeadDecision {
    outcome: Outcome,
    /// `None` where no flavor could ever do.
    requested: Option<Assignment>,
    victims: Vec<WorkloadId>,
    /// Where its pods go once those have left for whom it waits.
    reserved_placement: Placement,
}

impl HeadDecision {
    /// `quota` is as things are, and is so again afterwards; `ground` is a snapshot to try placements on, where nodes play a part.
    fn new<R: Recorder>(
        quota: &mut QuotaUsage<'_>,
        policy: &Kueue,
        preemptor: WorkloadId,
        now: Timestamp,
        mut ground: Option<&mut Snapshot>,
        recorder: &mut R,
    ) -> Self {
        let snapshot = quota.snapshot;
        let queue = match queue_of(snapshot, preemptor) {
            Ok(queue) => queue,
            Err(law) => {
                record::report_none_decisive(snapshot, recorder);
                let outcome = Outcome::Unschedulable(Some(law));
                return Self { outcome, requested: None, victims: Vec::new(), reserved_placement: Vec::new() };
            }
        };
        let search = Search::new(snapshot, policy, preemptor, queue, now);
        let full: Vec<i64> = search.workload.pod_sets.iter().map(|set| set.count).collect();
        let (before, mut tried) = (recorder.clone(), Vec::new());
        let trace = R::RECORDS.then_some(&mut tried);
        let (whole, found) = search.attempt(quota, &full, ground.as_deref_mut(), trace, recorder);
        let found = found.or_else(|| search.partial(quota, &full, ground, &before, recorder));
        let nomination = search.decision(whole, found);
        match nomination.outcome {
            Outcome::Schedule(_) => *recorder = before,
            Outcome::Wait(_) => {}
            Outcome::Preempt(_) | Outcome::Unschedulable(_) => tried.into_iter().for_each(|one| recorder.flavor(one)),
        }
        search.report_rest(quota, &nomination, recorder);
        nomination
    }

    fn into_decision(self) -> Decision {
        let gets = matches!(self.outcome, Outcome::Schedule(_) | Outcome::Preempt(_));
        Decision { outcome: self.outcome, assignment: self.requested.filter(|_| gets) }
    }
}

/// The queue that a workload asks for quota, or the law by which it gets none whatever is free.
fn queue_of(snapshot: &Snapshot, preemptor: WorkloadId) -> Result<QueueId, Law> {
    if let Some(law) = obstacle::refuses(snapshot, &Preemptor::new(snapshot, PreemptorId::Workload(preemptor))) {
        return Err(law);
    }
    let workload = snapshot.workload(preemptor);
    let queue = workload.queue.ok_or(Law::NoQueue)?;
    if !workload.active {
        Err(Law::Inactive)
    } else if !workload.namespace_fits {
        Err(Law::NamespaceNotSelected { queue })
    } else if workload.invalid {
        Err(Law::InvalidResources)
    } else {
        Ok(queue)
    }
}

/// What a workload gets, and who must go for it; nobody where it fits.
struct AdmissionPlan {
    assignment: Assignment,
    victims: Vec<(WorkloadId, PreemptionReason)>,
    /// Where its pods go, where nodes play a part.
    placement: Placement,
    /// Set where it has only to wait for pods that are leaving.
    wait: Option<Law>,
}

/// Whether there is room once these are gone.
type FitsOnNodes<'a> = dyn Fn(&[(WorkloadId, PreemptionReason)]) -> bool + 'a;

/// One workload's search for quota.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    snapshot: &'a Snapshot,
    policy: &'a Kueue,
    preemptor: WorkloadId,
    workload: &'a Workload,
    queue: QueueId,
    now: Timestamp,
    /// The pairs that are short; empty before the flavors are known.
    contested: &'a [FlavorResourceId],
    /// Flavors that are out of the question, by pod set.
    banned: &'a [(usize, FlavorId)],
    /// By workload: whether it is taken before others, because it is where the preemptor could go. Empty where nobody is.
    preferred: &'a [bool],
    /// What the nodes say, where they play a part.
    fits_on_nodes: Option<&'a FitsOnNodes<'a>>,
}

impl<'a> Search<'a> {
    fn new(snapshot: &'a Snapshot, policy: &'a Kueue, preemptor: WorkloadId, queue: QueueId, now: Timestamp) -> Self {
        let workload = snapshot.workload(preemptor);
        Self {
            snapshot,
            policy,
            preemptor,
            workload,
            queue,
            now,
            contested: &[],
            banned: &[],
            preferred: &[],
            fits_on_nodes: None,
        }
    }

    /// What comes of the attempts; `asks` is what it asks for at its full size.
    fn decision(&self, asks: Option<Assignment>, found: Option<AdmissionPlan>) -> HeadDecision {
        let Some(AdmissionPlan { assignment, victims, placement, wait }) = found else {
            let outcome = Outcome::Unschedulable(None);
            return HeadDecision { outcome, requested: asks, victims: Vec::new(), reserved_placement: Vec::new() };
        };
        let wait = wait.or_else(|| self.delay().filter(|_| !victims.is_empty()));
        let (outcome, victims, later) = match wait {
            Some(law) => (Outcome::Wait(law), Vec::new(), placement),
            None if victims.is_empty() => (Outcome::Schedule(placement), victims, Vec::new()),
            None => (Outcome::Preempt(Plan { placement, ..self.plan(&victims) }), victims, Vec::new()),
        };
        let victims = victims.into_iter().map(|(workload, _)| workload).collect();
        HeadDecision { outcome, requested: Some(assignment), victims, reserved_placement: later }
    }

    /// The rules of the preemptor's queue.
    fn rules(&self) -> &'a QueueRules {
        &self.snapshot.quota_rules().queues[self.queue.index()]
    }

    /// With so many pods of each set: what it asks for, where any flavor could do; and a fit, or victims, or neither.
    fn attempt<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        counts: &[i64],
        ground: Option<&mut Snapshot>,
        trace: FlavorTrace<'_>,
        recorder: &mut R,
    ) -> (Option<Assignment>, Option<AdmissionPlan>) {
        if let Some(ground) = ground {
            return joint::attempt(self, ground, counts, trace, recorder);
        }
        let Some(Assigned { assignment, contested }) = flavors::assign(self, quota, counts, trace) else {
            return (None, None);
        };
        let victims = if contested.is_empty() {
            Some(Vec::new())
        } else {
            let victims = self.victims(quota, &assignment.usage, &contested, recorder);
            victims.filter(|victims| self.fits_without(quota, counts, victims))
        };
        let found =
            |victims| AdmissionPlan { assignment: assignment.clone(), victims, placement: Vec::new(), wait: None };
        let found = victims.map(found);
        (Some(assignment), found)
    }

    /// Whether it will be admitted when these are gone. Each pod set takes the best flavor that it sees; with more room that may be
    /// another than the one the plan was made for, which leaves the next pod set with nothing. Then nobody goes, since
    /// they would come back, and go again, for ever.
    fn fits_without(
        &self,
        quota: &mut QuotaUsage<'_>,
        counts: &[i64],
        victims: &[(WorkloadId, PreemptionReason)],
    ) -> bool {
        let later = quota.without(victims, |quota| flavors::assign(self, quota, counts, None));
        later.is_some_and(|assigned| assigned.contested.is_empty())
    }

    /// Whether it has yet to wait before it may preempt: `triggerAfterWorkloadWaitingSeconds` of its queue, and, where shares and priorities
    /// could send three workloads around in a circle, longer each time that it was preempted itself.
    fn delay(&self) -> Option<Law> {
        let seconds = self.rules().trigger_after_seconds;
        let asked = self.workload.waiting_since.unwrap_or(self.now).plus_seconds(seconds);
        let pause = self.workload.preempts_from.filter(|_| self.policy.fair_sharing.is_some());
        let until = pause.map_or(asked, |pause| pause.max(asked));
        (self.now < until).then_some(Law::PreemptionDelay { until })
    }

    /// The largest size below the full one that fits or finds victims, by binary search. (Rule 12.) Its reasons, after those `before`,
    /// replace those of the full size.
    fn partial<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        full: &[i64],
        mut ground: Option<&mut Snapshot>,
        before: &R,
        recorder: &mut R,
    ) -> Option<AdmissionPlan> {
        let sets = &self.workload.pod_sets;
        let deltas: Vec<i64> = sets.iter().map(|set| set.count - set.min_count.unwrap_or(set.count)).collect();
        let total: i64 = deltas.iter().sum();
        let counts = |step: i64| -> Vec<i64> {
            full.iter().zip(&deltas).map(|(count, delta)| count - delta * step / total.max(1)).collect()
        };
        let (mut low, mut high, mut found) = (1, total + 1, None);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut reasons = before.clone();
            match self.attempt(quota, &counts(middle), ground.as_deref_mut(), None, &mut reasons).1 {
                Some(better) => (found, high, *recorder) = (Some(better), middle, reasons),
                None => low = middle + 1,
            }
        }
        found
    }

    /// Who must go so that all requests fit; `contested` are the pairs that are short.
    fn victims<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        requests: &[(FlavorResourceId, i64)],
        contested: &[FlavorResourceId],
        recorder: &mut R,
    ) -> Option<Vec<(WorkloadId, PreemptionReason)>> {
        let search = Search { contested, ..*self };
        match (&self.policy.fair_sharing, self.snapshot.queues().get(self.queue).parent) {
            (Some(fair), Some(_)) => fair::victims(&search, quota, fair, requests, recorder),
            _ => classical::victims(&search, quota, requests, recorder),
        }
    }

    /// Whether all requests fit once these are gone: into the quota and, where nodes play a part, on the nodes.
    fn fits(
        &self,
        quota: &QuotaUsage<'_>,
        gone: &[(WorkloadId, PreemptionReason)],
        requests: &[(FlavorResourceId, i64)],
        may_borrow: bool,
    ) -> bool {
        quota.fits(self.queue, requests, may_borrow) && self.fits_on_nodes.is_none_or(|has_room| has_room(gone))
    }

    fn plan(&self, victims: &[(WorkloadId, PreemptionReason)]) -> Plan {
        let (units, grounds): (Vec<UnitId>, Vec<PreemptionReason>) =
            victims.iter().map(|&(workload, ground)| (self.unit(workload), ground)).unzip();
        Plan::of_workloads(self.snapshot, units, grounds)
    }

    /// The unit that an admitted workload is.
    fn unit(&self, id: WorkloadId) -> UnitId {
        self.snapshot.unit_of_workload(id).expect("an admitted workload is a unit")
    }

    fn prefers(&self, id: WorkloadId) -> bool {
        self.preferred.get(id.index()).copied().unwrap_or_default()
    }
}

/// From the second last to the first, whoever can stay does; the last taken stays taken. (Rule 18.)
fn give_back(
    quota: &mut QuotaUsage<'_>,
    mut victims: Vec<(WorkloadId, PreemptionReason)>,
    mut fits: impl FnMut(&QuotaUsage<'_>, &[(WorkloadId, PreemptionReason)]) -> bool,
) -> Vec<(WorkloadId, PreemptionReason)> {
    for at in (0..victims.len().saturating_sub(1)).rev() {
        let victim = victims.remove(at);
        quota.put_back(victim.0);
        if !fits(quota, &victims) {
            quota.take(victim.0);
            victims.insert(at, victim);
        }
    }
    victims
}

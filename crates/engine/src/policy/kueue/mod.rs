//! The Kueue policy: workloads hold quota of flavors in queues, and queues lend quota to each other in trees of cohorts. Borrowed
//! quota can be reclaimed by preemption; within a queue preemption is by priority. Nodes matter only under joint placement.
//!
//! One decision: `flavors` selects flavors, `classical` or `fair` searches victims among the `candidates` that `eligibility` allows,
//! `joint` adds nodes. `cycle` decides for all queues at once.

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
    /// The fair sharing strategies; `None` without fair sharing.
    pub fair_sharing: Option<FairSharing>,
    /// What a workload needs besides quota.
    pub placement: PlacementMode,
}

/// What a workload needs besides quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementMode {
    /// Nothing: nodes are not considered.
    #[default]
    QuotaOnly,
    /// A node for every pod, decided together with the quota.
    Joint,
}

/// The strategies of fair sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairSharing {
    /// The strategy of the first pass.
    pub first: Strategy,
    /// The strategy of the second pass, for candidates that the first refused.
    pub second: Option<Strategy>,
}

/// A comparison of shares; the names are Kueue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The share of the preemptor's branch of the cohort tree, with the preemptor, is at most that of the candidate's branch without the
    /// candidate.
    LessThanOrEqualToFinalShare,
    /// The share of the preemptor's branch, with the preemptor, is less than that of the candidate's branch with the candidate.
    LessThanInitialShare,
}

/// Decides whether one workload is admitted, preempts or waits. `now` ends delays.
pub fn decide(snapshot: &Snapshot, policy: &Kueue, preemptor: WorkloadId, now: Timestamp) -> Decision {
    decide_recording(snapshot, policy, preemptor, now, &mut NoRecorder)
}

/// Decides for one workload and reports the reasons.
pub(crate) fn decide_recording<R: Recorder>(
    snapshot: &Snapshot,
    policy: &Kueue,
    preemptor: WorkloadId,
    now: Timestamp,
    recorder: &mut R,
) -> Decision {
    let mut scratch = joint::scratch_snapshot(snapshot, policy);
    let mut quota = QuotaUsage::new(snapshot);
    HeadDecision::new(&mut quota, policy, preemptor, now, scratch.as_mut(), recorder).into_decision()
}

/// The decision for the first workload of a queue, before `cycle` resolves conflicts with those of other queues.
struct HeadDecision {
    outcome: Outcome,
    /// With a plan, the quota of the plan, possibly of fewer pods. Without one, the quota of all pods; `None` if no flavor could ever hold
    /// it.
    requested: Option<Assignment>,
    victims: Vec<WorkloadId>,
    /// If the outcome is to wait, the placement to keep free: the one after terminating pods or, during a delay, the victims are gone.
    reserved_placement: Placement,
}

impl HeadDecision {
    /// `quota` is unchanged afterwards; `scratch` is the snapshot for placements under joint placement.
    fn new<R: Recorder>(
        quota: &mut QuotaUsage<'_>,
        policy: &Kueue,
        preemptor: WorkloadId,
        now: Timestamp,
        mut scratch: Option<&mut Snapshot>,
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
        let search = Search {
            snapshot,
            policy,
            preemptor,
            workload: snapshot.workload(preemptor),
            queue,
            now,
            contested: &[],
            banned: &[],
            preferred: &[],
            fits_on_nodes: None,
        };
        let full: Vec<i64> = search.workload.pod_sets.iter().map(|set| set.count).collect();
        let (before, mut attempts) = (recorder.clone(), Vec::new());
        let trace = R::RECORDS.then_some(&mut attempts);
        let (full_size, found) = search.attempt(quota, &full, scratch.as_deref_mut(), trace, recorder);
        let found = found.or_else(|| search.partial(quota, &full, scratch, &before, recorder));
        let victims: Vec<WorkloadId> = found.iter().flat_map(|found| &found.victims).map(|victim| victim.0).collect();
        let decision = search.decision(full_size, found);
        match &decision.outcome {
            Outcome::Schedule(_) => *recorder = before,
            Outcome::Wait(law) => {
                victims.iter().for_each(|&workload| recorder.spared(search.unit(workload), law.clone()));
            }
            Outcome::Preempt(_) | Outcome::Unschedulable(_) => {
                attempts.into_iter().for_each(|attempt| recorder.flavor(attempt))
            }
        }
        search.report_rest(quota, &decision.outcome, &victims, recorder);
        decision
    }

    fn into_decision(self) -> Decision {
        let gets_quota = matches!(self.outcome, Outcome::Schedule(_) | Outcome::Preempt(_));
        Decision { outcome: self.outcome, assignment: self.requested.filter(|_| gets_quota) }
    }
}

/// docs/rules/kueue.md#k22: the queue of a workload, or the law by which it gets no quota even if all is free.
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

/// The quota that a workload gets, and the workloads that are evicted for it.
struct AdmissionPlan {
    assignment: Assignment,
    victims: Vec<Victim>,
    /// The placement; empty without joint placement.
    placement: Placement,
    /// Set if the workload has only to wait for terminating pods.
    wait: Option<Law>,
}

/// A workload to preempt, and why.
type Victim = (WorkloadId, PreemptionReason);

/// An amount of quota of one flavor and resource, in the unit of the resource (thousandths for cpu).
type Request = (FlavorResourceId, i64);

/// Whether the pods fit on the nodes without these workloads.
type FitsOnNodes<'a> = dyn Fn(&[Victim]) -> bool + 'a;

/// The search for quota for one workload.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    snapshot: &'a Snapshot,
    policy: &'a Kueue,
    preemptor: WorkloadId,
    workload: &'a Workload,
    queue: QueueId,
    now: Timestamp,
    /// The flavor-resource pairs of which too little is available; empty before the flavors are selected.
    contested: &'a [FlavorResourceId],
    /// Pairs of the index of a pod set and a flavor that it must not use, because the nodes of the flavor were not enough.
    banned: &'a [(usize, FlavorId)],
    /// Indexed by workload: whether it is chosen as a victim before others, because it is on a node that the preemptor could use. Empty
    /// without preferences.
    preferred: &'a [bool],
    /// The check of the nodes under joint placement.
    fits_on_nodes: Option<&'a FitsOnNodes<'a>>,
}

impl<'a> Search<'a> {
    /// The decision after all attempts; `requested` is the quota at full size.
    fn decision(&self, requested: Option<Assignment>, found: Option<AdmissionPlan>) -> HeadDecision {
        let Some(AdmissionPlan { assignment, victims, placement, wait }) = found else {
            let outcome = Outcome::Unschedulable(None);
            return HeadDecision { outcome, requested, victims: Vec::new(), reserved_placement: Vec::new() };
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

    /// Tries to admit these numbers of pods, one for each pod set. Returns the quota at the selected flavors, and a plan if one exists.
    /// Under joint placement `scratch` has the usage, and `quota` is not read.
    fn attempt<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        counts: &[i64],
        scratch: Option<&mut Snapshot>,
        trace: FlavorTrace<'_>,
        recorder: &mut R,
    ) -> (Option<Assignment>, Option<AdmissionPlan>) {
        if let Some(scratch) = scratch {
            return joint::attempt(self, scratch, counts, trace, recorder);
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

    /// docs/rules/kueue.md#k25: whether the workload will be admitted after these victims are gone. With more free quota a pod set may
    /// select another flavor than in the plan, which may leave the next pod set without any. Such a plan is refused: its victims would be
    /// admitted and evicted again without end.
    fn fits_without(&self, quota: &mut QuotaUsage<'_>, counts: &[i64], victims: &[Victim]) -> bool {
        let later = quota.without(victims, |quota| flavors::assign(self, quota, counts, None));
        later.is_some_and(|assigned| assigned.contested.is_empty())
    }

    /// docs/rules/kueue.md#k24, docs/rules/kueue.md#k26: the law if the workload must wait before it may preempt: for
    /// `triggerAfterWorkloadWaitingSeconds` of its queue and, under fair sharing, longer after each time it was preempted itself, so that
    /// workloads do not preempt each other in a cycle.
    fn delay(&self) -> Option<Law> {
        let seconds = self.rules().trigger_after_seconds;
        // A workload that was never refused starts to wait now.
        let after_wait = self.workload.waiting_since.unwrap_or(self.now).plus_seconds(seconds);
        let after_own_preemption = self.workload.preempts_from.filter(|_| self.policy.fair_sharing.is_some());
        let until = after_own_preemption.map_or(after_wait, |from| from.max(after_wait));
        (self.now < until).then_some(Law::PreemptionDelay { until })
    }

    /// docs/rules/kueue.md#k12: finds by binary search the largest size below the full one that fits or finds victims. Its reasons, after
    /// those in `before`, replace those of the full size.
    fn partial<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        full: &[i64],
        mut scratch: Option<&mut Snapshot>,
        before: &R,
        recorder: &mut R,
    ) -> Option<AdmissionPlan> {
        let sets = &self.workload.pod_sets;
        let deltas: Vec<i64> = sets.iter().map(|set| set.count - set.min_count.unwrap_or(set.count)).collect();
        let total = deltas.iter().fold(0_i64, |sum, delta| sum.saturating_add(*delta));
        // The share of a set in the removed pods, at most `delta`. Any tenant may write a count whose product with another exceeds 64 bits.
        let share = |delta: i64, removed: i64| {
            let share = i128::from(delta) * i128::from(removed) / i128::from(total.max(1));
            i64::try_from(share).unwrap_or(delta)
        };
        // Fewer pods are assumed to fit wherever more do. Without a minimum below the full size `total` is 0, and nothing is tried.
        let counts = |removed: i64| -> Vec<i64> {
            full.iter().zip(&deltas).map(|(count, delta)| count - share(*delta, removed)).collect()
        };
        let (mut low, mut high, mut found) = (1, total.saturating_add(1), None);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut reasons = before.clone();
            match self.attempt(quota, &counts(middle), scratch.as_deref_mut(), None, &mut reasons).1 {
                Some(better) => (found, high, *recorder) = (Some(better), middle, reasons),
                None => low = middle + 1,
            }
        }
        found
    }

    /// The victims after whose eviction all requests fit; `contested` are the pairs of which too little is available.
    fn victims<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        requests: &[Request],
        contested: &[FlavorResourceId],
        recorder: &mut R,
    ) -> Option<Vec<Victim>> {
        let search = Search { contested, ..*self };
        match (&self.policy.fair_sharing, self.snapshot.queues().get(self.queue).parent) {
            (Some(fair), Some(_)) => fair::victims(&search, quota, fair, requests, recorder),
            _ => classical::victims(&search, quota, requests, recorder),
        }
    }

    /// Whether all requests fit after these victims are evicted: into `quota`, from which the caller has removed them, and under joint
    /// placement on the nodes.
    fn fits(&self, quota: &QuotaUsage<'_>, victims: &[Victim], requests: &[Request], may_borrow: bool) -> bool {
        quota.fits(self.queue, requests, may_borrow)
            && self.fits_on_nodes.is_none_or(|fits_on_nodes| fits_on_nodes(victims))
    }

    fn plan(&self, victims: &[Victim]) -> Plan {
        let (units, reasons): (Vec<UnitId>, Vec<PreemptionReason>) =
            victims.iter().map(|&(workload, reason)| (self.unit(workload), reason)).unzip();
        Plan::of_workloads(self.snapshot, units, reasons)
    }

    /// The unit of an admitted workload.
    fn unit(&self, id: WorkloadId) -> UnitId {
        self.snapshot.unit_of_workload(id).expect("an admitted workload is a unit")
    }
}

/// docs/rules/kueue.md#k18: reprieves each victim that need not be evicted for the requests to fit, from the second last to the first. The
/// last victim is needed.
fn reprieve_unneeded(
    quota: &mut QuotaUsage<'_>,
    mut victims: Vec<Victim>,
    mut fits: impl FnMut(&QuotaUsage<'_>, &[Victim]) -> bool,
) -> Vec<Victim> {
    for index in (0..victims.len().saturating_sub(1)).rev() {
        let victim = victims.remove(index);
        quota.put_back(victim.0);
        if !fits(quota, &victims) {
            quota.take(victim.0);
            victims.insert(index, victim);
        }
    }
    victims
}

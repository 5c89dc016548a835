//! Completes the explanation after the outcome is known, with what the searches do not report: workloads in other cohort trees, workloads
//! that could have been evicted instead of a victim at the same cost, and which workloads the decision depends on (`decisive`).

use crate::decision::Outcome;
use crate::explanation::{Decisive, Recorder};
use crate::ids::{FlavorResourceId, UnitId, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{PlacementMode, Search};
use crate::snapshot::Snapshot;

/// Reports that the refusal of the preemptor depends on no running workload.
pub(super) fn report_none_decisive<R: Recorder>(snapshot: &Snapshot, recorder: &mut R) {
    if R::RECORDS {
        let (n_units, n_nodes) = (snapshot.n_units(), snapshot.node_ids().len());
        recorder.decisive(Decisive { units: vec![false; n_units], nodes: vec![false; n_nodes] });
    }
}

impl Search<'_> {
    /// Reports what the search has not reported. If no search took place, no workload was evaluated.
    /// `victims` are those of the plan, also if it is delayed.
    pub(super) fn report_rest<R: Recorder>(
        &self,
        quota: &QuotaUsage<'_>,
        outcome: &Outcome,
        victims: &[WorkloadId],
        recorder: &mut R,
    ) {
        if !R::RECORDS {
            return;
        }
        // The delay is checked after the search, all other reasons to wait before it.
        let is_searched = match outcome {
            Outcome::Preempt(_) | Outcome::Unschedulable(_) | Outcome::Wait(Law::PreemptionDelay { .. }) => true,
            Outcome::Schedule(_) | Outcome::Wait(_) => false,
        };
        for (unit, id) in self.admitted().filter(|_| is_searched) {
            let queue = self.snapshot.workload(id).queue.filter(|&queue| self.is_in_tree(quota, queue));
            if queue.is_none() {
                recorder.spared(unit, Law::OtherCohort);
            } else if let Some(victim) = self.equal_victim(id, victims) {
                recorder.equal_cost(unit, self.unit(victim));
            }
        }
        // With `placement: Joint`, the search on the nodes reports what is decisive.
        if self.policy.placement == PlacementMode::QuotaOnly {
            self.report_decisive(quota, recorder);
        }
    }

    /// The admitted workloads with their units.
    fn admitted(&self) -> impl Iterator<Item = (UnitId, WorkloadId)> {
        self.snapshot.unit_ids().filter_map(|unit| Some((unit, self.snapshot.unit(unit).workload?)))
    }

    /// A victim that differs from a candidate only in name and UID. With `placement: Joint` the nodes differ too, so there is none.
    fn equal_victim(&self, id: WorkloadId, victims: &[WorkloadId]) -> Option<WorkloadId> {
        if self.policy.placement == PlacementMode::Joint || victims.contains(&id) {
            return None;
        }
        victims.iter().copied().find(|&victim| self.is_interchangeable(id, victim))
    }

    fn is_interchangeable(&self, candidate: WorkloadId, victim: WorkloadId) -> bool {
        let (first, second) = (self.snapshot.workload(candidate), self.snapshot.workload(victim));
        let (Some(admission), Some(other_admission)) = (&first.admission, &second.admission) else { return false };
        first.queue == second.queue
            && first.priority == second.priority
            && first.milestones == second.milestones
            && admission.usage == other_admission.usage
            && admission.since == other_admission.since
            && admission.evicted == other_admission.evicted
            // No law spares the candidate.
            && !first.protected
            && !first.set_aside
            && first.queue.is_some_and(|queue| self.priority_law(queue, first).is_none())
    }

    /// Reports the decisive workloads. Without nodes a decision depends on the usage in the preemptor's cohort tree: of the pairs of flavor
    /// and resource that the preemptor could get or, under fair sharing, of all pairs.
    fn report_decisive<R: Recorder>(&self, quota: &QuotaUsage<'_>, recorder: &mut R) {
        let requested =
            self.workload.pod_sets.iter().flat_map(|set| set.requests.iter().map(|(resource, _)| *resource));
        // Also the number of pods, if any queue has a quota for it.
        let requested: Vec<_> = requested.chain(quota.rules.pods).collect();
        let flavors = || self.rules().groups.iter().flat_map(|group| &group.flavors);
        let pair = |(resource, flavor)| quota.rules.flavor_resource(flavor, resource);
        let pairs = requested.iter().flat_map(|&resource| flavors().map(move |&flavor| (resource, flavor)));
        let pairs: Vec<FlavorResourceId> = pairs.filter_map(pair).collect();
        let mut units = vec![false; self.snapshot.n_units()];
        for (unit, id) in self.admitted() {
            let workload = self.snapshot.workload(id);
            let mut held = workload.admission.iter().flat_map(|admission| &admission.usage);
            let matters = self.policy.fair_sharing.is_some() || held.any(|(pair, _)| pairs.contains(pair));
            units[unit.index()] = matters && workload.queue.is_some_and(|queue| self.is_in_tree(quota, queue));
        }
        recorder.decisive(Decisive { units, nodes: vec![false; self.snapshot.node_ids().len()] });
    }
}

//! The Kueue policy: workloads hold quota of flavors in queues; queues lend to each other in cohorts, and cohorts in trees. Who has
//! borrowed gives back; who may preempt at home does so by priority. Nodes play no part.

mod classical;
mod explain;
mod fair;
mod flavors;
mod quota;

use crate::choose::Plan;
use crate::decide::Outcome;
use crate::ids::{CellId, QueueId, UnitId, WorkloadId};
use crate::laws::Law;
use crate::snapshot::Snapshot;
use crate::workloads::{Reclaim, Within, Workload};

pub(crate) use explain::explain;
pub use flavors::{Mode, Tried};

use flavors::Assigned;
use quota::Quota;

/// The settings of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kueue {
    /// Fair sharing, if it is on.
    pub fair_sharing: Option<FairSharing>,
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

/// On what ground a workload is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// At home, by priority.
    InClusterQueue,
    /// It holds what was lent.
    InCohortReclamation,
    /// The preemptor borrows, and it is low enough.
    InCohortReclaimWhileBorrowing,
    /// Its queue has the larger share.
    InCohortFairSharing,
}

/// Decides for one workload.
pub(crate) fn decide(snapshot: &Snapshot, policy: &Kueue, preemptor: WorkloadId) -> Outcome {
    let workload = snapshot.workload(preemptor);
    let Some(queue) = workload.queue else {
        return Outcome::Unschedulable(Some(Law::NoQueue));
    };
    let search = Search { snapshot, policy, preemptor, workload, queue };
    let full: Vec<i64> = workload.pod_sets.iter().map(|set| set.count).collect();
    match search.attempt(&full).or_else(|| search.partial(&full)) {
        Some(Found::Fit) => Outcome::Schedule(Vec::new()),
        Some(Found::Victims(victims)) => Outcome::Preempt(search.plan(victims)),
        None => Outcome::Unschedulable(None),
    }
}

enum Found {
    Fit,
    Victims(Vec<(WorkloadId, Ground)>),
}

/// One workload's search for quota.
pub(super) struct Search<'a> {
    snapshot: &'a Snapshot,
    policy: &'a Kueue,
    preemptor: WorkloadId,
    workload: &'a Workload,
    queue: QueueId,
}

impl Search<'_> {
    /// With so many pods of each set: a fit, or victims, or neither.
    fn attempt(&self, counts: &[i64]) -> Option<Found> {
        let mut quota = Quota::new(self.snapshot);
        match flavors::assign(self, &mut quota, counts, None)? {
            Assigned { contested, .. } if contested.is_empty() => Some(Found::Fit),
            Assigned { requests, contested } => self.victims(&mut quota, &requests, &contested).map(Found::Victims),
        }
    }

    /// The largest size below the full one that fits or finds victims, by binary search. (Rule 12.)
    fn partial(&self, full: &[i64]) -> Option<Found> {
        let sets = &self.workload.pod_sets;
        let deltas: Vec<i64> = sets.iter().map(|set| set.count - set.min_count.unwrap_or(set.count)).collect();
        let total: i64 = deltas.iter().sum();
        let counts = |step: i64| -> Vec<i64> {
            full.iter().zip(&deltas).map(|(count, delta)| count - delta * step / total.max(1)).collect()
        };
        let (mut low, mut high, mut found) = (1, total + 1, None);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.attempt(&counts(middle)) {
                Some(better) => (found, high) = (Some(better), middle),
                None => low = middle + 1,
            }
        }
        found
    }

    /// Who must go so that all requests fit; `contested` are the cells that are short.
    fn victims(
        &self,
        quota: &mut Quota<'_>,
        requests: &[(CellId, i64)],
        contested: &[CellId],
    ) -> Option<Vec<(WorkloadId, Ground)>> {
        match (&self.policy.fair_sharing, self.snapshot.queues().get(self.queue).parent) {
            (Some(fair), Some(_)) => fair::victims(self, quota, fair, requests, contested),
            _ => classical::victims(self, quota, requests, contested),
        }
    }

    fn plan(&self, victims: Vec<(WorkloadId, Ground)>) -> Plan {
        let unit_of = |workload: WorkloadId| {
            let is_it = |unit: &UnitId| self.snapshot.unit(*unit).workload == Some(workload);
            self.snapshot.unit_ids().find(is_it).expect("an admitted workload is a unit")
        };
        let (units, grounds): (Vec<UnitId>, Vec<Ground>) =
            victims.into_iter().map(|(workload, ground)| (unit_of(workload), ground)).unzip();
        Plan::of_workloads(self.snapshot, units, grounds)
    }

    /// Whether a workload of the own queue may be preempted. (Rule 13 of the flat cohorts.)
    fn may_take_at_home(&self, id: WorkloadId) -> bool {
        let candidate = self.snapshot.workload(id);
        let lower = candidate.priority < self.workload.priority;
        match self.snapshot.quota_rules().queues[self.queue.index()].within {
            Within::Never => false,
            Within::LowerPriority => lower,
            Within::LowerOrNewerEqualPriority => {
                let newer = candidate.priority == self.workload.priority && candidate.created > self.workload.created;
                lower || newer
            }
        }
    }

    /// Whether a workload of another queue may be preempted, as far as its priority tells.
    fn may_reclaim(&self, id: WorkloadId) -> bool {
        match self.snapshot.quota_rules().queues[self.queue.index()].reclaim {
            Reclaim::Never => false,
            Reclaim::LowerPriority => self.snapshot.workload(id).priority < self.workload.priority,
            Reclaim::Any => true,
        }
    }

    /// Whether a workload holds any of these cells.
    fn holds(&self, id: WorkloadId, contested: &[CellId]) -> bool {
        let admission = self.snapshot.workload(id).admission.as_ref();
        let mut usage = admission.into_iter().flat_map(|admission| &admission.usage);
        usage.any(|(cell, amount)| *amount > 0 && contested.contains(cell))
    }

    /// In the order in which workloads are preempted: already evicted, lower priority, later admitted, then by uid.
    fn order(&self, id: WorkloadId) -> impl Ord + use<> {
        let workload = self.snapshot.workload(id);
        let admission = workload.admission.as_ref().expect("a candidate holds quota");
        (!admission.evicted, workload.priority, std::cmp::Reverse(admission.since), workload.rank)
    }
}

/// From the second last to the first, whoever can stay does; the last taken stays taken. (Rule 18.)
fn give_back(
    quota: &mut Quota<'_>,
    mut victims: Vec<(WorkloadId, Ground)>,
    mut fits: impl FnMut(&Quota<'_>) -> bool,
) -> Vec<(WorkloadId, Ground)> {
    for at in (0..victims.len().saturating_sub(1)).rev() {
        quota.put_back(victims[at].0);
        if fits(quota) {
            victims.remove(at);
        } else {
            quota.take(victims[at].0);
        }
    }
    victims
}

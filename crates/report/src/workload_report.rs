//! Report parts that only policy Kueue has: the reason and the cohort path of a victim, and the flavors that the search evaluated.

use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::kueue::{FlavorAttempt, PreemptionReason};
use reprieve_engine::{QueueId, QuotaResourceId, UnitId};

use crate::decision::{FlavorReport, VictimReport};
use crate::report_builder::ReportBuilder;
use reprieve_api::quantity::format;

impl ReportBuilder<'_> {
    pub(crate) fn flavor(&self, attempt: &FlavorAttempt) -> FlavorReport {
        FlavorReport {
            pod_set: attempt.pod_set,
            name: self.loaded.names.flavor(attempt.flavor).to_owned(),
            mode: attempt.mode.map_or_else(|| "Closed".to_owned(), |mode| format!("{mode:?}")),
            borrowing_level: attempt.level,
            chosen: attempt.chosen,
            short: attempt.short.iter().map(|&(resource, amount)| self.quota_amount(resource, amount)).collect(),
        }
    }

    fn quota_amount(&self, resource: QuotaResourceId, amount: i64) -> (String, String) {
        let name = self.loaded.names.quota_resource(resource);
        (name.to_owned(), format(name, amount))
    }

    /// `own` is the preemptor's queue.
    pub fn workload_victim(&self, own: Option<QueueId>, unit: UnitId, reason: PreemptionReason) -> VictimReport {
        let path = own.zip(self.queue_of(unit)).map(|(own, theirs)| self.cohort_path(own, theirs)).unwrap_or_default();
        let (filter, why) = match reason {
            PreemptionReason::InClusterQueue => {
                ("InClusterQueue", "lower priority than the preemptor, or equal and newer, in the same ClusterQueue")
            }
            PreemptionReason::InCohortReclamation => {
                ("InCohortReclamation", "the queue uses quota lent by the preemptor's branch")
            }
            PreemptionReason::InCohortReclaimWhileBorrowing => (
                "InCohortReclaimWhileBorrowing",
                "the priority is low enough to be preempted by a preemptor that borrows",
            ),
            PreemptionReason::InCohortFairSharing => {
                ("InCohortFairSharing", "its branch has a larger fair share than the preemptor's")
            }
        };
        let text = match path.as_slice() {
            [] | [_] => why.to_owned(),
            path => format!("{why} (path: {})", path.join(" → ")),
        };
        VictimReport { unit: self.unit(unit), path, filter, text, ..VictimReport::default() }
    }

    /// The queues and cohorts from one queue up to the lowest common cohort and down to the other queue.
    pub fn cohort_path(&self, from: QueueId, to: QueueId) -> Vec<String> {
        let tree = self.loaded.snapshot.queues();
        let down: Vec<QueueId> = tree.path(to).collect();
        let mut path: Vec<QueueId> = tree.path(from).take_while(|id| !down.contains(id)).collect();
        let common = tree.path(from).find_map(|id| down.iter().position(|below| *below == id));
        path.extend(down.iter().take(common.map_or(0, |index| index + 1)).rev());
        path.into_iter().map(|id| self.loaded.names.queue(id).to_owned()).collect()
    }

    pub(crate) fn queue_of_preemptor(&self, preemptor: &Preemptor) -> Option<QueueId> {
        match preemptor.id {
            PreemptorId::Workload(id) => self.loaded.snapshot.workload(id).queue,
            PreemptorId::Pod(_) | PreemptorId::Group(_) => None,
        }
    }
}

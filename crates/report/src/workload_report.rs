//! What a report says of workloads: by which way a victim was reached, what becomes of it, and which flavors were looked at.

use reprieve_engine::fit::{Preemptor, PreemptorId};
use reprieve_engine::policy::kueue::{FlavorAttempt, PreemptionReason};
use reprieve_engine::{QueueId, QuotaResourceId, UnitId};

use crate::decision::{FlavorReport, VictimReport};
use crate::report_builder::ReportBuilder;
use reprieve_api::quantity::format;

impl ReportBuilder<'_> {
    pub(crate) fn flavor(&self, tried: &FlavorAttempt) -> FlavorReport {
        FlavorReport {
            pod_set: tried.pod_set,
            name: self.loaded.names.flavor(tried.flavor).to_owned(),
            mode: tried.mode.map_or_else(|| "Closed".to_owned(), |mode| format!("{mode:?}")),
            borrowing_level: tried.level,
            chosen: tried.chosen,
            short: tried.short.iter().map(|&(resource, amount)| self.quota_amount(resource, amount)).collect(),
        }
    }

    fn quota_amount(&self, resource: QuotaResourceId, amount: i64) -> (String, String) {
        let name = self.loaded.names.quota_resource(resource);
        (name.to_owned(), format(name, amount))
    }

    /// `own` is the preemptor's queue.
    pub fn workload_victim(&self, own: Option<QueueId>, unit: UnitId, ground: PreemptionReason) -> VictimReport {
        let path = own.zip(self.queue_of(unit)).map(|(own, theirs)| self.way(own, theirs)).unwrap_or_default();
        let (filter, why) = match ground {
            PreemptionReason::InClusterQueue => {
                ("InClusterQueue", "it is lower, or newer, in the preemptor's own queue")
            }
            PreemptionReason::InCohortReclamation => {
                ("InCohortReclamation", "its queue uses what the preemptor's side has lent")
            }
            PreemptionReason::InCohortReclaimWhileBorrowing => {
                ("InCohortReclaimWhileBorrowing", "the preemptor borrows, and it is low enough to yield for that")
            }
            PreemptionReason::InCohortFairSharing => ("InCohortFairSharing", "its side has the larger share"),
        };
        let text = match path.as_slice() {
            [] | [_] => why.to_owned(),
            path => format!("{why}; reached by {}", path.join(", ")),
        };
        VictimReport { unit: self.unit(unit), path, filter, text, ..VictimReport::default() }
    }

    /// The queues and cohorts from one queue to another: up to the first that they share, and down.
    pub fn way(&self, from: QueueId, to: QueueId) -> Vec<String> {
        let tree = self.loaded.snapshot.queues();
        let down: Vec<QueueId> = tree.path(to).collect();
        let mut way: Vec<QueueId> = tree.path(from).take_while(|id| !down.contains(id)).collect();
        let met = tree.path(from).find_map(|id| down.iter().position(|other| *other == id));
        way.extend(down.iter().take(met.map_or(0, |met| met + 1)).rev());
        way.into_iter().map(|id| self.loaded.names.queue(id).to_owned()).collect()
    }

    pub(crate) fn own_queue(&self, ask: &Preemptor) -> Option<QueueId> {
        match ask.id {
            PreemptorId::Workload(id) => self.loaded.snapshot.workload(id).queue,
            PreemptorId::Pod(_) | PreemptorId::Group(_) => None,
        }
    }
}

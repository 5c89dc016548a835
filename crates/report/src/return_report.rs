//! Reports what follows the eviction of each victim: whether it is created again, and what its new pods would do.

use reprieve_engine::explanation::{ReturnEntry, ReturnResult};
use reprieve_engine::{NodeId, UnitId};

use crate::decision::ReturnReport;
use crate::plural::count;
use crate::report_builder::ReportBuilder;

/// The result of a victim that nothing creates again.
pub const NOT_RECREATED: &str = "NotRecreated";

/// The note about a decision in which a cheaper plan was not judged.
pub const JUDGING_ENDED: &str = "a plan of a lower cost of its own was not judged: enough plans were judged with the evictions that returning victims cause";

impl ReportBuilder<'_> {
    /// What follows the eviction of a victim; `None` if that was not decided.
    pub(crate) fn returns(&self, entries: &[ReturnEntry], victim: UnitId) -> Option<ReturnReport> {
        let entry = entries.iter().find(|entry| entry.victim == victim)?;
        let plain =
            |result, text: &str| ReturnReport { result, nodes: Vec::new(), evicts: Vec::new(), text: text.to_owned() };
        Some(match &entry.result {
            ReturnResult::NotRecreated => plain(NOT_RECREATED, "is not recreated"),
            ReturnResult::Terminating => plain("Terminating", "terminates already"),
            ReturnResult::NotDecided => plain("NotDecided", "returns, not evaluated"),
            ReturnResult::Waits => plain("Waits", "waits"),
            ReturnResult::Fits(nodes) => {
                let nodes = self.node_names(nodes);
                ReturnReport {
                    text: format!("fits on {}", listed(&nodes, "node", "nodes")),
                    nodes,
                    ..plain("Fits", "")
                }
            }
            ReturnResult::Evicts(nodes, units) => {
                let pods = units.iter().flat_map(|&unit| &self.loaded.snapshot.unit(unit).pods);
                let evicts: Vec<String> = pods.map(|&pod| self.pod(pod)).collect();
                let text = format!("would evict {}", listed(&evicts, "pod", "pods"));
                ReturnReport { text, nodes: self.node_names(nodes), evicts, ..plain("Evicts", "") }
            }
        })
    }

    fn node_names(&self, nodes: &[NodeId]) -> Vec<String> {
        nodes.iter().map(|&node| self.loaded.names.node(node).to_owned()).collect()
    }
}

/// Up to three names, or their number.
fn listed(names: &[String], one: &str, many: &str) -> String {
    if names.len() <= 3 { names.join(", ") } else { count(names.len(), one, many) }
}

//! What a page shows of one policy.

use std::collections::BTreeMap;

use reprieve_report::decision::DecisionReport;
use reprieve_simulator::run::Run;

use crate::render::{Detail, Rows, parts};

/// What came of one policy.
#[derive(Clone, Copy)]
pub struct PolicyRunPage<'r> {
    /// The policy, with its settings.
    pub policy: &'r str,
    /// All that happened.
    pub run: &'r Run,
    /// The explanations of preemptions, by the number of the preemption.
    pub explained: &'r BTreeMap<usize, FoldedExplanation>,
}

/// The explanation of a preemption with long lists folded: the full lists of a large cluster would not fit into memory.
pub struct FoldedExplanation {
    /// What was decided, in a sentence.
    pub summary: String,
    /// The tables of reasons.
    pub parts: Vec<Rows>,
}

impl FoldedExplanation {
    /// What a page shows of a report.
    pub fn of(report: &DecisionReport) -> Self {
        let explanation = &report.explanation;
        let violated = explanation.budgets.iter().map(|budget| budget.sentence("the plan"));
        let summary: Vec<String> = std::iter::once(explanation.summary.clone()).chain(violated).collect();
        Self { summary: summary.join("; "), parts: parts(report, Detail::Short) }
    }
}

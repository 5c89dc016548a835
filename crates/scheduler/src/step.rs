//! The result of one step of the scheduler: the unit that was decided, the outcome, and the actions to carry out.

use reprieve_api::NamespacedName;
use reprieve_report::decision::DecisionReport;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ActionId};
use crate::wait_reason::WaitReason;

/// The result of [`Scheduler::step`](crate::Scheduler::step).
#[derive(Debug)]
pub struct Step {
    /// The unit that was decided; `None` in a step without a decision.
    pub unit: Option<UnitRef>,
    /// The outcome for the unit.
    pub outcome: StepOutcome,
    /// The actions to carry out; they may be carried out in parallel.
    pub actions: Vec<(ActionId, Action)>,
    /// The explanation of a preemption, from a scheduler that explains preemptions.
    pub report: Option<Box<DecisionReport>>,
    /// The decision as a file, from a scheduler that records decisions.
    pub record: Option<RecordedDecision>,
    /// The number of victims whose PodDisruptionBudget allows no more disruptions.
    pub violations: usize,
}

impl From<StepOutcome> for Step {
    fn from(outcome: StepOutcome) -> Self {
        Self { unit: None, outcome, actions: Vec::new(), report: None, record: None, violations: 0 }
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step decided nothing: it writes conditions, removes marks or advances Jobs.
    Housekeeping,
    /// The pods of the unit are bound, or the workload is admitted.
    Bind {
        /// Each pod with its node; empty for a workload.
        placement: Vec<(NamespacedName, String)>,
    },
    /// A preemption is planned: nodes are nominated and victims are marked. No victim is evicted yet.
    MarkVictims {
        /// Each pod of the unit with its node.
        placement: Vec<(NamespacedName, String)>,
        /// The pods to be evicted.
        victims: Vec<NamespacedName>,
    },
    /// All marks are in the API and the decision is still the same: the victims are evicted.
    Evict {
        /// Each pod of the unit with its node; empty for a workload.
        placement: Vec<(NamespacedName, String)>,
        /// The evicted pods or workloads.
        victims: Vec<NamespacedName>,
    },
    /// The unit waits for something that is expected to happen.
    Wait {
        /// The reason as a value.
        reason: WaitReason,
        /// The reason as a sentence.
        why: String,
    },
    /// The unit cannot be scheduled unless the cluster changes.
    Unschedulable {
        /// The reason as a value.
        reason: WaitReason,
        /// The reason as a sentence.
        why: String,
    },
}

/// A decision as a PreemptionTest file.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    /// Time, namespace and name of the preemptor, usable as a file name.
    pub name: String,
    /// The content of the file.
    pub text: String,
}

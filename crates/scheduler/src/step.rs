//! What comes of one step of the scheduler.

use reprieve_api::meta::NamespacedName;
use reprieve_report::decision::DecisionReport;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ActionId};
use crate::wait_reason::WaitReason;

/// A step: who was decided, what came of it, what is to be done.
#[derive(Debug)]
pub struct Step {
    /// Who was decided; `None` where the step only follows up on others.
    pub unit: Option<UnitRef>,
    /// What came of it.
    pub outcome: StepOutcome,
    /// What is to be done, in parallel.
    pub actions: Vec<(ActionId, Action)>,
    /// Why, if that was asked for and somebody has to yield.
    pub report: Option<Box<DecisionReport>>,
    /// The decision as a file, if that was asked for.
    pub record: Option<RecordedDecision>,
    /// How many pods it evicts although a disruption budget allows no more disruption of them.
    pub violations: usize,
}

impl From<StepOutcome> for Step {
    fn from(outcome: StepOutcome) -> Self {
        Self { unit: None, outcome, actions: Vec::new(), report: None, record: None, violations: 0 }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// Nothing was decided.
    Housekeeping,
    /// Its pods are bound.
    Bind {
        /// Pod to node.
        placement: Vec<(NamespacedName, String)>,
    },
    /// It is prepared that these yield: pods are nominated, victims marked. Nobody is evicted.
    MarkVictims {
        /// Pod to node.
        placement: Vec<(NamespacedName, String)>,
        /// Who is to yield.
        victims: Vec<NamespacedName>,
    },
    /// The preparations stand and the decision is the same: these are evicted.
    Evict {
        /// Pod to node.
        placement: Vec<(NamespacedName, String)>,
        /// Who yields.
        victims: Vec<NamespacedName>,
    },
    /// It waits.
    Wait {
        /// Why.
        reason: WaitReason,
        /// The same in words.
        why: String,
    },
    /// It cannot be scheduled as things are.
    Unschedulable {
        /// Why.
        reason: WaitReason,
        /// The same in words.
        why: String,
    },
}

/// A decision as a PreemptionTest file.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    /// When and about whom, fit for a file's name.
    pub name: String,
    /// The file.
    pub text: String,
}

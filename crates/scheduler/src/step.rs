//! The result of one step of the scheduler: the unit that the step decided about, the outcome, and the actions to carry out.

use reprieve_api::NamespacedName;
use reprieve_report::decision::DecisionReport;
use reprieve_report::unit_ref::UnitRef;

use crate::action::{Action, ActionId};
use crate::wait_reason::WaitReason;

/// The result of [`Scheduler::step`](crate::Scheduler::step).
#[derive(Debug)]
pub struct Step {
    /// The unit that the step decided about: a pod, a gang or a workload. `None` in a step without a decision.
    pub unit: Option<UnitRef>,
    /// The outcome for the unit.
    pub outcome: StepOutcome,
    /// The actions to carry out, in parallel if possible. The caller reports the result of each with its id, as
    /// [`Event::ActionCompleted`](crate::event::Event::ActionCompleted).
    pub actions: Vec<(ActionId, Action)>,
    /// The explanation of the decision to preempt, if the scheduler is set to explain preemptions; with both `MarkVictims` and `Evict`.
    pub report: Option<Box<DecisionReport>>,
    /// The decision as a PreemptionTest file, if the scheduler is set to record decisions.
    pub record: Option<RecordedDecision>,
    /// The number of victim pods whose eviction violates a PodDisruptionBudget; 0 for a workload.
    pub violations: usize,
    /// What the victims are expected to evict when they return.
    pub foreseen: Vec<ForeseenEviction>,
}

/// A second-order eviction that the decision to preempt expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeseenEviction {
    /// The victim that returns.
    pub returning: NamespacedName,
    /// The pod that it evicts.
    pub evicted: NamespacedName,
}

/// A step with only an outcome; the caller adds the unit and the actions.
impl From<StepOutcome> for Step {
    fn from(outcome: StepOutcome) -> Self {
        Self {
            unit: None,
            outcome,
            actions: Vec::new(),
            report: None,
            record: None,
            violations: 0,
            foreseen: Vec::new(),
        }
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step decided nothing: its actions write conditions, remove the marks of victims, or start and suspend Jobs.
    Housekeeping,
    /// The actions bind the pods of the unit, or admit the workload.
    Bind {
        /// Each pod with its node; empty for a workload.
        placement: Vec<(NamespacedName, String)>,
    },
    /// A preemption by pods is planned: the actions nominate nodes and mark the victims. No victim is evicted yet. Workloads are evicted
    /// without this step.
    MarkVictims {
        /// Each pod of the unit with its node.
        placement: Vec<(NamespacedName, String)>,
        /// The pods to be evicted.
        victims: Vec<NamespacedName>,
    },
    /// The API server has all marks, and the decision is still the same: the actions evict the victims.
    Evict {
        /// Each pod of the unit with its node; empty for a workload.
        placement: Vec<(NamespacedName, String)>,
        /// The pods or workloads to be evicted.
        victims: Vec<NamespacedName>,
    },
    /// The unit waits for an event that is expected without a change of the cluster by others, such as the end of its victims.
    Wait {
        /// The reason as a value.
        reason: WaitReason,
        /// The reason as a sentence.
        why: String,
    },
    /// The unit cannot be scheduled unless the cluster changes.
    Unschedulable {
        /// The reason as a value; a [`WaitReason`] is any reason for which a unit stays pending.
        reason: WaitReason,
        /// The reason as a sentence.
        why: String,
    },
}

/// A decision as a PreemptionTest file.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    /// The time of the decision and a digest of the text: a file name without extension, in which no name of an object occurs.
    pub name: String,
    /// The content of the file.
    pub text: String,
}

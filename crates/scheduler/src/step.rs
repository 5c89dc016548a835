//! What comes of one step of the scheduler.

use reprieve_api::meta::FullName;
use reprieve_report::decision::Report;
use reprieve_report::unit_name::UnitName;

use crate::action::{Action, ActionId};
use crate::wait_reason::WaitReason;

/// A step: who was decided, what came of it, what is to be done.
#[derive(Debug)]
pub struct Step {
    /// Who was decided; `None` where the step only follows up on others.
    pub unit: Option<UnitName>,
    /// What came of it.
    pub verdict: Verdict,
    /// What is to be done, in parallel.
    pub actions: Vec<(ActionId, Action)>,
    /// Why, if that was asked for and somebody has to yield.
    pub report: Option<Box<Report>>,
    /// The decision as a file, if that was asked for.
    pub record: Option<Recorded>,
    /// How many pods it evicts although a disruption budget allows no more disruption of them.
    pub violations: usize,
}

impl From<Verdict> for Step {
    fn from(verdict: Verdict) -> Self {
        Self { unit: None, verdict, actions: Vec::new(), report: None, record: None, violations: 0 }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was decided.
    FollowUp,
    /// Its pods are bound.
    Schedule {
        /// Pod to node.
        placement: Vec<(FullName, String)>,
    },
    /// It is prepared that these yield: pods are nominated, victims marked. Nobody is evicted.
    Prepare {
        /// Pod to node.
        placement: Vec<(FullName, String)>,
        /// Who is to yield.
        victims: Vec<FullName>,
    },
    /// The preparations stand and the decision is the same: these are evicted.
    Preempt {
        /// Pod to node.
        placement: Vec<(FullName, String)>,
        /// Who yields.
        victims: Vec<FullName>,
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
pub struct Recorded {
    /// When and about whom, fit for a file's name.
    pub name: String,
    /// The file.
    pub text: String,
}

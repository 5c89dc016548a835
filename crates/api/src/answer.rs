//! The answer of a decision with names instead of ids, in the form of a PreemptionTest's `expect`. `report` creates it; `record` and the
//! test runner read it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::test_file::{OutcomeName, VictimRef};

/// An outcome, its victims and its nominations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The outcome.
    pub outcome: OutcomeName,
    /// The victims.
    pub victims: Vec<VictimRef>,
    /// The node of every pod of the preemptor that is placed or keeps an earlier nomination.
    pub nominated: BTreeMap<String, String>,
}

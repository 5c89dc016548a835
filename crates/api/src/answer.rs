//! What came of a question, in names: the same words as a test's `expect`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::test_file::{OutcomeName, VictimRef};

/// An outcome, its victims and its nominations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What came of it.
    pub outcome: OutcomeName,
    /// Who yields, by name.
    pub victims: Vec<VictimRef>,
    /// Pod to node, for every pod of the preemptor that is placed, or that keeps an earlier nomination.
    pub nominated: BTreeMap<String, String>,
}

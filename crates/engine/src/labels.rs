//! Labels as pairs of ids, and the selectors that match them.

use crate::ids::{KeyId, ValueId};

/// The labels of one object, sorted by key; a key stands once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Vec<(KeyId, ValueId)>);

impl Labels {
    /// Sorts the pairs. INVARIANT: no key stands twice; they come from a map.
    pub fn new(mut pairs: Vec<(KeyId, ValueId)>) -> Self {
        pairs.sort_unstable();
        Self(pairs)
    }

    /// The value under `key`.
    pub fn get(&self, key: KeyId) -> Option<ValueId> {
        self.0.binary_search_by_key(&key, |pair| pair.0).ok().map(|at| self.0[at].1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One demand on the value under a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The label it looks at.
    pub key: KeyId,
    /// What it asks of the value.
    pub operator: Operator,
}

/// What a requirement asks of the value under its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// It is one of these.
    In(Vec<ValueId>),
    /// It is none of these, or missing.
    NotIn(Vec<ValueId>),
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
    /// It is a whole number above this.
    Above(i64),
    /// It is a whole number below this.
    Below(i64),
}

impl Requirement {
    /// Whether `labels` meet it. `numbers` gives the whole number that a value spells, if it does.
    pub fn matches(&self, labels: &Labels, numbers: &[Option<i64>]) -> bool {
        let value = labels.get(self.key);
        let number = || value.and_then(|value| numbers[value.index()]);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(&value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(&value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Above(bound) => number().is_some_and(|number| number > *bound),
            Operator::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// A label selector over pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    /// No selector was given: it matches no pod.
    Nothing,
    /// All of these hold; with none, every pod matches.
    All(Vec<Requirement>),
}

impl Selector {
    /// Whether a pod with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels, &[])),
        }
    }

    /// Whether it was given but demands nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }
}

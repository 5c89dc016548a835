//! Labels of pods, nodes and namespaces as pairs of ids, and the selectors that match them. `loader` makes the ids.

use crate::ids::{KeyId, ValueId};

/// The labels of one object, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Vec<(KeyId, ValueId)>);

impl Labels {
    /// Sorts the pairs. INVARIANT: each key occurs once, because the pairs come from a map.
    pub fn new(mut pairs: Vec<(KeyId, ValueId)>) -> Self {
        pairs.sort_unstable();
        Self(pairs)
    }

    /// The value of `key`.
    pub fn get(&self, key: KeyId) -> Option<ValueId> {
        self.0.binary_search_by_key(&key, |pair| pair.0).ok().map(|index| self.0[index].1)
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A requirement on the value of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The key.
    pub key: KeyId,
    /// The condition on the value.
    pub operator: Operator,
}

/// The condition on the value of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// The value is one of these.
    In(Vec<ValueId>),
    /// The value is none of these, or missing.
    NotIn(Vec<ValueId>),
    /// The key exists.
    Exists,
    /// The key does not exist.
    DoesNotExist,
    /// The value is an integer above this (`Gt`, only in node affinity).
    Above(i64),
    /// The value is an integer below this (`Lt`, only in node affinity).
    Below(i64),
}

impl Requirement {
    /// Whether `labels` meet the requirement. `numbers` has, by value, the integer that it spells.
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

/// A label selector over pods. `loader` resolves selectors over namespaces when it builds the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    /// No selector is set: no pod matches.
    Nothing,
    /// All requirements hold; without any, every pod matches. INVARIANT: none is `Above` or `Below`, which only node affinity has.
    All(Vec<Requirement>),
}

impl Selector {
    /// Whether a pod with these labels matches.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels, &[])),
        }
    }

    /// Whether the selector is set but has no requirements.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }
}

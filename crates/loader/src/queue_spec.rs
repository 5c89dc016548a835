//! A queue as every policy has one.

use crate::Amounts;

/// A queue with its limits, whatever its policy calls it.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// The index of the queue above it.
    pub parent: Option<usize>,
    /// What it is guaranteed.
    pub guarantee: Amounts,
    /// What it may use at most.
    pub ceiling: Amounts,
}

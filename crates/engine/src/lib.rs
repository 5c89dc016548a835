//! Decides preemption: which running units are evicted so that a pending pod, group or workload fits. The policy says which units may be
//! victims and which plan costs least; no unit is a victim unless the preemptor then fits.
//!
//! The crate is pure: no I/O, no clock (the time is an argument), no randomness, no strings. The same input gives the same decision on
//! every machine. `loader` builds the [`snapshot::Snapshot`]; [`decide`] runs the steps of a decision, each in a file: [`mod@fit`], `gate`,
//! `candidates`, [`domains`], `reprieve`, [`choose`], [`explanation`]; `report` turns the result into text.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same decision, on every machine")]

pub mod between_decisions;
mod candidates;
pub mod choose;
mod decide;
pub mod decision;
mod decisive;
pub mod domains;
mod equal_cost;
pub mod explanation;
pub mod filters;
pub mod fit;
mod fraction;
mod gate;
mod ids;
mod labels;
pub mod laws;
mod nominations;
mod place;
pub mod policy;
pub mod queues;
pub mod reprieve;
pub mod shape;
pub mod snapshot;
pub mod what_if;
pub mod workloads;

pub use decide::{decide, decide_and_explain, node_plans};
pub use decision::{Decision, EvictionReason, Outcome};
pub use fraction::Fraction;
pub use ids::*;
pub use labels::{Labels, Operator, Requirement, Selector};
pub use policy::Policy;

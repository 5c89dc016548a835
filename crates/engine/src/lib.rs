//! Decides who must yield so that an urgent unit can run: the smallest, cheapest, lawful set of victims, never a part of what only
//! works whole, and nothing at all unless the whole preemptor is known to fit.
//!
//! Pure: no I/O, no clock (now is an input), no randomness, no strings. Same input, same decision, on every machine. The steps of
//! a decision are files: [`mod@fit`], `gate`, `candidates`, [`domains`], `reprieve`, [`choose`], and [`explanation`].

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
mod place;
pub mod policy;
pub mod queues;
pub mod reprieve;
pub mod shape;
pub mod snapshot;
pub mod what_if;
pub mod workloads;

pub use decide::{decide, decide_and_explain, node_plans};
pub use decision::{Decision, Outcome};
pub use fraction::Fraction;
pub use ids::*;
pub use labels::{Labels, Operator, Requirement, Selector};

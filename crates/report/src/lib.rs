//! Reports of decisions: sentences, rows and JSON types. The command line prints them, the scheduler writes the sentences into conditions
//! and events and takes the list of actions of a plan from here.
//!
//! The engine returns ids and enum values; this crate adds names and text, and decides nothing.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same text, on every machine")]

mod action_rows;
pub mod answer;
pub mod budget_report;
pub mod cycle;
pub mod decision;
pub mod gpu_hours;
mod loaded_states;
mod placement_report;
pub mod planned_actions;
pub mod plural;
pub mod queue_report;
pub mod quota_report;
pub mod reasons;
pub mod remaining_actions;
pub mod report;
mod report_builder;
pub mod return_report;
pub mod unit_ref;
mod workload_report;

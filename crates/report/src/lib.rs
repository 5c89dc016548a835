//! Decisions in words: sentences, rows and JSON. Text for people is written here and nowhere else.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same words, on every machine")]

pub mod answer;
pub mod budget_report;
pub mod cycle;
pub mod decision;
mod placement_report;
pub mod planned_actions;
pub mod plural;
pub mod queue_report;
pub mod quota_report;
pub mod reasons;
pub mod report;
mod report_builder;
pub mod unit_ref;
mod workload_report;

//! Decisions in words: sentences, rows and JSON. Text for people is written here and nowhere else.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same words, on every machine")]

pub mod answer;
pub mod budget_report;
pub mod cycle;
pub mod decision;
mod naming;
mod place_report;
pub mod planned_actions;
pub mod plural;
pub mod queue_report;
pub mod quota_report;
pub mod report;
pub mod unit_name;
pub mod words;
mod workload_report;

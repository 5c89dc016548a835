//! Simulates a cluster in virtual time around the scheduler that also runs real clusters: jobs arrive, are preempted, and faults are injected.
//!
//! `reprieve simulate` runs a [`scenario`] or a [`trace`] under each policy and compares the [`summary`] of each [`run`]; with `--check` it runs
//! a [`campaign`] of random clusters and checks the [`invariants`] after every step. The same setup and seed give the same run, to the byte,
//! on every machine.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same seed, same run, on every machine")]

mod api;
pub mod campaign;
mod fault_injector;
pub mod faults;
pub mod input;
pub mod invariants;
mod job;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod submission;
pub mod summary;
mod timeline;
pub mod trace;
mod usage;
pub mod virtual_cluster;

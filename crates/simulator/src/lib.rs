//! Simulates a cluster in virtual time around the scheduler of `reprieve run`: jobs arrive and are preempted, and faults are injected.
//!
//! `reprieve simulate` reads a [`scenario`] or a [`trace`] as [`input`], simulates it once under each chosen policy, and compares the
//! [`summary`] of each [`run`]. With `--check` it runs a [`campaign`] of random clusters, checks the [`invariants`] after every step of the
//! scheduler, and uses [`shrink`] to minimize a violation. The same input and seed give the same results, byte for byte, on every machine.
//!
//! [`faults`] defines the kinds of faults, and `fault_injector` draws them. A [`submission`] is a job as it is submitted; `job` is its
//! state in the simulation. [`hostile`] creates the objects of a hostile tenant. [`virtual_cluster`] connects all parts.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "clocks, files and hash maps make runs differ")]

mod api;
pub mod campaign;
mod fault_injector;
pub mod faults;
pub mod hostile;
mod incomplete_gangs;
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

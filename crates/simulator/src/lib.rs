//! A virtual cluster in virtual time, in which the scheduler that runs real clusters lives through arrivals, preemptions and faults.
//!
//! Same setup, same seed, same run, to the byte, on every machine.

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

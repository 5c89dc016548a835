//! Synthetic clusters: small random ones for property tests, large regular ones for benchmarks. The same seed creates the same cluster on
//! every machine.

pub mod goals;
mod limits;
pub mod random;
pub mod random_cohorts;
pub mod random_jobs;
pub mod random_queues;
mod rng;
pub mod scale;

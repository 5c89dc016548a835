//! The live adapter: it watches a real API server, feeds the scheduler's state machine and carries out its actions. It decides nothing.
//!
//! The state machine runs on a thread of its own (`brain`); what talks to the API is async (`watch`, `hands`, `lease`). Between
//! them there are only events and actions.

#![warn(missing_docs)]

mod audit;
mod bindings;
mod brain;
pub mod client;
pub mod config;
mod error;
mod hands;
mod inbox;
mod lease;
mod log;
mod messages;
mod metrics;
mod preflight;
pub mod read;
mod resources;
pub mod run;
mod server;
mod slim;
mod turns;
mod watch;

pub use error::Error;

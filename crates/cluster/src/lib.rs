//! The live adapter: it watches a real API server, feeds the scheduler's state machine and carries out its actions. It decides nothing.
//!
//! The state machine runs on a thread of its own (`brain`); what talks to the API is async (`watch`, `hands`, `lease`). Between
//! them there are only events and actions.

#![warn(missing_docs)]

mod audit;
mod bindings;
pub mod client;
pub mod config;
mod error;
mod event_loop;
mod event_queue;
mod executor;
mod leader;
mod logging;
mod messages;
mod metrics;
mod ordering;
mod preflight;
mod resources;
pub mod run;
mod server;
pub mod snapshot;
mod trim;
mod watch;

pub use error::Error;

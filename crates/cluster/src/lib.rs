//! The live adapter: it watches an API server, passes the changes to the scheduler, and executes the scheduler's actions. It decides nothing.
//!
//! The schedulers run on a thread of their own (`event_loop`). The async tasks exchange only messages with it:
//!
//! ```text
//! watch ──────▶ event_queue ──▶ event_loop ──▶ executor ──▶ API server
//!                    ▲                            │
//!                    └───────── results ──────────┘
//! ```
//!
//! `run` starts these parts whenever this replica is the leader (`leader`); `snapshot` lists the objects once, for `reprieve plan`.

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
mod preflight;
mod queue_configuration;
mod readiness;
mod reporter;
mod resources;
pub mod run;
mod served;
mod server;
pub mod snapshot;
mod trim;
mod watch;

pub use error::Error;

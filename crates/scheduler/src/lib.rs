//! The scheduler as a state machine without I/O: events in, actions out, time as an input.
//!
//! Whoever drives it tells it what the API says ([`event`]), asks it for the next step, carries out the step's actions ([`action`]) and
//! tells it how they went. It assumes of no action that it worked, and of no event that it comes once, in time or in order. All that
//! its decisions rest on is in the API's objects: one that is started anew in the middle of a preemption goes on with it.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same events, same actions, on every machine")]

pub mod action;
mod action_log;
mod admission;
pub mod effects;
pub mod event;
mod preemption;
mod queue;
mod scheduler;
mod status;
mod step;
mod test_bugs;
mod view;
mod wait_reason;

pub use reprieve_report::unit_ref::UnitRef;
pub use scheduler::Scheduler;
pub use step::{RecordedDecision, Step, StepOutcome};
pub use test_bugs::Bug;
pub use wait_reason::WaitReason;

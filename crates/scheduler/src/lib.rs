//! The scheduler as a state machine without I/O: events in, actions out, time as an input.
//!
//! ```text
//! Event ──▶ Scheduler::observe          Scheduler::step ──▶ Step { outcome, actions }
//!   ▲                                                                │
//!   └──────────── caller: live adapter or simulator ◀────────────────┘
//! ```
//!
//! The caller passes on what the API reports ([`event`]), calls [`Scheduler::step`], carries out the [`action`]s and reports their results as
//! events. The scheduler does not rely on the success of an action, nor on events to come once, in time or in order. All state that decisions
//! depend on is in API objects: a scheduler that is restarted during a preemption continues it.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same events, same actions, on every machine")]

pub mod action;
mod action_log;
mod admission;
pub mod effects;
pub mod event;
mod preemption;
mod queue;
mod reported;
mod scheduler;
mod status;
mod step;
mod test_bugs;
mod view;
mod wait_reason;

pub use action::{Action, ActionId, EventReason, Target};
pub use event::{ActionResult, Event};
pub use reprieve_report::unit_ref::UnitRef;
pub use scheduler::Scheduler;
pub use step::{ForeseenEviction, RecordedDecision, Step, StepOutcome};
pub use test_bugs::Bug;
pub use wait_reason::WaitReason;

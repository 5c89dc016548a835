//! Objects in, snapshot out. All labels, annotations and amounts are understood here, once.
//!
//! With `reprieve-api` and `reprieve-engine` this is a library that other programs can use: read objects, load them, decide, and look at the
//! reasons.
//!
//! ```
#![doc = include_str!("../examples/decide.rs")]
//! ```

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same snapshot, on every machine")]

mod classes;
mod defaults;
mod disturbance;
pub mod groups;
mod index;
mod intern;
mod joint;
mod koordinator;
pub mod live;
pub mod load;
mod loader;
pub mod names;
mod namespace_selector;
mod obstacles;
mod order;
pub mod preemption_priority;
pub mod protected;
pub mod question;
mod queue_source;
pub mod queue_spec;
mod quota;
pub mod request;
pub mod schedulers;
mod shape;
mod strictness;
pub mod submit;
pub mod time;
pub mod unsupported;
mod workload_classes;
mod yunikorn;

pub(crate) use classes::Classes;
// What `translate` reads queues and workloads with.
pub use defaults::Defaults;
pub use index::{by_name, plain_name};
pub(crate) use intern::Interner;
pub use joint::ties;
pub use koordinator::quota_tree;
pub use load::Loaded;
pub(crate) use loader::Loader;
pub use names::Names;
pub(crate) use order::nth_rank;
pub use question::{Question, policy_name};
pub use queue_spec::Account;
pub use quota::{accounts, is_finished};
pub use request::Amounts;
pub use strictness::Strictness;
pub use time::timestamp;
pub use workload_classes::WorkloadClasses;
pub use yunikorn::{queue_of, queue_tree};

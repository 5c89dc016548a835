//! Converts Kubernetes objects into the engine's `Snapshot`. Decisions read labels, annotations and amounts only here.
//!
//! [`build`] builds a snapshot from a list of objects, for the commands; [`cache`] keeps one up to date with events of the API, for the
//! scheduler. Both use `builder`, which converts nodes, pods and PodDisruptionBudgets. `yunikorn`, `koordinator` and `quota` (Kueue) read
//! the queues of one policy each, `queue_source` selects between them, and `queue_spec` is a queue of any of them. The other modules each
//! read one kind of object or one aspect of a pod. Together with `reprieve-api` and `reprieve-engine` the crate is a library for other
//! programs:
//!
//! ```
#![doc = include_str!("../examples/decide.rs")]
//! ```

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same snapshot, on every machine")]

mod arguments;
pub mod build;
mod builder;
pub mod cache;
mod defaults;
pub mod groups;
mod index;
mod interner;
mod koordinator;
mod kubernetes_arguments;
mod member_values;
mod membership;
pub mod names;
mod namespace_selector;
mod obstacles;
mod on_invalid;
mod order;
mod owner_gangs;
mod owners;
pub mod policy;
mod preemption_options;
pub mod preemption_priority;
mod priority_classes;
pub mod protected_namespaces;
pub mod quarantine;
pub mod queue_settings;
mod queue_source;
pub mod queue_spec;
mod quota;
mod reader;
pub mod requests;
pub mod schedulers;
mod shape;
pub mod submit;
mod sums;
pub mod time;
pub mod unsupported;
mod untrusted;
mod warning;
mod workload_classes;
mod yunikorn;
mod yunikorn_arguments;
mod yunikorn_pods;

pub use build::Loaded;
pub(crate) use builder::SnapshotBuilder;
pub use defaults::Defaults;
pub use index::{by_name, plain_name};
pub(crate) use interner::Interner;
// The ElasticQuotas of Koordinator.
pub use koordinator::quota_tree;
pub use membership::find_membership;
pub use names::Names;
pub use on_invalid::OnInvalid;
pub(crate) use order::nth_rank;
pub use policy::{Question, policy_name};
pub(crate) use priority_classes::Classes;
pub use quarantine::{Quarantine, Quarantined};
pub use queue_settings::{LoadScope, QueueScope, QueueSettings};
pub use queue_spec::QueueSpec;
// The ClusterQueues and Cohorts of Kueue.
pub use quota::{is_finished, queue_specs};
pub use requests::Amounts;
pub use time::timestamp;
pub use warning::Warning;
pub use workload_classes::WorkloadClasses;
// The queues of YuniKorn.
pub use yunikorn::{check_queues, queue_tree};
pub use yunikorn_pods::queue_of;

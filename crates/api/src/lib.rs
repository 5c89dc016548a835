//! The objects of Kubernetes and of Reprieve as data: types, decoding with precise errors, quantities, and the table of kinds. This crate
//! makes no decisions. [`read`] is the entry for files, [`kinds::Object`] for single objects from a cluster.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same objects, on every machine")]

pub mod answer;
pub mod controlled;
#[cfg(feature = "crds")]
pub mod crds;
pub mod decode;
pub mod fields;
pub mod kinds;
pub mod koordinator;
pub mod kueue;
mod lenient;
pub mod membership;
pub mod meta;
pub mod object_set;
pub mod owners;
pub mod permissions;
pub mod pod;
mod pod_group;
pub mod quantity;
pub mod read;
pub mod record;
pub mod requests;
#[cfg(feature = "crds")]
mod schema;
pub mod source;
pub mod test_file;
mod tree;
pub mod volumes;
pub mod workload;

pub use kinds::{Kind, Object, ObjectKey, Reader};
pub use koordinator::{job_of, named_job_of};
pub use membership::{group_of, named_group_of, owner_gang_of, workload_group};
pub use meta::NamespacedName;
pub use object_set::ObjectSet;
pub use pod::{Container, Pod, PodSpec, PodStatus};
pub use source::{InputError, ObjectRef, ProblemCode, Source, Sourced};
pub use test_file::{OutcomeName, PreemptorRef, Profile, TestSpec, VictimRef};

//! Kubernetes objects in, snapshot out. All YAML, labels, annotations and quantities are understood here, once.

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same snapshot, on every machine")]

pub mod accounts;
pub mod answer;
pub mod budget_report;
mod classes;
pub mod complete;
#[cfg(feature = "crds")]
pub mod crds;
pub mod cycle;
pub mod decode;
mod defaults;
mod disturbance;
pub mod fields;
pub mod groups;
mod intern;
mod joint;
pub mod koordinator;
pub mod kueue;
pub mod live;
pub mod load;
mod loader;
pub mod made_up;
pub mod names;
mod namespace_selector;
pub mod object;
pub mod objects;
mod place_report;
pub mod pod;
pub mod preemption_priority;
pub mod protected;
pub mod quantity;
pub mod question;
pub mod queue_report;
mod quota;
pub mod quota_report;
pub mod read;
pub mod record;
pub mod report;
pub mod request;
pub mod schedulers;
mod shape;
pub mod source;
pub mod submit;
pub mod test_file;
mod tree;
pub mod unsupported;
mod volumes;
pub mod words;
pub mod workload;
mod workload_classes;
mod workload_report;
mod yunikorn;

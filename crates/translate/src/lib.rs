//! Translates a cluster to the objects of another policy, so that `compare` and `simulate` can decide under several policies. No other crate
//! creates policy objects.
//!
//! ```text
//! objects ── translation ──▶ NeutralQueues ──┬─▶ to_yunikorn     ConfigMap yunikorn-configs
//!                                  ▲         ├─▶ to_koordinator  ElasticQuotas, PodGroups
//! scenarios, traces ───────────────┘         └─▶ to_kueue        Cohorts, ClusterQueues, LocalQueues, Workloads
//! objects ── to_kubernetes ──▶ pods and PodGroups
//! ```

#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, reason = "same input, same objects, on every machine")]

pub mod kueue_objects;
pub mod queue_tree;
mod synthetic;
pub mod to_koordinator;
pub mod to_kubernetes;
pub mod to_kueue;
pub mod to_yunikorn;
pub mod tolerations;
pub mod translation;

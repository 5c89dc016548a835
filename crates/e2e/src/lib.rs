//! A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager, and kwok in the role of all kubelets.
//!
//! `cargo xtask e2e` builds these programs and runs the tests. A test has a control plane of its own, because nodes belong to no
//! namespace. What cannot be had is a panic with the reason: this is code for tests only.

mod access;
mod control_plane;
mod etcd;
mod eventually;
pub mod final_state;
pub mod fixtures;
mod objects;
pub mod plain;
mod process;
mod programs;
mod usage;

pub use access::User;
pub use control_plane::ControlPlane;
pub use eventually::eventually;
pub use objects::objects;
pub use process::Process;
pub use programs::{program, root};
pub use usage::{cpu_seconds, peak_megabytes};

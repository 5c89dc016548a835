//! A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager, and kwok in place of all kubelets.
//!
//! `cargo xtask e2e` builds these programs and runs the tests. Each test has a control plane of its own, because nodes have
//! no namespace. Failures are panics with the reason: this crate is only for tests.

mod access;
mod control_plane;
mod etcd;
mod eventually;
pub mod final_state;
pub mod fixtures;
mod objects;
pub mod plain_http;
mod process;
mod programs;
mod usage;

pub use access::User;
pub use control_plane::ControlPlane;
pub use eventually::eventually;
pub use objects::{objects, roles_for};
pub use process::Process;
pub use programs::{program, root};
pub use usage::{cpu_seconds, peak_megabytes};

//! The Kubernetes policy: what kube-scheduler does for pods and groups, and what the workload-aware design asks beyond it.

/// The settings of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// Whether a group first looks for the lowest priority such that taking nobody above it is enough. Without it the policy
    /// decides as kube-scheduler 1.37 does.
    pub priority_cut: bool,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self { priority_cut: true }
    }
}

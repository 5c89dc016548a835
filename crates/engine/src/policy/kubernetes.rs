//! The Kubernetes policy: what kube-scheduler does for pods and groups, and what the workload-aware design asks beyond it.

/// The settings of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// Whether a group first looks for the lowest priority such that taking nobody above it is enough. Without it the policy
    /// decides as kube-scheduler 1.37 does.
    pub priority_cut: bool,
    /// How far a group's preemption priority may lie above its scheduling priority; one that lies further is refused when the objects
    /// are loaded. `None` is no limit.
    pub max_preemption_priority_excess: Option<u32>,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self { priority_cut: true, max_preemption_priority_excess: None }
    }
}

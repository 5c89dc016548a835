//! The settings of policy Kubernetes. docs/rules/kubernetes-groups.md#ga1 lists what `compatibility` stands for.

pub use crate::fit::Search;
use crate::policy::owner_kinds::OwnerKinds;

/// What happens to a preemptor group with members whose priority or `preemptionPolicy` differs from the group's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityMismatch {
    /// The difference is reported, and the group's values count.
    #[default]
    Report,
    /// The group is refused.
    Refuse,
}

/// Whether the cost of a plan includes the evictions that returning victims cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cascades {
    /// The cost includes them.
    #[default]
    Include,
    /// The cost of a plan is that of its own victims.
    Ignore,
}

/// What happens to a nomination whose placement is no longer possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaleNominations {
    /// It is given up, and the unit is decided again.
    #[default]
    Replan,
    /// The unit waits while pods that were preempted terminate on a nominated node, as under kube-scheduler.
    Wait,
}

/// The settings of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// Whether a group first searches for the lowest priority such that taking no unit above it is enough.
    pub priority_cut: bool,
    /// What happens to a preemptor group with members that differ from it.
    pub priority_mismatch: PriorityMismatch,
    /// Whether evictions that returning victims cause count.
    pub cascades: Cascades,
    /// The owners whose pods form a gang without a PodGroup.
    pub gangs_from_owners: OwnerKinds,
    /// The maximum by which a group's preemption priority may exceed its scheduling priority; the loader ignores one that exceeds it.
    pub max_preemption_priority_excess: u32,
    /// What happens to a nomination whose placement is no longer possible.
    pub stale_nominations: StaleNominations,
    /// How the members of a group are placed.
    pub search: Search,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            priority_cut: true,
            priority_mismatch: PriorityMismatch::default(),
            cascades: Cascades::default(),
            gangs_from_owners: OwnerKinds::default(),
            max_preemption_priority_excess: 1_000,
            stale_nominations: StaleNominations::default(),
            search: Search::default(),
        }
    }
}

impl Kubernetes {
    /// The settings with which the policy decides as kube-scheduler 1.37.
    pub fn compatible() -> Self {
        Self {
            priority_cut: false,
            priority_mismatch: PriorityMismatch::Refuse,
            cascades: Cascades::Ignore,
            gangs_from_owners: OwnerKinds::NONE,
            stale_nominations: StaleNominations::Wait,
            search: Search::Greedy,
            ..Self::default()
        }
    }
}

//! The settings of the policy.

use crate::policy::owner_kinds::OwnerKinds;

/// The settings of policy YuniKorn. The default decides as the design of YuniKorn's preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YuniKorn {
    /// Whether the code of YuniKorn 1.8 decides where it differs from the design.
    pub follows_code: bool,
    /// Whether the annotation of a pod itself counts, and takes precedence over that of its priority class.
    pub pod_opt_out: bool,
    /// Whether a running gang that would fall below its minimum is evicted as a whole or not at all.
    pub whole_gangs: bool,
    /// The owners whose pods form a gang without a PodGroup.
    pub gangs_from_owners: OwnerKinds,
}

impl Default for YuniKorn {
    fn default() -> Self {
        Self { follows_code: false, pod_opt_out: false, whole_gangs: true, gangs_from_owners: OwnerKinds::default() }
    }
}

impl YuniKorn {
    /// The settings that decide as YuniKorn 1.8.
    pub const fn compatible() -> Self {
        Self { follows_code: true, pod_opt_out: true, whole_gangs: false, gangs_from_owners: OwnerKinds::NONE }
    }
}

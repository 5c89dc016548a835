//! The settings of the policy.

use crate::policy::owner_kinds::OwnerKinds;

/// The settings of policy YuniKorn. The default decides as the design of YuniKorn's preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YuniKorn {
    /// Whether the code of YuniKorn 1.8 decides where it differs from the design.
    pub follows_code: bool,
    /// Whether the annotation of a pod itself counts, and takes precedence over that of its priority class.
    pub pod_opt_out: bool,
    /// The owners whose pods form a gang without a PodGroup.
    pub gangs_from_owners: OwnerKinds,
}

impl YuniKorn {
    /// The settings that decide as YuniKorn 1.8.
    pub const fn compatible() -> Self {
        Self { follows_code: true, pod_opt_out: true, gangs_from_owners: OwnerKinds::NONE }
    }
}

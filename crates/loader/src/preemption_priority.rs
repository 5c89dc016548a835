//! The preemption priority of a group: the priority that counts when the group is a candidate (KEP-5710).
//!
//! It must not be below the scheduling priority, or two groups could preempt each other without end. A limit on its excess over the
//! scheduling priority keeps a group of low priority from protecting itself; the classes of the system are for `kube-system`. See
//! `docs/rules/kubernetes-groups.md#g16`.

use std::fmt;

use reprieve_engine::Priority;

use crate::Classes;
use crate::untrusted::Untrusted;

/// Why a preemption priority is refused. The scheduling priority is used instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidPreemptionPriority {
    /// The class does not exist.
    Undefined {
        /// The name of the class.
        class: String,
    },
    /// The class is one of the system, and the group is not in `kube-system`.
    SystemClass {
        /// The name of the class.
        class: String,
    },
    /// The priority is below the scheduling priority.
    Below {
        /// The refused priority.
        preemption: Priority,
        /// The priority that is used instead.
        scheduling: Priority,
    },
    /// The priority exceeds the scheduling priority by more than the limit.
    TooFarAbove {
        /// The refused priority.
        preemption: Priority,
        /// The priority that is used instead.
        scheduling: Priority,
        /// The largest allowed excess.
        limit: u32,
    },
}

/// Returns the preemption priority of a group in this namespace that names this preemption priority class.
pub(crate) fn preemption_priority(
    class: Option<Untrusted<&str>>,
    namespace: &str,
    scheduling: Priority,
    classes: &Classes,
) -> Result<Priority, InvalidPreemptionPriority> {
    class.map_or(Ok(scheduling), |class| class.check(|class| allowed_priority(class, namespace, scheduling, classes)))
}

fn allowed_priority(
    class: &str,
    namespace: &str,
    scheduling: Priority,
    classes: &Classes,
) -> Result<Priority, InvalidPreemptionPriority> {
    let Some(preemption) = classes.value(class) else {
        return Err(InvalidPreemptionPriority::Undefined { class: class.to_owned() });
    };
    if class.starts_with("system-") && namespace != "kube-system" {
        return Err(InvalidPreemptionPriority::SystemClass { class: class.to_owned() });
    }
    let excess = i64::from(preemption.0) - i64::from(scheduling.0);
    let limit = classes.max_preemption_excess;
    if excess < 0 {
        Err(InvalidPreemptionPriority::Below { preemption, scheduling })
    } else if excess > i64::from(limit) {
        Err(InvalidPreemptionPriority::TooFarAbove { preemption, scheduling, limit })
    } else {
        Ok(preemption)
    }
}

impl InvalidPreemptionPriority {
    /// Returns the reason for a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Undefined { .. } => "ClassNotDefined",
            Self::SystemClass { .. } => "SystemClassNotAllowed",
            Self::Below { .. } => "BelowSchedulingPriority",
            Self::TooFarAbove { .. } => "TooFarAboveSchedulingPriority",
        }
    }
}

impl fmt::Display for InvalidPreemptionPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { class } => {
                write!(f, "its preemption priority class {class:?} is not defined; its scheduling priority is used")
            }
            Self::SystemClass { class } => write!(
                f,
                "its preemption priority class {class:?} is only for groups in namespace kube-system; its scheduling priority is used"
            ),
            Self::Below { preemption, scheduling } => write!(
                f,
                "its preemption priority {} is below its scheduling priority {}, which is invalid; the latter is used",
                preemption.0, scheduling.0
            ),
            Self::TooFarAbove { preemption, scheduling, limit } => write!(
                f,
                "its preemption priority {} is more than {limit} above its scheduling priority {}, which is not allowed; the latter is used",
                preemption.0, scheduling.0
            ),
        }
    }
}

//! The priority by which a group is judged when it is asked to yield.
//!
//! It is never below the scheduling priority, or two groups could preempt each other for ever; and where a limit is set, not further
//! above it than that, or a group of low priority could make itself safe from everybody. (KEP-5710.)

use std::fmt;

use reprieve_engine::Priority;

use crate::Classes;

/// A preemption priority that is refused, and why: the scheduling priority is used in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidPreemptionPriority {
    /// Its class is not there.
    Undefined {
        /// The class.
        class: String,
    },
    /// It is below the scheduling priority.
    Below {
        /// What was asked for.
        preemption: Priority,
        /// What is used.
        scheduling: Priority,
    },
    /// It is further above the scheduling priority than is allowed.
    TooFarAbove {
        /// What was asked for.
        preemption: Priority,
        /// What is used.
        scheduling: Priority,
        /// How far it may be above.
        limit: u32,
    },
}

/// The preemption priority of a group that names this class for it.
pub fn preemption_priority(
    class: Option<&str>,
    scheduling: Priority,
    classes: &Classes,
) -> Result<Priority, InvalidPreemptionPriority> {
    let Some(class) = class else { return Ok(scheduling) };
    let Some(preemption) = classes.value(class) else {
        return Err(InvalidPreemptionPriority::Undefined { class: class.to_owned() });
    };
    let excess = i64::from(preemption.0) - i64::from(scheduling.0);
    match classes.max_preemption_excess {
        _ if excess < 0 => Err(InvalidPreemptionPriority::Below { preemption, scheduling }),
        Some(limit) if excess > i64::from(limit) => {
            Err(InvalidPreemptionPriority::TooFarAbove { preemption, scheduling, limit })
        }
        _ => Ok(preemption),
    }
}

impl InvalidPreemptionPriority {
    /// In one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Undefined { .. } => "ClassNotDefined",
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

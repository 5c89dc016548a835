//! Groups of pods: PodGroups, and the gangs that owners form.

use crate::ids::{PodId, Priority, TextId, TopologyId};

/// A group of pods that are scheduled together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The number of members that must run for the group to run.
    pub min_count: usize,
    /// The priority as a preemptor.
    pub priority: Priority,
    /// The priority as a victim; at least `priority`.
    pub victim_priority: Priority,
    /// Whether it may preempt.
    pub preempts: bool,
    /// Whether the group is preempted as a whole or pod by pod.
    pub mode: DisruptionMode,
    /// The topology of which all members must be in one domain.
    pub topology: Option<TopologyId>,
    /// A field of the group that the engine does not evaluate.
    pub unsupported: Option<TextId>,
    /// Whether an owner of the pods forms the group, and not an object of its own. It has the priorities of its pods.
    pub from_owner: bool,
    /// The bound and pending pods of the group.
    pub members: Vec<PodId>,
}

impl Group {
    /// docs/rules/kubernetes-groups.md#ga8: the gang that an owner forms, without members.
    pub fn of_owner() -> Self {
        Self {
            min_count: 0,
            priority: Priority(0),
            victim_priority: Priority(0),
            preempts: true,
            mode: DisruptionMode::All,
            topology: None,
            unsupported: None,
            from_owner: true,
            members: Vec::new(),
        }
    }
}

/// How a group is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisruptionMode {
    /// Pod by pod.
    Single,
    /// All pods or none.
    All,
}

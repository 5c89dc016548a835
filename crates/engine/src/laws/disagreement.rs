//! A group asks with one voice: its members have its priority and its `preemptionPolicy`. (Rule 20 of the groups.)

use crate::fit::{Ask, Preemptor};
use crate::ids::Priority;
use crate::laws::Law;
use crate::snapshot::Snapshot;

/// What a member and its group disagree about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Their priorities.
    Priority {
        /// The member's.
        member: Priority,
        /// The group's.
        group: Priority,
    },
    /// Whether they may preempt.
    Preempting {
        /// Whether the member may.
        member: bool,
        /// Whether the group may.
        group: bool,
    },
}

pub(crate) fn refuses(snapshot: &Snapshot, ask: &Ask) -> Option<Law> {
    let Preemptor::Group(group) = ask.preemptor else {
        return None;
    };
    let group = snapshot.group(group);
    let members = group.members.iter().filter(|&&member| snapshot.pod(member).takes_part());
    members.into_iter().find_map(|&member| {
        let pod = snapshot.pod(member);
        let about = if pod.priority != group.priority {
            About::Priority { member: pod.priority, group: group.priority }
        } else if pod.preempts != group.preempts {
            About::Preempting { member: pod.preempts, group: group.preempts }
        } else {
            return None;
        };
        Some(Law::Disagreement { member, about })
    })
}

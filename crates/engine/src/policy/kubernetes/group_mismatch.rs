//! docs/rules/kubernetes-groups.md#g20: the members of a preemptor have the priority and the `preemptionPolicy` of their group.

use crate::fit::{Preemptor, PreemptorId};
use crate::laws::{Law, Mismatch};
use crate::snapshot::Snapshot;

/// The law for the first member that differs from its group. `decide` of this policy calls it before any search.
pub(super) fn refuses(snapshot: &Snapshot, preemptor: &Preemptor) -> Option<Law> {
    let PreemptorId::Group(group) = preemptor.id else { return None };
    let group = snapshot.group(group);
    let members = group.members.iter().filter(|&&member| snapshot.pod(member).takes_part());
    members.into_iter().find_map(|&member| {
        let pod = snapshot.pod(member);
        let mismatch = if pod.priority != group.priority {
            Mismatch::Priority { member: pod.priority, group: group.priority }
        } else if pod.preempts != group.preempts {
            Mismatch::Preempting { member: pod.preempts, group: group.preempts }
        } else {
            return None;
        };
        Some(Law::GroupMismatch { member, mismatch })
    })
}

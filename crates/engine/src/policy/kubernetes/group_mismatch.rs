//! docs/rules/kubernetes-groups.md#g20: with `priorityMismatch: Refuse`, the members of a preemptor have the priority and the
//! `preemptionPolicy` of their group.

use super::{Kubernetes, PriorityMismatch};
use crate::fit::{Preemptor, PreemptorId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

/// The law for the first member that differs from its group. `decide` of this policy calls it before any search.
pub(super) fn refuses(snapshot: &Snapshot, policy: &Kubernetes, preemptor: &Preemptor) -> Option<Law> {
    let PreemptorId::Group(group) = preemptor.id else { return None };
    match policy.priority_mismatch {
        PriorityMismatch::Report => return None,
        PriorityMismatch::Refuse => {}
    }
    let members = snapshot.group(group).members.iter().filter(|&&member| snapshot.pod(member).takes_part());
    members
        .into_iter()
        .find_map(|&member| Some(Law::GroupMismatch { member, mismatch: snapshot.pod(member).mismatch? }))
}

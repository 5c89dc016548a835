//! docs/rules/kubernetes-pods.md#p2, docs/rules/kubernetes-groups.md#g6: a preemptor with `preemptionPolicy: Never` takes no victims, and a
//! group neither if it sets no policy and a member to be placed has this one.

use crate::fit::{Preemptor, PreemptorId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn refuses(snapshot: &Snapshot, preemptor: &Preemptor) -> Option<Law> {
    let preempts = match preemptor.id {
        PreemptorId::Pod(pod) => snapshot.pod(pod).preempts,
        PreemptorId::Group(group) => {
            snapshot.group(group).preempts && preemptor.members.iter().all(|&pod| snapshot.pod(pod).preempts)
        }
        PreemptorId::Workload(_) => true,
    };
    (!preempts).then_some(Law::PreemptionPolicyNever)
}

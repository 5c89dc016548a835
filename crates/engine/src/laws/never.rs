//! `preemptionPolicy: Never`: it waits for room, and takes none. (Rule 2 of the pods, rule 6 of the groups; a member that differs
//! from its group is a [`Law::Disagreement`].)

use crate::fit::{Preemptor, PreemptorId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn refuses(snapshot: &Snapshot, ask: &Preemptor) -> Option<Law> {
    let preempts = match ask.preemptor {
        PreemptorId::Pod(pod) => snapshot.pod(pod).preempts,
        PreemptorId::Group(group) => snapshot.group(group).preempts,
        PreemptorId::Workload(_) => true,
    };
    (!preempts).then_some(Law::PreemptionPolicyNever)
}

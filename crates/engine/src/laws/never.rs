//! `preemptionPolicy: Never`: it waits for room, and takes none. (Rule 2 of the pods, rule 6 of the groups; a member that differs
//! from its group is a `disagreement`.)

use crate::fit::{Ask, Preemptor};
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn refuses(snapshot: &Snapshot, ask: &Ask) -> Option<Law> {
    let preempts = match ask.preemptor {
        Preemptor::Pod(pod) => snapshot.pod(pod).preempts,
        Preemptor::Group(group) => snapshot.group(group).preempts,
        Preemptor::Workload(_) => true,
    };
    (!preempts).then_some(Law::Never)
}

//! A pod that is not preemptible, by its label or by default, is no victim. (Rule 1 of Koordinator.)

use crate::ids::PodId;
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn spares(snapshot: &Snapshot, pod: PodId, preemptible: bool) -> Option<Law> {
    (!preemptible || snapshot.pod(pod).preemption_disabled).then_some(Law::NotPreemptible)
}

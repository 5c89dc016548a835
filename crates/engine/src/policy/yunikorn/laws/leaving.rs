//! Who is leaving already is not taken again, and a DaemonSet's pod is never taken. (Rules 7 and 17.)

use crate::ids::PodId;
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn spares(snapshot: &Snapshot, pod: PodId) -> Option<Law> {
    let pod = snapshot.pod(pod);
    pod.leaving.map(|_| Law::Leaving).or(pod.daemon.then_some(Law::DaemonSet))
}

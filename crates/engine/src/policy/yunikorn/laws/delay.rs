//! A pod preempts only after it has waited as long as its queue says. A DaemonSet's pod need not wait. (Rules 3 and 17.)

use crate::ids::{PodId, Timestamp};
use crate::laws::Law;
use crate::snapshot::Snapshot;

pub(crate) fn refuses(snapshot: &Snapshot, pod: PodId, now: Timestamp) -> Option<Law> {
    let pod = snapshot.pod(pod);
    if pod.daemon {
        return None;
    }
    let until = pod.created.plus_micros(snapshot.queues().get(pod.queue?).delay_micros);
    (now < until).then_some(Law::Delay { until })
}

//! A victim's priority class may say from which priority on, or after how long, it can be preempted. (Seed 002; the rules of the
//! tolerations.) A group tolerates as a whole if any of its pods does.

use crate::fit::Preemptor;
use crate::ids::{Priority, Timestamp};
use crate::laws::Law;
use crate::snapshot::{Pod, Snapshot, Unit};

pub use crate::snapshot::Toleration;

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit, ask: &Preemptor, now: Timestamp) -> Option<Law> {
    unit.pods.iter().find_map(|&pod| {
        let until = tolerates(snapshot.pod(pod), ask.priority, now)?;
        Some(Law::Toleration { pod, until })
    })
}

/// When the pod will no longer tolerate a preemptor of this priority, if it does now and that ever ends.
pub(crate) fn ends(pod: &Pod, preemptor: Priority, now: Timestamp) -> Option<Timestamp> {
    tolerates(pod, preemptor, now).flatten()
}

/// Whether the pod tolerates now, and until when; `Some(None)` where that never ends.
fn tolerates(pod: &Pod, preemptor: Priority, now: Timestamp) -> Option<Option<Timestamp>> {
    let Toleration { minimum, seconds } = pod.toleration?;
    if preemptor >= minimum || seconds == 0 {
        return None;
    }
    let Some(scheduled) = pod.scheduled.filter(|_| seconds > 0) else {
        return Some(None); // where it is not known when the pod was scheduled, it cannot be said when it ends
    };
    let end = scheduled.plus_seconds(seconds);
    (end > now).then_some(Some(end))
}

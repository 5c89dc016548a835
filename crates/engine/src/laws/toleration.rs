//! docs/rules/toleration.md#t4 to docs/rules/toleration.md#t9: the priority class of a candidate can set the priority from which, or the
//! time after which, preemptors may take it. A unit tolerates a preemptor if one of its pods does.

use crate::fit::Preemptor;
use crate::ids::{Priority, Timestamp};
use crate::laws::Law;
use crate::snapshot::{Pod, Snapshot, Unit};

pub use crate::snapshot::Toleration;

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit, preemptor: &Preemptor, now: Timestamp) -> Option<Law> {
    unit.pods.iter().find_map(|&pod| {
        let until = tolerates(snapshot.pod(pod), preemptor.priority, now)?;
        Some(Law::Toleration { pod, until })
    })
}

/// The end of the pod's toleration of a preemptor with this priority; `None` if the pod does not tolerate it now, or without end.
pub(crate) fn ends(pod: &Pod, preemptor: Priority, now: Timestamp) -> Option<Timestamp> {
    tolerates(pod, preemptor, now).flatten()
}

/// The end of the toleration if the pod tolerates the preemptor now; `Some(None)` if it has no end.
fn tolerates(pod: &Pod, preemptor: Priority, now: Timestamp) -> Option<Option<Timestamp>> {
    let Toleration { minimum, seconds } = pod.toleration?;
    if preemptor >= minimum || seconds == 0 {
        return None;
    }
    let Some(scheduled) = pod.scheduled.filter(|_| seconds > 0) else {
        return Some(None); // without the time at which the pod was scheduled the end is unknown
    };
    let end = scheduled.plus_seconds(seconds);
    (end > now).then_some(Some(end))
}

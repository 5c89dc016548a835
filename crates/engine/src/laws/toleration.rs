//! A victim's priority class may say from which priority on, or after how long, it can be preempted. (Seed 002; the rules of the
//! tolerations.) A group tolerates as a whole if any of its pods does.

use crate::fit::Ask;
use crate::ids::{Priority, Timestamp};
use crate::laws::Law;
use crate::snapshot::{Pod, Snapshot, Unit};

pub use crate::snapshot::Toleration;

/// Until when a pod tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Never,
    Time(Timestamp),
}

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit, ask: &Ask, now: Timestamp) -> Option<Law> {
    unit.pods.iter().find_map(|&pod| {
        let until = tolerates(snapshot.pod(pod), ask.priority, now)?;
        let until = match until {
            Until::Never => None,
            Until::Time(time) => Some(time),
        };
        Some(Law::Toleration { pod, until })
    })
}

/// When the pod will no longer tolerate a preemptor of this priority, if it does now and that ever ends.
pub(crate) fn ends(pod: &Pod, preemptor: Priority, now: Timestamp) -> Option<Timestamp> {
    match tolerates(pod, preemptor, now)? {
        Until::Never => None,
        Until::Time(end) => Some(end),
    }
}

fn tolerates(pod: &Pod, preemptor: Priority, now: Timestamp) -> Option<Until> {
    let Toleration { minimum, seconds } = pod.toleration?;
    if preemptor >= minimum || seconds == 0 {
        return None;
    }
    if seconds < 0 {
        return Some(Until::Never);
    }
    let Some(scheduled) = pod.scheduled else {
        return Some(Until::Never); // it cannot be said when it ends
    };
    let end = scheduled.plus_seconds(seconds);
    (end > now).then_some(Until::Time(end))
}

//! docs/rules/kubernetes-pods.md#p24: a pod of which a part cannot be read is not taken, because the laws cannot judge it.

use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    let pod = unit.pods.iter().copied().find(|&pod| snapshot.pod(pod).set_aside)?;
    Some(Law::SetAside { pod: Some(pod) })
}

//! docs/rules/toleration.md#t10: a pod whose priority class opted out of preemption is not taken. Under YuniKorn such pods are
//! taken last instead (docs/rules/yunikorn.md#y11).

use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().copied().find(|&pod| snapshot.pod(pod).opted_out).map(|pod| Law::OptOut { pod })
}

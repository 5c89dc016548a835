//! docs/rules/kubernetes-pods.md#p23: a pod in a protected namespace is not taken.

use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().any(|&pod| snapshot.pod(pod).protected).then_some(Law::ProtectedNamespace)
}

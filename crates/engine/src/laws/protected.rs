//! Nobody is taken in a namespace that is protected.

use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().any(|&pod| snapshot.pod(pod).protected).then_some(Law::ProtectedNamespace)
}

//! A pod that opted out is not taken. (Rule 10 of the tolerations.)

use crate::laws::Law;
use crate::snapshot::{Snapshot, Unit};

pub(crate) fn spares(snapshot: &Snapshot, unit: &Unit) -> Option<Law> {
    unit.pods.iter().copied().find(|&pod| snapshot.pod(pod).opted_out).map(|pod| Law::OptOut { pod })
}

//! docs/rules/kubernetes-pods.md#p11, docs/rules/kubernetes-groups.md#g3: only units of a strictly lower priority are taken.

use crate::fit::Preemptor;
use crate::laws::Law;
use crate::snapshot::Unit;

pub(crate) fn spares(unit: &Unit, preemptor: &Preemptor) -> Option<Law> {
    (unit.priority >= preemptor.priority).then_some(Law::Priority { candidate: unit.priority })
}

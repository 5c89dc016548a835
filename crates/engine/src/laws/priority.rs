//! Only what is strictly lower may be taken. (Rule 11 of the pods, rule 3 of the groups.)

use crate::fit::Preemptor;
use crate::laws::Law;
use crate::snapshot::Unit;

pub(crate) fn spares(unit: &Unit, ask: &Preemptor) -> Option<Law> {
    (unit.priority >= ask.priority).then_some(Law::Priority { candidate: unit.priority })
}

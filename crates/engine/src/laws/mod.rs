//! The laws: one file each. A law spares a candidate or refuses a preemptor, and every refusal names its law.

pub mod disagreement;
pub mod never;
pub mod opt_out;
pub mod priority;
pub mod toleration;
pub mod underway;
pub mod unknown_class;

use crate::fit::Ask;
use crate::ids::{NodeId, PodId, Priority, Timestamp, UnitId};
use crate::snapshot::Snapshot;

/// A named rule by which a unit is spared or a preemptor refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// The candidate's priority is not below the preemptor's.
    Priority {
        /// The candidate's priority when it is asked to yield.
        candidate: Priority,
    },
    /// A pod of the candidate tolerates preemption by this preemptor.
    Toleration {
        /// The pod that does.
        pod: PodId,
        /// When it ends; `None` is never.
        until: Option<Timestamp>,
    },
    /// A pod of the candidate opted out.
    OptOut {
        /// The pod that did.
        pod: PodId,
    },
    /// A lower pod on the node names a priority class that nothing defines: its rights are unknown, so nothing is taken there.
    UnknownClass {
        /// That pod.
        pod: PodId,
    },
    /// The preemptor's `preemptionPolicy` is `Never`.
    Never,
    /// A member's priority or `preemptionPolicy` is not its group's.
    Disagreement {
        /// The member.
        member: PodId,
        /// What they disagree about.
        about: disagreement::About,
    },
    /// An earlier preemption for it is still under way.
    Underway {
        /// The victims that are still leaving.
        leaving: Vec<PodId>,
        /// The nodes they leave.
        nodes: Vec<NodeId>,
        /// When the last one's grace ends.
        until: Timestamp,
    },
}

/// The law that spares a unit from this preemptor, if there is one.
pub fn spares(snapshot: &Snapshot, ask: &Ask, unit: UnitId, now: Timestamp) -> Option<Law> {
    let unit = snapshot.unit(unit);
    priority::spares(unit, ask).or_else(|| {
        if !unit.shielded {
            return None;
        }
        opt_out::spares(snapshot, unit)
            .or_else(|| unknown_class::spares(snapshot, unit))
            .or_else(|| toleration::spares(snapshot, unit, ask, now))
    })
}

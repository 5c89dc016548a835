//! Where a pod fits. One file for each kind of filter; this one runs them in kube-scheduler's order, because the first that
//! fails says whether taking pods away could help.

pub(crate) mod inter_pod;
pub(crate) mod node;

use crate::ids::{QueueId, ResourceId, TopologyId};
use crate::shape::Taint;

/// Why a pod does not fit on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterFailure {
    /// The node is cordoned.
    Cordon,
    /// The pod does not bear this taint.
    Taint(Taint),
    /// The pod's node selector or node affinity excludes the node.
    NodeSelection,
    /// The node does not let pods that grow in place preempt.
    ResizeDisabled,
    /// A port of the node that the pod wants is taken.
    Ports,
    /// A queue would be over its ceiling.
    QueueLimit {
        /// The queue.
        queue: QueueId,
        /// The first resource that it would have too much of.
        resource: ResourceId,
        /// By how much.
        over: i64,
    },
    /// A resource is short.
    Resource {
        /// The first that is.
        resource: ResourceId,
        /// By how much.
        short: i64,
        /// Whether the node has less of some resource than the pod asks for, even when empty.
        beyond: bool,
    },
    /// The node lacks the label that the pod is to be spread by.
    SpreadLabel(TopologyId),
    /// The pod would be spread too unevenly.
    Spread {
        /// The label it is spread by.
        topology: TopologyId,
        /// How uneven it would be.
        skew: i64,
        /// How uneven it may be.
        max_skew: i64,
    },
    /// No pod that it must run beside is there.
    Affinity,
    /// A pod that it must not run beside is there.
    AntiAffinity(TopologyId),
    /// A pod is there that must not run beside it.
    OthersAntiAffinity(TopologyId),
}

impl FilterFailure {
    /// Whether taking pods away could make it fit. (Rules 7 and 8 of the pods.)
    pub fn resolvable(self) -> bool {
        match self {
            Self::Cordon
            | Self::Taint(_)
            | Self::NodeSelection
            | Self::ResizeDisabled
            | Self::SpreadLabel(_)
            | Self::Affinity => false,
            Self::Resource { beyond, .. } => !beyond,
            Self::QueueLimit { .. }
            | Self::Ports
            | Self::Spread { .. }
            | Self::AntiAffinity(_)
            | Self::OthersAntiAffinity(_) => true,
        }
    }
}

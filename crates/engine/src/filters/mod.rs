//! The filters that decide whether a pod fits on a node, one file for each kind. `fit` runs them in kube-scheduler's order, because the
//! first that fails says whether evicting pods could help.

pub(crate) mod inter_pod;
pub(crate) mod node;

use crate::ids::{QueueId, ResourceId, TopologyId};
use crate::shape::Taint;

/// Why a pod does not fit on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterFailure {
    /// The node is cordoned.
    Cordon,
    /// The pod does not tolerate this taint.
    Taint(Taint),
    /// The pod's node selector or node affinity excludes the node.
    NodeSelection,
    /// The node does not allow preemption for pods that are resized in place.
    ResizeDisabled,
    /// A host port of the pod is in use on the node.
    Ports,
    /// A queue would exceed its limit. docs/rules/yunikorn.md#y16, docs/rules/koordinator.md#q11
    QueueLimit {
        /// The queue.
        queue: QueueId,
        /// The first resource over the limit.
        resource: ResourceId,
        /// By how much the queue would exceed its limit.
        over: i64,
    },
    /// A resource is short.
    Resource {
        /// The first resource that is short.
        resource: ResourceId,
        /// How much is missing.
        short: i64,
        /// Whether the request for some resource exceeds the node's total.
        beyond: bool,
    },
    /// The node lacks the label of a topology spread constraint.
    SpreadLabel(TopologyId),
    /// The pod would violate a topology spread constraint.
    Spread {
        /// The label of the constraint.
        topology: TopologyId,
        /// The skew with the pod on this node.
        skew: i64,
        /// The allowed skew.
        max_skew: i64,
    },
    /// A required affinity term of the pod matches no pod.
    Affinity,
    /// A required anti-affinity term of the pod, with this topology key, matches a pod in the node's domain.
    AntiAffinity(TopologyId),
    /// A required anti-affinity term of another pod, with this topology key, matches the pod.
    OthersAntiAffinity(TopologyId),
}

impl FilterFailure {
    /// Whether an explanation should also look for resources that are short: a resource is the reason and others may be short too, or the
    /// filter that failed runs before that of the resources and eviction can resolve it.
    pub(crate) fn may_hide_shortages(self) -> bool {
        matches!(self, Self::Resource { .. } | Self::Ports)
    }

    /// docs/rules/kubernetes-pods.md#p7, docs/rules/kubernetes-pods.md#p8: whether evicting pods could make the pod fit.
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

//! The part of a pod that filters read. Pods made from one template share one shape, so that results for it are computed once.

use crate::ids::{KeyId, NamespaceId, TopologyId, ValueId};
use crate::labels::{Labels, Requirement, Selector};

/// The part of a pod that decides where it fits and which pods it constrains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The pod's namespace.
    pub namespace: NamespaceId,
    /// The pod's labels.
    pub labels: Labels,
    /// By resource: the request; 1 for [`crate::ResourceId::PODS`].
    pub requests: Vec<i64>,
    /// The node selector and the required node affinity.
    pub nodes: NodeSelection,
    /// The tolerations of taints.
    pub tolerations: Vec<TaintToleration>,
    /// The host ports.
    pub ports: Vec<HostPort>,
    /// The required affinity terms, which apply together.
    pub affinity: Vec<Term>,
    /// The required anti-affinity terms.
    pub anti_affinity: Vec<Term>,
    /// The required topology spread constraints.
    pub spread: Vec<Spread>,
}

/// `nodeSelector` and required node affinity: all of `all`, and one term of `any` if it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSelection {
    /// The requirements of `nodeSelector`.
    pub all: Vec<Requirement>,
    /// The terms of the affinity; `None` allows every node, an empty list none.
    pub any: Option<Vec<NodeTerm>>,
}

/// One term of a required node affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeTerm {
    /// The requirements on labels.
    pub labels: Vec<Requirement>,
    /// The requirements on the name.
    pub names: Vec<NameRequirement>,
}

/// A requirement on the node's name (`matchFields`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameRequirement {
    /// The name is one of these.
    In(Vec<ValueId>),
    /// The name is none of these.
    NotIn(Vec<ValueId>),
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// No new pods.
    NoSchedule,
    /// A preference, which filters ignore.
    PreferNoSchedule,
    /// No new pods, and running ones are evicted.
    NoExecute,
}

/// A taint of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// The key.
    pub key: KeyId,
    /// The value; a missing value is the id of the empty string.
    pub value: ValueId,
    /// The effect.
    pub effect: Effect,
}

/// A pod's toleration of taints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaintToleration {
    /// The key; `None` matches every key.
    pub key: Option<KeyId>,
    /// The value; `None` matches every value.
    pub value: Option<ValueId>,
    /// The effect; `None` matches every effect.
    pub effect: Option<Effect>,
}

impl TaintToleration {
    /// Whether the toleration matches the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.is_none_or(|key| key == taint.key)
            && self.value.is_none_or(|value| value == taint.value)
    }
}

/// A host port of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// The protocol's name.
    pub protocol: ValueId,
    /// The host IP; `None` is every address.
    pub address: Option<ValueId>,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Whether two pods with these ports cannot run on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_address = match (self.address, other.address) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        };
        self.protocol == other.protocol && self.port == other.port && same_address
    }
}

/// A required term of inter-pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The namespaces of the selected pods, sorted.
    pub namespaces: Vec<NamespaceId>,
    /// The selector of pods.
    pub selector: Selector,
    /// The topology whose domains are compared.
    pub topology: TopologyId,
}

impl Term {
    /// Whether the term selects pods of this shape.
    pub fn selects(&self, shape: &Shape) -> bool {
        self.namespaces.binary_search(&shape.namespace).is_ok() && self.selector.matches(&shape.labels)
    }
}

/// A topology spread constraint with `whenUnsatisfiable: DoNotSchedule`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// The topology whose domains are compared.
    pub topology: TopologyId,
    /// The allowed difference between the count of a domain and the lowest count.
    pub max_skew: i64,
    /// With fewer domains than this, the lowest count is 0.
    pub min_domains: usize,
    /// The selector of the counted pods, in the pod's own namespace.
    pub selector: Selector,
    /// Whether nodes that the pod's node selection excludes are ignored (`nodeAffinityPolicy: Honor`).
    pub honors_selection: bool,
    /// Whether nodes with a taint that the pod does not tolerate are ignored (`nodeTaintsPolicy: Honor`).
    pub honors_taints: bool,
}

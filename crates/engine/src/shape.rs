//! The part of a pod that filters read. Pods that are equal in it, such as most pods of one template, share one shape, so that a result for
//! a shape is computed once. Also the taints of nodes, which tolerations match. Strings are interned as ids.

use crate::ids::{KeyId, NamespaceId, TopologyId, ValueId};
use crate::labels::{Labels, Requirement, Selector};

/// The part of a pod that decides where it fits and which pods it constrains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The pod's namespace.
    pub namespace: NamespaceId,
    /// The pod's labels.
    pub labels: Labels,
    /// The requests, indexed by [`crate::ResourceId`]: thousandths of a cpu, whole units of other resources, 1 for `PODS`.
    pub requests: Vec<i64>,
    /// The node selector and the required node affinity.
    pub nodes: NodeSelection,
    /// The tolerations of taints.
    pub tolerations: Vec<TaintToleration>,
    /// The host ports.
    pub ports: Vec<HostPort>,
    /// The required pod affinity terms; another pod counts only if all terms select it.
    pub affinity: Vec<Term>,
    /// The required pod anti-affinity terms.
    pub anti_affinity: Vec<Term>,
    /// The required topology spread constraints.
    pub spread: Vec<Spread>,
}

/// `nodeSelector` and required node affinity: all of `all`, and at least one term of `any` if it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSelection {
    /// The requirements of `nodeSelector`.
    pub all: Vec<Requirement>,
    /// The terms of the affinity; `None` allows every node, an empty list allows no node.
    pub any: Option<Vec<NodeTerm>>,
}

/// One term of a required node affinity: all requirements must hold. A term without requirements matches no node.
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
    /// The node's name is one of these.
    In(Vec<ValueId>),
    /// The node's name is none of these.
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
    /// The value; `None` (operator `Exists`) matches every value.
    pub value: Option<ValueId>,
    /// The effect; `None` matches every effect.
    pub effect: Option<Effect>,
}

impl TaintToleration {
    /// Whether key, value and effect all match the taint.
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
    /// The host IP; `None` (unset or `0.0.0.0`) is every address.
    pub address: Option<ValueId>,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Whether two pods with these ports cannot run on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let addresses_overlap = match (self.address, other.address) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        };
        self.protocol == other.protocol && self.port == other.port && addresses_overlap
    }
}

/// A required term of inter-pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The namespaces of the selected pods, with `namespaceSelector` resolved. Sorted, since [`Term::selects`] does a binary search.
    pub namespaces: Vec<NamespaceId>,
    /// The selector of pods.
    pub selector: Selector,
    /// The topology key; nodes with the same value are one domain, in which a selected pod must, or must not, run.
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
    /// The topology key, whose domains are counted.
    pub topology: TopologyId,
    /// The allowed difference between the number of selected pods in a domain, including the new pod, and the lowest such number.
    pub max_skew: i64,
    /// With fewer domains than this, the lowest number is taken to be 0; 1 if unset.
    pub min_domains: usize,
    /// The selector of the counted pods, in the pod's own namespace.
    pub selector: Selector,
    /// Whether nodes that the pod's node selection excludes are ignored (`nodeAffinityPolicy: Honor`).
    pub honors_selection: bool,
    /// Whether nodes with a taint that the pod does not tolerate are ignored (`nodeTaintsPolicy: Honor`).
    pub honors_taints: bool,
}

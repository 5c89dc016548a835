//! What the filters read of a pod. Pods made from one template share one shape, so that whatever is worked out for it is
//! worked out once.

use crate::ids::{KeyId, NamespaceId, TopologyId, ValueId};
use crate::labels::{Labels, Requirement, Selector};

/// The part of a pod that decides where it fits and whom it disturbs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The pod's namespace.
    pub namespace: NamespaceId,
    /// The pod's labels.
    pub labels: Labels,
    /// What it asks of each resource; 1 of [`crate::ResourceId::PODS`].
    pub requests: Vec<i64>,
    /// The nodes it may run on.
    pub nodes: NodeSelection,
    /// The taints it bears.
    pub tolerations: Vec<TaintToleration>,
    /// The ports of the node it takes.
    pub ports: Vec<HostPort>,
    /// Pods it must run beside: all terms at once.
    pub affinity: Vec<Term>,
    /// Pods it must not run beside.
    pub anti_affinity: Vec<Term>,
    /// How evenly it must be spread.
    pub spread: Vec<Spread>,
}

/// `nodeSelector` and required node affinity: all of the first, and one of the second where there is a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSelection {
    /// Labels the node must have.
    pub all: Vec<Requirement>,
    /// Terms of which one must hold; `None` asks nothing, an empty list allows no node.
    pub any: Option<Vec<NodeTerm>>,
}

/// One term of a required node affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeTerm {
    /// Demands on the node's labels.
    pub labels: Vec<Requirement>,
    /// Demands on the node's name.
    pub names: Vec<NameRequirement>,
}

/// A demand on the node's own name (`matchFields`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameRequirement {
    /// The name is one of these.
    In(Vec<ValueId>),
    /// The name is none of these.
    NotIn(Vec<ValueId>),
}

/// What a taint does to pods that do not bear it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It keeps them out.
    NoSchedule,
    /// It would rather not have them.
    PreferNoSchedule,
    /// It keeps them out and drives out those that run.
    NoExecute,
}

/// A taint of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its key.
    pub key: KeyId,
    /// Its value; a missing one is the empty string's id.
    pub value: ValueId,
    /// What it does.
    pub effect: Effect,
}

/// A pod's toleration of taints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaintToleration {
    /// The taint's key; `None` is every key.
    pub key: Option<KeyId>,
    /// The taint's value; `None` is every value.
    pub value: Option<ValueId>,
    /// The taint's effect; `None` is every effect.
    pub effect: Option<Effect>,
}

impl TaintToleration {
    /// Whether it bears `taint`.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.is_none_or(|key| key == taint.key)
            && self.value.is_none_or(|value| value == taint.value)
    }
}

/// A port of the node that a pod takes for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// The protocol's name.
    pub protocol: ValueId,
    /// The address it listens on; `None` is every address.
    pub address: Option<ValueId>,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Whether both cannot be had on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_address = match (self.address, other.address) {
            (Some(one), Some(another)) => one == another,
            (None, _) | (_, None) => true,
        };
        self.protocol == other.protocol && self.port == other.port && same_address
    }
}

/// A required term of inter-pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The namespaces it looks into, sorted.
    pub namespaces: Vec<NamespaceId>,
    /// The pods it means.
    pub selector: Selector,
    /// What counts as one place.
    pub topology: TopologyId,
}

impl Term {
    /// Whether it means pods of this shape.
    pub fn selects(&self, shape: &Shape) -> bool {
        self.namespaces.binary_search(&shape.namespace).is_ok() && self.selector.matches(&shape.labels)
    }
}

/// A topology spread constraint with `whenUnsatisfiable: DoNotSchedule`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// What counts as one place.
    pub topology: TopologyId,
    /// How much fuller than the emptiest place a place may be.
    pub max_skew: i64,
    /// With fewer places than this, the emptiest counts as empty.
    pub min_domains: usize,
    /// The pods that are counted, within the pod's own namespace.
    pub selector: Selector,
    /// Whether nodes that the pod's node selection excludes are left out.
    pub honors_selection: bool,
    /// Whether nodes with a taint that the pod does not bear are left out.
    pub honors_taints: bool,
}

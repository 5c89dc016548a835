//! The reason why a pod does not fit on a node.

/// The reason why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterFailure {
    /// Too little of a resource is free; `pods` is one.
    #[error("too little {resource}")]
    Resource { resource: String },
    /// The request exceeds the node's total; never `pods`.
    #[error("the whole node has too little {resource}")]
    BeyondNode { resource: String },
    /// A taint or a cordon.
    #[error("the taint {key}")]
    Taint { key: String },
    /// nodeSelector or node affinity.
    #[error("nodeSelector or node affinity")]
    NodeSelection,
    /// A host port is in use.
    #[error("host port {port} is taken")]
    HostPort { port: i32 },
    /// An anti-affinity term of the pod matches a pod in place.
    #[error("its anti-affinity to {to}")]
    AntiAffinity { to: String },
    /// An anti-affinity term of a pod in place matches the pod.
    #[error("the anti-affinity of {pod}")]
    AntiAffinityOf { pod: String },
    /// The pod's affinity is not met.
    #[error("its affinity is not met")]
    Affinity,
    /// The node lacks the label of a spread constraint.
    #[error("the node lacks the label {key}")]
    SpreadLabel { key: String },
    /// The pod would violate a spread constraint.
    #[error("too uneven over {key}")]
    Spread { key: String },
}

impl FilterFailure {
    /// docs/rules/kubernetes-pods.md#p7, docs/rules/kubernetes-pods.md#p8: whether evicting pods could resolve it.
    pub fn is_resolvable(&self) -> bool {
        match self {
            Self::Resource { .. }
            | Self::HostPort { .. }
            | Self::AntiAffinity { .. }
            | Self::AntiAffinityOf { .. }
            | Self::Spread { .. } => true,
            Self::BeyondNode { .. }
            | Self::Taint { .. }
            | Self::NodeSelection
            | Self::Affinity
            | Self::SpreadLabel { .. } => false,
        }
    }
}

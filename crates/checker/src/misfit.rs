//! Why a pod does not fit on a node.

/// Why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Too little of a resource; `pods` is one.
    #[error("too little {resource}")]
    Resource { resource: String },
    /// More of a resource than the whole node has; too many pods are never too many for good.
    #[error("the whole node has too little {resource}")]
    NeverEnough { resource: String },
    /// A taint, or a cordon.
    #[error("the taint {key}")]
    Taint { key: String },
    /// nodeSelector or node affinity.
    #[error("nodeSelector or node affinity")]
    NotWanted,
    /// A host port is taken.
    #[error("host port {port} is taken")]
    HostPort { port: i32 },
    /// The pod's anti-affinity to a pod that stands.
    #[error("its anti-affinity to {to}")]
    AntiAffinity { to: String },
    /// The anti-affinity of a pod that stands.
    #[error("the anti-affinity of {pod}")]
    AntiAffinityOf { pod: String },
    /// The pod's affinity is not met.
    #[error("its affinity is not met")]
    Affinity,
    /// The node lacks the label of a spread constraint.
    #[error("the node lacks the label {key}")]
    SpreadLabel { key: String },
    /// Too uneven.
    #[error("too uneven over {key}")]
    Spread { key: String },
}

impl Misfit {
    /// Whether evicting pods could resolve it. (Rules 7 and 8 of the pods.)
    pub fn may_yield(&self) -> bool {
        match self {
            Self::Resource { .. }
            | Self::HostPort { .. }
            | Self::AntiAffinity { .. }
            | Self::AntiAffinityOf { .. }
            | Self::Spread { .. } => true,
            Self::NeverEnough { .. }
            | Self::Taint { .. }
            | Self::NotWanted
            | Self::Affinity
            | Self::SpreadLabel { .. } => false,
        }
    }
}

//! Why a pod does not fit on a node.

use std::fmt;

/// Why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Too little of a resource; `pods` is one.
    Resource { resource: String },
    /// More of a resource than the whole node has; too many pods are never too many for good.
    NeverEnough { resource: String },
    /// A taint, or a cordon.
    Taint { key: String },
    /// nodeSelector or node affinity.
    NotWanted,
    /// A host port is taken.
    HostPort { port: i32 },
    /// The pod's anti-affinity to a pod that stands.
    AntiAffinity { to: String },
    /// The anti-affinity of a pod that stands.
    AntiAffinityOf { pod: String },
    /// The pod's affinity is not met.
    Affinity,
    /// The node lacks the label of a spread constraint.
    SpreadLabel { key: String },
    /// Too uneven.
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

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { resource } => write!(f, "too little {resource}"),
            Self::NeverEnough { resource } => write!(f, "the whole node has too little {resource}"),
            Self::Taint { key } => write!(f, "the taint {key}"),
            Self::NotWanted => write!(f, "nodeSelector or node affinity"),
            Self::HostPort { port } => write!(f, "host port {port} is taken"),
            Self::AntiAffinity { to } => write!(f, "its anti-affinity to {to}"),
            Self::AntiAffinityOf { pod } => write!(f, "the anti-affinity of {pod}"),
            Self::Affinity => write!(f, "its affinity is not met"),
            Self::SpreadLabel { key } => write!(f, "the node lacks the label {key}"),
            Self::Spread { key } => write!(f, "too uneven over {key}"),
        }
    }
}

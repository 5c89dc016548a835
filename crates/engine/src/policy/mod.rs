//! The designs: what sets each apart from the others.

pub mod koordinator;
pub mod kubernetes;
pub mod kueue;
pub mod yunikorn;

use koordinator::Koordinator;
use kubernetes::Kubernetes;
use kueue::Kueue;

/// A design, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Pods and groups by priority.
    Kubernetes(Kubernetes),
    /// Queues by guarantee.
    YuniKorn,
    /// Workloads by quota.
    Kueue(Kueue),
    /// Jobs by elastic quota.
    Koordinator(Koordinator),
}

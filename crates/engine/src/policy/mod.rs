//! The designs: what sets each apart from the others.

pub mod koordinator;
pub mod kubernetes;
pub mod kueue;
pub mod yunikorn;

use crate::fit::{Preemptor, PreemptorId};
use crate::snapshot::Snapshot;
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

impl Policy {
    /// What the preemptor asks for; under a policy that places jobs whole, a pod asks with its job.
    pub fn preemptor(&self, snapshot: &Snapshot, preemptor: PreemptorId) -> Preemptor {
        let ask = Preemptor::new(snapshot, preemptor);
        match (self, preemptor) {
            (Self::Koordinator(_), PreemptorId::Pod(pod)) => ask.with_job(snapshot, pod),
            _ => ask,
        }
    }
}

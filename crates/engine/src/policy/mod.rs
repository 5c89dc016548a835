//! The policies, one folder each. A policy says which victims its laws allow and which plan is better; `decide` calls it. `laws`, `fit`,
//! `place` and `reprieve` are shared.

pub mod koordinator;
pub mod kubernetes;
pub mod kueue;
pub mod owner_kinds;
pub mod yunikorn;

use crate::fit::{Preemptor, PreemptorId};
use crate::snapshot::Snapshot;
use koordinator::Koordinator;
use kubernetes::Kubernetes;
use kueue::Kueue;
use yunikorn::YuniKorn;

/// A policy with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Pods and groups by priority, as kube-scheduler.
    Kubernetes(Kubernetes),
    /// Pods in queues with guarantees.
    YuniKorn(YuniKorn),
    /// Workloads with quota in cohorts.
    Kueue(Kueue),
    /// Jobs with elastic quota.
    Koordinator(Koordinator),
}

impl Policy {
    /// The preemptor as the policy decides it: under Koordinator a pod together with its job.
    pub fn preemptor(&self, snapshot: &Snapshot, preemptor: PreemptorId) -> Preemptor {
        let alone = Preemptor::new(snapshot, preemptor);
        match (self, preemptor) {
            (Self::Koordinator(_), PreemptorId::Pod(pod)) => alone.with_job(snapshot, pod),
            (Self::Kubernetes(policy), _) => Preemptor { search: policy.search, ..alone },
            _ => alone,
        }
    }
}

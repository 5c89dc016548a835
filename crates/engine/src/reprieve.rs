//! The search "take all, then reprieve": all candidates are removed and the preemptor is placed. Each candidate is then put back and stays
//! if every pod of the preemptor still fits where it was placed; a candidate that cannot stay is a victim. Policies Kubernetes and
//! Koordinator use it.

use crate::candidates::Candidate;
use crate::explanation::VictimReason;
use crate::filters::FilterFailure;
use crate::fit::{Placement, Preemptor};
use crate::ids::{NodeId, PodId, UnitId};
use crate::snapshot::Snapshot;
use crate::what_if::{Mark, WhatIf};

/// Receives the reason for each victim; `None` if no explanation is wanted, so that a decision does not pay for one.
pub(crate) type VictimReasons<'r> = Option<&'r mut Vec<VictimReason>>;

/// A placement that must stay valid while candidates are put back.
pub(crate) struct ReprieveTrial<'t, 's> {
    what_if: &'t mut WhatIf<'s>,
    preemptor: &'t Preemptor,
    placement: &'t Placement,
    /// Sorted by node.
    hosts: Vec<HostNode>,
    reasons: VictimReasons<'t>,
}

/// A node with pods of the preemptor.
struct HostNode {
    node: NodeId,
    /// By requested resource: the amount that may be in use on the node.
    limits: Vec<(usize, i64)>,
}

impl<'t, 's> ReprieveTrial<'t, 's> {
    /// Requires a what-if from which the candidates are removed and in which the placement is made.
    pub fn new(
        what_if: &'t mut WhatIf<'s>,
        preemptor: &'t Preemptor,
        placement: &'t Placement,
        reasons: VictimReasons<'t>,
    ) -> Self {
        let snapshot = what_if.snapshot();
        let mut nodes: Vec<NodeId> = placement.iter().map(|&(_, node)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut hosts: Vec<HostNode> = nodes.into_iter().map(|node| HostNode { node, limits: Vec::new() }).collect();
        for &(pod, node) in placement {
            let index = hosts.partition_point(|host| host.node < node);
            let limits = &mut hosts[index].limits;
            for (resource, &request) in snapshot.requests(snapshot.pod(pod).shape).iter().enumerate() {
                if request > 0 && limits.iter().all(|(known, _)| *known != resource) {
                    limits.push((resource, snapshot.allocatable(node)[resource]));
                }
            }
        }
        for host in &mut hosts {
            for nominee in preemptor.competing_nominees(snapshot, host.node) {
                let requests = snapshot.requests(snapshot.pod(nominee).shape);
                for (resource, limit) in &mut host.limits {
                    *limit -= requests[*resource];
                }
            }
        }
        Self { what_if, preemptor, placement, hosts, reasons }
    }

    /// The snapshot with the candidates that were put back.
    pub fn snapshot(&self) -> &Snapshot {
        self.what_if.snapshot()
    }

    /// The state to which [`Self::back_to`] returns.
    pub fn mark(&self) -> Mark {
        self.what_if.mark()
    }

    /// Undoes what was put back since a mark.
    pub fn back_to(&mut self, mark: Mark) {
        self.what_if.back_to(mark);
    }

    /// Removes a pod from its node, if it is there.
    pub fn take(&mut self, pod: PodId) {
        if self.what_if.snapshot().pod(pod).node.is_some() {
            self.what_if.remove(pod);
        }
    }

    /// Records the last reason also for the units of these pods that have none: they are evicted together.
    pub fn record_for_all(&mut self, pods: &[PodId]) {
        let snapshot = self.what_if.snapshot();
        let Some(reasons) = &mut self.reasons else { return };
        let Some(last) = reasons.last().cloned() else { return };
        for unit in pods.iter().filter_map(|&pod| snapshot.unit_of(pod)) {
            if reasons.iter().all(|reason| reason.unit != unit) {
                reasons.push(VictimReason { unit, ..last.clone() });
            }
        }
    }

    /// Records a reason other than a filter failure.
    pub fn record(&mut self, reason: impl FnOnce(&Snapshot) -> VictimReason) {
        if let Some(reasons) = &mut self.reasons {
            reasons.push(reason(self.what_if.snapshot()));
        }
    }

    /// docs/rules/kubernetes-pods.md#p15, docs/rules/kubernetes-groups.md#g9: puts candidates back, first those that violate a budget, each
    /// class by importance. Returns the candidates that cannot be put back.
    pub fn reprieve(&mut self, candidates: &[Candidate]) -> Vec<Candidate> {
        let (violating, others): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().partition(|candidate| candidate.violations > 0);
        violating.into_iter().chain(others).filter(|candidate| !self.put_back(candidate.unit)).collect()
    }

    /// Puts a unit back if the placement stays valid, and returns whether it did.
    pub fn put_back(&mut self, unit: UnitId) -> bool {
        let snapshot = self.what_if.snapshot();
        let has_constraints = !self.what_if.inter_pod().is_empty();
        let with_node = |&pod: &PodId| (pod, snapshot.bound_node(pod).expect("a candidate is bound"));
        let pods = snapshot.unit(unit).pods.iter().map(with_node);
        let pods: Vec<(PodId, NodeId)> =
            pods.filter(|&(_, node)| has_constraints || self.host(node).is_some()).collect();
        self.return_pods(unit, &pods)
    }

    fn return_pods(&mut self, unit: UnitId, pods: &[(PodId, NodeId)]) -> bool {
        let mark = self.what_if.mark();
        for &(pod, node) in pods {
            self.what_if.place(pod, node);
        }
        let fits = pods.iter().all(|&(_, node)| self.fits_within_limits(node))
            && (!self.may_disturb(pods) || self.first_failure(unit).is_none());
        if !fits {
            if self.reasons.is_some() {
                let reason = self.first_failure(unit);
                self.reasons.as_deref_mut().expect("reasons are recorded").extend(reason);
            }
            self.what_if.back_to(mark);
        }
        fits
    }

    /// Puts one pod back on its node if the placement stays valid, else records the reason for its unit.
    pub fn return_pod(&mut self, unit: UnitId, pod: PodId) -> bool {
        debug_assert!(self.what_if.snapshot().unit(unit).pods.contains(&pod));
        let node = self.what_if.snapshot().bound_node(pod).expect("a candidate is bound");
        self.return_pods(unit, &[(pod, node)])
    }

    fn host(&self, node: NodeId) -> Option<&HostNode> {
        self.hosts.binary_search_by_key(&node, |host| host.node).ok().map(|index| &self.hosts[index])
    }

    fn fits_within_limits(&self, node: NodeId) -> bool {
        let Some(host) = self.host(node) else { return true };
        let used = self.what_if.snapshot().used(node);
        host.limits.iter().all(|&(resource, limit)| used[resource] <= limit)
    }

    fn may_disturb(&self, pods: &[(PodId, NodeId)]) -> bool {
        let inter_pod = self.what_if.inter_pod();
        pods.iter().any(|&(pod, _)| inter_pod.may_disturb(self.what_if.snapshot().pod(pod).shape))
    }

    /// The first pod of the placement that does not fit on its node, with the earlier pods placed and the later ones absent, as the
    /// reason for taking the unit.
    fn first_failure(&mut self, unit: UnitId) -> Option<VictimReason> {
        let Self { what_if, preemptor, placement, reasons, .. } = self;
        let mark = what_if.mark();
        for &(pod, _) in *placement {
            what_if.remove(pod);
        }
        let first = placement.iter().find_map(|&(pod, node)| {
            let reason = preemptor.filter_failure(what_if, pod, node).map(|failure| {
                let lists = reasons.is_some() && matches!(failure, FilterFailure::Resource { .. });
                let shortages = if lists { preemptor.every_shortage(what_if, pod, node) } else { Vec::new() };
                VictimReason { unit, pod, node, failure, shortages }
            });
            what_if.place(pod, node);
            reason
        });
        what_if.back_to(mark);
        first
    }
}

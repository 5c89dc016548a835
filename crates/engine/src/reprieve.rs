//! Take all, then reprieve: every candidate is gone, the preemptor has its places; now one candidate after the other is put back
//! and stays if every pod of the preemptor still fits where it was placed. Who must go is a victim.

use crate::candidates::Candidate;
use crate::explanation::VictimReason;
use crate::filters::FilterFailure;
use crate::fit::{self, Placement, Preemptor};
use crate::ids::{NodeId, PodId, UnitId};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// Where reasons are kept, if somebody wants them: deciding does not pay for explaining.
pub(crate) type VictimReasons<'r> = Option<&'r mut Vec<VictimReason>>;

/// A placement that must stand while candidates come back.
pub(crate) struct ReprieveTrial<'t, 's> {
    what_if: &'t mut WhatIf<'s>,
    ask: &'t Preemptor,
    placement: &'t Placement,
    /// By node.
    hosts: Vec<HostNode>,
    reasons: VictimReasons<'t>,
}

/// A node with pods of the preemptor.
struct HostNode {
    node: NodeId,
    /// How much of each resource that they ask for may be in use there.
    limits: Vec<(usize, i64)>,
}

impl<'t, 's> ReprieveTrial<'t, 's> {
    /// The candidates are gone from the what-if, and the placement is made in it.
    pub fn new(
        what_if: &'t mut WhatIf<'s>,
        ask: &'t Preemptor,
        placement: &'t Placement,
        reasons: VictimReasons<'t>,
    ) -> Self {
        let snapshot = what_if.snapshot();
        let mut nodes: Vec<NodeId> = placement.iter().map(|&(_, node)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut hosts: Vec<HostNode> = nodes.into_iter().map(|node| HostNode { node, limits: Vec::new() }).collect();
        for &(pod, node) in placement {
            let at = hosts.partition_point(|host| host.node < node);
            let limits = &mut hosts[at].limits;
            for (resource, &request) in snapshot.requests(snapshot.pod(pod).shape).iter().enumerate() {
                if request > 0 && limits.iter().all(|(known, _)| *known != resource) {
                    limits.push((resource, snapshot.allocatable(node)[resource]));
                }
            }
        }
        for host in &mut hosts {
            for nominee in ask.competing_nominees(snapshot, host.node) {
                let requests = snapshot.requests(snapshot.pod(nominee).shape);
                for (resource, limit) in &mut host.limits {
                    *limit -= requests[*resource];
                }
            }
        }
        Self { what_if, ask, placement, hosts, reasons }
    }

    /// The cluster with those who came back.
    pub fn snapshot(&self) -> &Snapshot {
        self.what_if.snapshot()
    }

    /// Keeps a reason that is not about places, if somebody wants it.
    pub fn record(&mut self, reason: impl FnOnce(&Snapshot) -> VictimReason) {
        if let Some(reasons) = &mut self.reasons {
            reasons.push(reason(self.what_if.snapshot()));
        }
    }

    /// Those who cannot be put back: budget violations are tried first, then the others, each by importance. What can be put back
    /// is back in the what-if. (Rule 15 of the pods, rule 9 of the groups.)
    pub fn reprieve(&mut self, candidates: &[Candidate]) -> Vec<Candidate> {
        let (violating, others): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().partition(|candidate| candidate.violations > 0);
        violating.into_iter().chain(others).filter(|candidate| !self.put_back(candidate.unit)).collect()
    }

    /// Puts a unit back if the placement stands with it.
    pub fn put_back(&mut self, unit: UnitId) -> bool {
        let snapshot = self.what_if.snapshot();
        let elsewhere_matters = !self.what_if.inter_pod().is_empty();
        let homes = |&pod: &PodId| (pod, snapshot.bound_node(pod).expect("a candidate is bound"));
        let pods = snapshot.unit(unit).pods.iter().map(homes);
        let pods: Vec<(PodId, NodeId)> =
            pods.filter(|&(_, node)| elsewhere_matters || self.host(node).is_some()).collect();
        self.return_pods(unit, &pods)
    }

    fn return_pods(&mut self, unit: UnitId, pods: &[(PodId, NodeId)]) -> bool {
        let mark = self.what_if.mark();
        for &(pod, node) in pods {
            self.what_if.place(pod, node);
        }
        let stands = pods.iter().all(|&(_, node)| self.fits_within_limits(node))
            && (!self.may_disturb(pods) || self.placement_fits());
        if !stands {
            if let Some(reasons) = &mut self.reasons {
                let ask = self.ask;
                let reason = first_filter_failure(self.what_if, ask, self.placement, |what_if, pod, node, misfit| {
                    let shortages = fit::every_shortage(what_if, ask, pod, node, misfit);
                    VictimReason { unit, pod, node, failure: misfit, shortages }
                });
                reasons.extend(reason);
            }
            self.what_if.back_to(mark);
        }
        stands
    }

    /// Puts one pod back where it was if the placement stands with it; where it does not, its unit's reason is kept.
    pub fn return_pod(&mut self, unit: UnitId, pod: PodId) -> bool {
        debug_assert!(self.what_if.snapshot().unit(unit).pods.contains(&pod));
        let home = self.what_if.snapshot().bound_node(pod).expect("a candidate is bound");
        self.return_pods(unit, &[(pod, home)])
    }

    fn host(&self, node: NodeId) -> Option<&HostNode> {
        self.hosts.binary_search_by_key(&node, |host| host.node).ok().map(|at| &self.hosts[at])
    }

    fn fits_within_limits(&self, node: NodeId) -> bool {
        let Some(host) = self.host(node) else {
            return true;
        };
        let used = self.what_if.snapshot().used(node);
        host.limits.iter().all(|&(resource, limit)| used[resource] <= limit)
    }

    fn may_disturb(&self, pods: &[(PodId, NodeId)]) -> bool {
        let relations = self.what_if.inter_pod();
        pods.iter().any(|&(pod, _)| relations.may_disturb(self.what_if.snapshot().pod(pod).shape))
    }

    fn placement_fits(&mut self) -> bool {
        first_filter_failure(self.what_if, self.ask, self.placement, |_, _, _, _| ()).is_none()
    }
}

/// What `seen` returns for the first pod of the placement that does not fit on its node, with the earlier ones present and the later
/// ones absent.
fn first_filter_failure<T>(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    placement: &Placement,
    mut seen: impl FnMut(&mut WhatIf<'_>, PodId, NodeId, FilterFailure) -> T,
) -> Option<T> {
    let mark = what_if.mark();
    for &(pod, _) in placement {
        what_if.remove(pod);
    }
    let first = placement.iter().find_map(|&(pod, node)| {
        let found = fit::filter_failure(what_if, ask, pod, node).map(|misfit| seen(what_if, pod, node, misfit));
        what_if.place(pod, node);
        found
    });
    what_if.back_to(mark);
    first
}

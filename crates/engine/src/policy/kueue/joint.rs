//! Quota and nodes together: a plan stands only when every pod of the workload has its node.
//!
//! Who may be taken is the law of the quota alone. Whom that law would take first need not be where the pods could go; so the
//! search is made twice, once in the order of the law and once with those first who stand on the nodes where the pods would cost
//! least with everybody gone, and the cheaper set is taken. Where a flavor's quota can be had but not its nodes, the next flavor is
//! tried. (Kueue has no such placement.)

use std::cell::RefCell;

use crate::candidates::Candidate;
use crate::domains::Domain;
use crate::explanation::{DomainRefusal, NodeFilterFailure, Recorder, TooFew};
use crate::filters::node;
use crate::fit::{Placement, Preemptor, PreemptorId};
use crate::ids::{FlavorId, NodeId, PodId, WorkloadId};
use crate::laws::{Law, in_progress};
use crate::place::place;
use crate::policy::kueue::eligibility::Claim;
use crate::policy::kueue::flavors::{self, Assigned, FlavorTrace};
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{AdmissionPlan, Assignment, Kueue, PlacementMode, PreemptionReason, Search};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;
use crate::workloads::Fungibility;

/// A snapshot to try placements on, where nodes play a part. Pods of admitted workloads that have yet to be bound are placed in it,
/// as far as there is room, those first whose workload was admitted first: nobody else may count on those nodes.
pub(super) fn scratch_snapshot(snapshot: &Snapshot, policy: &Kueue) -> Option<Snapshot> {
    if policy.placement == PlacementMode::QuotaOnly {
        return None;
    }
    let mut ground = snapshot.clone();
    let mut admitted: Vec<WorkloadId> =
        snapshot.workload_ids().filter(|&id| snapshot.workload(id).admission.is_some()).collect();
    admitted.sort_by_key(|&id| {
        let workload = snapshot.workload(id);
        (workload.admission.as_ref().map(|admission| admission.since), workload.rank)
    });
    for id in admitted {
        let mut ask = Preemptor::new(&ground, PreemptorId::Workload(id));
        ask.members.retain(|&pod| ground.pod(pod).node.is_none());
        ask.needed = ask.members.len();
        if ask.members.is_empty() {
            continue;
        }
        let (nodes, shapes) = (ground.node_ids().collect::<Vec<_>>(), ask.shapes(&ground));
        let placement = place(&mut WhatIf::new(&mut ground, &shapes), &ask, &nodes, &[], &[]);
        for (pod, node) in placement {
            ground.move_to(pod, Some(node));
        }
    }
    Some(ground)
}

/// All pods of a workload that stand on a node.
pub(super) fn pods_of(ground: &Snapshot, workload: WorkloadId) -> Vec<PodId> {
    let pods = ground.workload(workload).pod_sets.iter().flat_map(|set| &set.pods).copied();
    pods.filter(|&pod| ground.pod(pod).node.is_some()).collect()
}

/// With so many pods of each set: what it asks for, where any flavor could do; and a fit, or victims, or neither. A fit in a later
/// flavor is better than victims in an earlier one, unless the queue stops at the first that it can have.
pub(super) fn attempt<R: Recorder>(
    search: &Search<'_>,
    ground: &mut Snapshot,
    counts: &[i64],
    mut trace: FlavorTrace<'_>,
    recorder: &mut R,
) -> (Option<Assignment>, Option<AdmissionPlan>) {
    let mut banned: Vec<(usize, FlavorId)> = Vec::new();
    let (mut first, mut best) = (None, None);
    let before = recorder.clone();
    loop {
        let search = Search { banned: &banned, ..*search };
        let Some(assigned) = flavors::assign(&search, &mut QuotaUsage::new(search.snapshot), counts, trace.take())
        else {
            break;
        };
        let asks = assigned.assignment.clone();
        let mut reasons = before.clone();
        let (found, set) = with_flavors(&search, ground, assigned, &mut reasons);
        if first.is_none() || best.is_none() && found.is_some() {
            *recorder = reasons;
        }
        first.get_or_insert_with(|| asks.clone());
        match found {
            Some(found) if found.victims.is_empty() && found.wait.is_none() => return (first, Some(found)),
            Some(found) => {
                best.get_or_insert(found);
                if search.rules().when_can_preempt == Fungibility::MayStopSearch {
                    break;
                }
            }
            None => {}
        }
        let tried = asks.pod_sets.get(set).into_iter().flat_map(|set| &set.resources);
        let more: Vec<(usize, FlavorId)> = tried.map(|resource| (set, resource.flavor)).collect();
        if more.is_empty() {
            break;
        }
        banned.extend(more);
    }
    (first, best)
}

/// With these flavors: a fit, or victims, or neither; and the pod set for which other flavors could help.
fn with_flavors<R: Recorder>(
    search: &Search<'_>,
    ground: &mut Snapshot,
    assigned: Assigned,
    recorder: &mut R,
) -> (Option<AdmissionPlan>, usize) {
    let Assigned { assignment, contested } = assigned;
    let nodes = Nodes::new(ground, search.preemptor, &assignment);
    let free = nodes.placement(&[]);
    if contested.is_empty() {
        let later = || nodes.in_progress().map(|(law, placement)| (Some(law), placement));
        if let Some((wait, placement)) = free.clone().map(|placement| (None, placement)).or_else(later) {
            return (Some(AdmissionPlan { assignment, victims: Vec::new(), placement, wait }), 0);
        }
    }
    // Where nodes are short, everything of the flavor is.
    let contested =
        if free.is_some() { contested } else { assignment.usage.iter().map(|(pair, _)| *pair).collect::<Vec<_>>() };
    let (mut quota, before) = (QuotaUsage::new(search.snapshot), recorder.clone());
    let lawful = lawful_candidates(&Search { contested: &contested, ..*search }, &mut quota, recorder);
    let target = match nodes.placement_among(&lawful) {
        Ok(target) => target,
        Err(unplaced) => {
            if R::RECORDS {
                let whole = Domain { part: None, nodes: nodes.all.clone() };
                recorder.domain(&whole, &Err(nodes.refusal(&lawful, unplaced)));
            }
            return (None, pod_set_of(search, unplaced));
        }
    };
    let guide = nodes.workloads_on(&target, search.snapshot.workload_ids().len());
    let has_room = |gone: &[(WorkloadId, PreemptionReason)]| {
        let gone: Vec<WorkloadId> = gone.iter().map(|(workload, _)| *workload).collect();
        nodes.placement(&gone).is_some()
    };
    let mut best: Option<Vec<(WorkloadId, PreemptionReason)>> = None;
    for (at, preferred) in [&[][..], &guide].into_iter().enumerate() {
        let search = Search { preferred, fits_on_nodes: Some(&has_room), ..*search };
        let mut reasons = before.clone();
        let victims = search.victims(&mut quota, &assignment.usage, &contested, &mut reasons);
        let cost = |victims: &[(WorkloadId, PreemptionReason)]| search.plan(victims).cost;
        let is_better = |victims: &Vec<_>| best.as_ref().is_none_or(|best| cost(victims) < cost(best));
        let better = victims.filter(is_better);
        if at == 0 || better.is_some() {
            *recorder = reasons;
        }
        best = better.or(best);
    }
    let found = best.map(|victims| {
        let gone: Vec<WorkloadId> = victims.iter().map(|(workload, _)| *workload).collect();
        let placement = nodes.placement(&gone).expect("the victims were found with it");
        AdmissionPlan { assignment, victims, placement, wait: None }
    });
    (found, 0)
}

/// The workloads that no law spares before anything is taken. Laws for preemptors that borrow and comparisons of shares are left to the
/// search.
fn lawful_candidates<R: Recorder>(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    recorder: &mut R,
) -> Vec<WorkloadId> {
    let ids = search.snapshot.workload_ids().filter(|&id| search.snapshot.workload(id).admission.is_some());
    let lawful: Vec<WorkloadId> = ids.filter(|&id| search.eligibility(quota, id, Claim::Reclaim).is_ok()).collect();
    search.report_spared_in_tree(quota, |_| Claim::Reclaim, recorder);
    for &id in &lawful {
        search.report_candidate(id, recorder);
    }
    lawful
}

fn pod_set_of(search: &Search<'_>, pod: Option<PodId>) -> usize {
    let has = |pod: PodId| search.workload.pod_sets.iter().position(|set| set.pods.contains(&pod));
    pod.and_then(has).unwrap_or_default()
}

/// The preemptor's pods, and the nodes that its flavors open to them.
pub(super) struct Nodes<'s> {
    what_if: RefCell<WhatIf<'s>>,
    ask: Preemptor,
    all: Vec<NodeId>,
    /// Whether there are fewer pods to place than were asked for: more than all nodes could hold are never made.
    short: bool,
}

impl<'s> Nodes<'s> {
    pub fn new(ground: &'s mut Snapshot, preemptor: WorkloadId, assignment: &Assignment) -> Self {
        let mut ask = Preemptor::new(ground, PreemptorId::Workload(preemptor));
        ask.members.clear();
        let mut short = false;
        for (set, given) in ground.workload(preemptor).pod_sets.iter().zip(&assignment.pod_sets) {
            let count = usize::try_from(given.count).unwrap_or_default();
            short |= set.pods.len() < count;
            let flavors: Vec<FlavorId> = given.resources.iter().map(|resource| resource.flavor).collect();
            for &pod in set.pods.iter().take(count) {
                ask.members.push(pod);
                let shape = ground.pod(pod).shape;
                ask.open.entry(shape).or_insert_with(|| open(ground, pod, &flavors));
            }
        }
        ask.needed = ask.members.len();
        let all = ground.node_ids().collect();
        let shapes = ask.shapes(ground);
        Self { what_if: RefCell::new(WhatIf::new(ground, &shapes)), ask, all, short }
    }

    /// Where its pods go with these gone; `None` where one of them finds no node.
    pub fn placement(&self, gone: &[WorkloadId]) -> Option<Placement> {
        self.with_gone(gone, |what_if| self.place(what_if, &[]).ok())
    }

    /// Where they would go if all of these might be taken, each where that costs least; else the first that finds no node.
    fn placement_among(&self, candidates: &[WorkloadId]) -> Result<Placement, Option<PodId>> {
        self.with_gone(candidates, |what_if| {
            let units = candidates.iter().filter_map(|&id| what_if.snapshot().unit_of_workload(id));
            let gone: Vec<Candidate> = units.map(|unit| Candidate { unit, violations: 0 }).collect();
            self.place(what_if, &gone)
        })
    }

    fn place(&self, what_if: &mut WhatIf<'_>, gone: &[Candidate]) -> Result<Placement, Option<PodId>> {
        let placement = place(what_if, &self.ask, &self.all, gone, &[]);
        if placement.len() == self.ask.members.len() && !self.short {
            return Ok(placement);
        }
        let is_placed = |pod: &PodId| placement.iter().any(|(placed, _)| placed == pod);
        Err(self.ask.members.iter().copied().find(|pod| !is_placed(pod)))
    }

    fn with_gone<T>(&self, gone: &[WorkloadId], look: impl FnOnce(&mut WhatIf<'_>) -> T) -> T {
        let mut what_if = self.what_if.borrow_mut();
        let mark = what_if.mark();
        for &workload in gone {
            for pod in pods_of(what_if.snapshot(), workload) {
                what_if.remove(pod);
            }
        }
        let seen = look(&mut what_if);
        what_if.back_to(mark);
        seen
    }

    /// Whether it fits once those pods have left that are leaving already, and where it goes then.
    fn in_progress(&self) -> Option<(Law, Placement)> {
        let mut what_if = self.what_if.borrow_mut();
        let mark = what_if.mark();
        let pods: Vec<PodId> = (0..what_if.snapshot().n_pods()).map(PodId::new).collect();
        let leaves = |pod: &PodId| {
            let pod = what_if.snapshot().pod(*pod);
            pod.node.is_some() && pod.terminating.is_some()
        };
        let leaving: Vec<PodId> = pods.into_iter().filter(leaves).collect();
        for &pod in &leaving {
            what_if.remove(pod);
        }
        let placement = self.place(&mut what_if, &[]);
        what_if.back_to(mark);
        let placement = placement.ok().filter(|_| !leaving.is_empty())?;
        let snapshot = what_if.snapshot();
        let in_the_way = |pod: &PodId| placement.iter().any(|(_, node)| snapshot.bound_node(*pod) == Some(*node));
        let leaving: Vec<PodId> = leaving.into_iter().filter(in_the_way).collect();
        Some((in_progress::law(snapshot, leaving)?, placement))
    }

    /// By workload: whether it has a pod on a node of the placement.
    fn workloads_on(&self, placement: &Placement, n_workloads: usize) -> Vec<bool> {
        let what_if = self.what_if.borrow();
        let mut standing = vec![false; n_workloads];
        for pod in placement.iter().flat_map(|(_, node)| what_if.snapshot().pods_on(*node)) {
            let unit = what_if.snapshot().unit_of(pod).map(|unit| what_if.snapshot().unit(unit));
            if let Some(workload) = unit.and_then(|unit| unit.workload) {
                standing[workload.index()] = true;
            }
        }
        standing
    }

    /// What each node lacks for the first pod that finds none.
    fn refusal(&self, gone: &[WorkloadId], unplaced: Option<PodId>) -> DomainRefusal {
        self.with_gone(gone, |what_if| {
            let placed = place(what_if, &self.ask, &self.all, &[], &[]).len();
            let misfits = unplaced.map(|pod| NodeFilterFailure::on_each(what_if, &self.ask, pod, &self.all));
            DomainRefusal::TooFewPlaced(TooFew { placed, unplaced, failures: misfits.unwrap_or_default() })
        })
    }
}

/// By node: whether a pod may go there that gets these flavors, which bring their labels and tolerations.
fn open(snapshot: &Snapshot, pod: PodId, flavors: &[FlavorId]) -> Vec<bool> {
    let known = &snapshot.quota_rules().flavors;
    let mut shape = snapshot.shape(snapshot.pod(pod).shape).clone();
    for flavor in flavors {
        shape.tolerations.extend(known[flavor.index()].tolerations.iter().cloned());
    }
    let has_labels = |node: NodeId| flavors.iter().all(|flavor| known[flavor.index()].nodes[node.index()]);
    snapshot.node_ids().map(|node| has_labels(node) && node::filter_failure(snapshot, &shape, node).is_none()).collect()
}

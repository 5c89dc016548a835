//! Joint placement: a plan is valid only if every pod of the workload has a node. Kueue itself has no such placement.
//!
//! The laws of quota decide which workloads may be taken. The first candidates in their order need not be on nodes that the pods could use;
//! so the search runs twice, once in that order and once with the workloads first that are on the cheapest nodes, and the cheaper set wins.
//! If a flavor has enough quota but not enough nodes, the next flavor is tried. docs/rules/kueue.md#k23: a workload waits if it fits once
//! terminating pods are removed.

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
use crate::policy::kueue::{AdmissionPlan, Assignment, Kueue, PlacementMode, Search, Victim};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;
use crate::workloads::Fungibility;

/// A copy of the snapshot for trying placements; `None` without joint placement. Unbound pods of admitted workloads are placed in it as far
/// as possible, in the order of admission, because no other workload may use that room.
pub(super) fn scratch_snapshot(snapshot: &Snapshot, policy: &Kueue) -> Option<Snapshot> {
    if policy.placement == PlacementMode::QuotaOnly {
        return None;
    }
    let mut scratch = snapshot.clone();
    let mut admitted: Vec<WorkloadId> =
        snapshot.workload_ids().filter(|&id| snapshot.workload(id).admission.is_some()).collect();
    admitted.sort_by_key(|&id| {
        let workload = snapshot.workload(id);
        (workload.admission.as_ref().map(|admission| admission.since), workload.rank)
    });
    for id in admitted {
        let mut preemptor = Preemptor::new(&scratch, PreemptorId::Workload(id));
        preemptor.members.retain(|&pod| scratch.pod(pod).node.is_none());
        preemptor.needed = preemptor.members.len();
        if preemptor.members.is_empty() {
            continue;
        }
        let (nodes, shapes) = (scratch.node_ids().collect::<Vec<_>>(), preemptor.shapes(&scratch));
        let placement = place(&mut WhatIf::new(&mut scratch, &shapes), &preemptor, &nodes, &[], &[]);
        for (pod, node) in placement {
            scratch.move_to(pod, Some(node));
        }
    }
    Some(scratch)
}

/// The pods of a workload that are on a node.
pub(super) fn pods_of(scratch: &Snapshot, workload: WorkloadId) -> Vec<PodId> {
    let pods = scratch.workload(workload).pod_sets.iter().flat_map(|set| &set.pods).copied();
    pods.filter(|&pod| scratch.pod(pod).node.is_some()).collect()
}

/// Tries to admit these numbers of pods, one for each pod set. Returns the quota at the first usable flavors, and a plan if one exists. A
/// plan without victims in a later flavor is better than one with victims in an earlier flavor, unless the queue stops at the first usable
/// flavor.
pub(super) fn attempt<R: Recorder>(
    search: &Search<'_>,
    scratch: &mut Snapshot,
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
        let requested = assigned.assignment.clone();
        let mut reasons = before.clone();
        let (found, set) = with_flavors(&search, scratch, assigned, &mut reasons);
        if first.is_none() || best.is_none() && found.is_some() {
            *recorder = reasons;
        }
        first.get_or_insert_with(|| requested.clone());
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
        let tried = requested.pod_sets.get(set).into_iter().flat_map(|set| &set.resources);
        let more: Vec<(usize, FlavorId)> = tried.map(|resource| (set, resource.flavor)).collect();
        if more.is_empty() {
            break;
        }
        banned.extend(more);
    }
    (first, best)
}

/// Tries these flavors. Returns a plan if one exists, and the pod set for which other flavors could help.
fn with_flavors<R: Recorder>(
    search: &Search<'_>,
    scratch: &mut Snapshot,
    assigned: Assigned,
    recorder: &mut R,
) -> (Option<AdmissionPlan>, usize) {
    let Assigned { assignment, contested } = assigned;
    let nodes = Nodes::new(scratch, search.preemptor, &assignment);
    let free = nodes.placement(&[]);
    if contested.is_empty() {
        let later = || nodes.in_progress().map(|(law, placement)| (Some(law), placement));
        if let Some((wait, placement)) = free.clone().map(|placement| (None, placement)).or_else(later) {
            return (Some(AdmissionPlan { assignment, victims: Vec::new(), placement, wait }), 0);
        }
    }
    // If the nodes are the constraint, all quota of the flavors counts as contested.
    let contested =
        if free.is_some() { contested } else { assignment.usage.iter().map(|(pair, _)| *pair).collect::<Vec<_>>() };
    let (mut quota, before) = (QuotaUsage::new(search.snapshot), recorder.clone());
    let lawful = lawful_workloads(&Search { contested: &contested, ..*search }, &mut quota, recorder);
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
    let preferred_workloads = nodes.workloads_on(&target, search.snapshot.workload_ids().len());
    let fits_on_nodes = |victims: &[Victim]| {
        let removed: Vec<WorkloadId> = victims.iter().map(|(workload, _)| *workload).collect();
        nodes.placement(&removed).is_some()
    };
    let mut best: Option<Vec<Victim>> = None;
    for (pass, preferred) in [&[][..], &preferred_workloads].into_iter().enumerate() {
        let search = Search { preferred, fits_on_nodes: Some(&fits_on_nodes), ..*search };
        let mut reasons = before.clone();
        let victims = search.victims(&mut quota, &assignment.usage, &contested, &mut reasons);
        let cost = |victims: &[Victim]| search.plan(victims).cost;
        let is_better = |victims: &Vec<_>| best.as_ref().is_none_or(|best| cost(victims) < cost(best));
        let better = victims.filter(is_better);
        if pass == 0 || better.is_some() {
            *recorder = reasons;
        }
        best = better.or(best);
    }
    let found = best.map(|victims| {
        let removed: Vec<WorkloadId> = victims.iter().map(|(workload, _)| *workload).collect();
        let placement = nodes.placement(&removed).expect("the victims were found with it");
        AdmissionPlan { assignment, victims, placement, wait: None }
    });
    (found, 0)
}

/// The workloads that no law spares before any is taken. Laws about borrowing and shares are left to the search.
fn lawful_workloads<R: Recorder>(search: &Search<'_>, quota: &mut QuotaUsage<'_>, recorder: &mut R) -> Vec<WorkloadId> {
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

/// The preemptor's pods, and the nodes that their flavors allow.
pub(super) struct Nodes<'s> {
    what_if: RefCell<WhatIf<'s>>,
    preemptor: Preemptor,
    all: Vec<NodeId>,
    /// Whether fewer pods exist to place than are requested: the loader creates no more than all nodes could hold.
    short: bool,
}

impl<'s> Nodes<'s> {
    pub fn new(scratch: &'s mut Snapshot, workload: WorkloadId, assignment: &Assignment) -> Self {
        let mut preemptor = Preemptor::new(scratch, PreemptorId::Workload(workload));
        preemptor.members.clear();
        let mut short = false;
        for (set, given) in scratch.workload(workload).pod_sets.iter().zip(&assignment.pod_sets) {
            let count = usize::try_from(given.count).unwrap_or_default();
            short |= set.pods.len() < count;
            let flavors: Vec<FlavorId> = given.resources.iter().map(|resource| resource.flavor).collect();
            for &pod in set.pods.iter().take(count) {
                preemptor.members.push(pod);
                let shape = scratch.pod(pod).shape;
                preemptor.open.entry(shape).or_insert_with(|| open(scratch, pod, &flavors));
            }
        }
        preemptor.needed = preemptor.members.len();
        let all = scratch.node_ids().collect();
        let shapes = preemptor.shapes(scratch);
        Self { what_if: RefCell::new(WhatIf::new(scratch, &shapes)), preemptor, all, short }
    }

    /// The placement without these workloads; `None` if one pod finds no node.
    pub fn placement(&self, removed: &[WorkloadId]) -> Option<Placement> {
        self.without(removed, |what_if| self.place(what_if, &[]).ok())
    }

    /// The cheapest placement if all candidates may be taken, else the first pod that finds no node.
    fn placement_among(&self, candidates: &[WorkloadId]) -> Result<Placement, Option<PodId>> {
        self.without(candidates, |what_if| {
            let units = candidates.iter().filter_map(|&id| what_if.snapshot().unit_of_workload(id));
            let removed: Vec<Candidate> = units.map(|unit| Candidate { unit, violations: 0 }).collect();
            self.place(what_if, &removed)
        })
    }

    fn place(&self, what_if: &mut WhatIf<'_>, removed: &[Candidate]) -> Result<Placement, Option<PodId>> {
        let placement = place(what_if, &self.preemptor, &self.all, removed, &[]);
        if placement.len() == self.preemptor.members.len() && !self.short {
            return Ok(placement);
        }
        let is_placed = |pod: &PodId| placement.iter().any(|(placed, _)| placed == pod);
        Err(self.preemptor.members.iter().copied().find(|pod| !is_placed(pod)))
    }

    fn without<T>(&self, removed: &[WorkloadId], look: impl FnOnce(&mut WhatIf<'_>) -> T) -> T {
        let mut what_if = self.what_if.borrow_mut();
        let mark = what_if.mark();
        for &workload in removed {
            for pod in pods_of(what_if.snapshot(), workload) {
                what_if.remove(pod);
            }
        }
        let result = look(&mut what_if);
        what_if.back_to(mark);
        result
    }

    /// The law and the placement if the pods fit once the terminating pods are removed.
    fn in_progress(&self) -> Option<(Law, Placement)> {
        let mut what_if = self.what_if.borrow_mut();
        let mark = what_if.mark();
        let pods: Vec<PodId> = (0..what_if.snapshot().n_pods()).map(PodId::new).collect();
        let is_terminating = |pod: &PodId| {
            let pod = what_if.snapshot().pod(*pod);
            pod.node.is_some() && pod.terminating.is_some()
        };
        let terminating: Vec<PodId> = pods.into_iter().filter(is_terminating).collect();
        for &pod in &terminating {
            what_if.remove(pod);
        }
        let placement = self.place(&mut what_if, &[]);
        what_if.back_to(mark);
        let placement = placement.ok().filter(|_| !terminating.is_empty())?;
        let snapshot = what_if.snapshot();
        let in_the_way = |pod: &PodId| placement.iter().any(|(_, node)| snapshot.bound_node(*pod) == Some(*node));
        let terminating: Vec<PodId> = terminating.into_iter().filter(in_the_way).collect();
        Some((in_progress::law(snapshot, terminating)?, placement))
    }

    /// By workload: whether it has a pod on a node of the placement.
    fn workloads_on(&self, placement: &Placement, n_workloads: usize) -> Vec<bool> {
        let what_if = self.what_if.borrow();
        let mut has_pod = vec![false; n_workloads];
        for pod in placement.iter().flat_map(|(_, node)| what_if.snapshot().pods_on(*node)) {
            let unit = what_if.snapshot().unit_of(pod).map(|unit| what_if.snapshot().unit(unit));
            if let Some(workload) = unit.and_then(|unit| unit.workload) {
                has_pod[workload.index()] = true;
            }
        }
        has_pod
    }

    /// What each node lacks for the first pod that finds none.
    fn refusal(&self, removed: &[WorkloadId], unplaced: Option<PodId>) -> DomainRefusal {
        self.without(removed, |what_if| {
            let placed = place(what_if, &self.preemptor, &self.all, &[], &[]).len();
            let failures = unplaced.map(|pod| NodeFilterFailure::on_each(what_if, &self.preemptor, pod, &self.all));
            DomainRefusal::TooFewPlaced(TooFew { placed, unplaced, failures: failures.unwrap_or_default() })
        })
    }
}

/// By node: whether it accepts a pod with these flavors, which add labels and tolerations.
fn open(snapshot: &Snapshot, pod: PodId, flavors: &[FlavorId]) -> Vec<bool> {
    let known = &snapshot.quota_rules().flavors;
    let mut shape = snapshot.shape(snapshot.pod(pod).shape).clone();
    for flavor in flavors {
        shape.tolerations.extend(known[flavor.index()].tolerations.iter().cloned());
    }
    let has_labels = |node: NodeId| flavors.iter().all(|flavor| known[flavor.index()].nodes[node.index()]);
    snapshot.node_ids().map(|node| has_labels(node) && node::filter_failure(snapshot, &shape, node).is_none()).collect()
}

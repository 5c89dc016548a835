//! The Kubernetes policy: the preemption of kube-scheduler for pods (`pod`) and groups (`group`), with the extensions of the workload-aware
//! design.

mod cascades;
mod group;
mod group_mismatch;
mod node_cost;
pub(crate) mod pod;
mod settings;

use crate::decision::{Outcome, Plan};
use crate::decisive::{self, Closed};
use crate::domains::{Domain, domains};
use crate::equal_cost::mark_equal_costs;
use crate::explanation::{Decisive, Recorder};
use crate::fit::{Placement, Preemptor, PreemptorId};
use crate::gate::{preemption_in_progress, preemption_in_progress_as_kube_scheduler};
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::{Law, never};
use crate::nominations::{placement_stands, preempted_pods};
use crate::place::{NotPlaced, place_enough};
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;

pub use settings::{Cascades, Kubernetes, PriorityMismatch, Search, StaleNominations};

/// Decides for a pod or a group.
pub(crate) fn decide<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Kubernetes,
    preemptor: &Preemptor,
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    if let Some(law) = group_mismatch::refuses(snapshot, policy, preemptor) {
        if R::RECORDS {
            decisive::report_gang(snapshot, preemptor, recorder);
        }
        return Outcome::Unschedulable(Some(law));
    }
    let domains = domains(snapshot, preemptor);
    let mut what_if = preemptor.what_if(snapshot);
    let outcome = take_all_then_reprieve(&mut what_if, policy, preemptor, &domains, now, recorder);
    report_decisive(&mut what_if, preemptor, &domains, &outcome, recorder);
    outcome
}

/// Places a pod of an admitted Kueue workload. Victims were chosen with the workload, so the pod gets a node with room or waits.
pub(crate) fn place_only<R: Recorder>(snapshot: &mut Snapshot, preemptor: &Preemptor, recorder: &mut R) -> Outcome {
    let domains = domains(snapshot, preemptor);
    let mut what_if = preemptor.what_if(snapshot);
    let placement = fits(&mut what_if, preemptor, &domains);
    let outcome = placement.map_or(Outcome::Unschedulable(None), Outcome::Schedule);
    report_decisive(&mut what_if, preemptor, &domains, &outcome, recorder);
    outcome
}

fn take_all_then_reprieve<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    preemptor: &Preemptor,
    domains: &[Domain],
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    match fits(what_if, preemptor, domains) {
        Ok(placement) => return Outcome::Schedule(placement),
        Err(NotPlaced::TooFew) => {}
        Err(NotPlaced::StepLimit) => return Outcome::Unschedulable(Some(Law::SearchLimit)),
    }
    if let Some(law) = never::refuses(what_if.snapshot(), preemptor) {
        return Outcome::Unschedulable(Some(law));
    }
    let in_progress = match policy.stale_nominations {
        StaleNominations::Replan => preemption_in_progress(what_if, preemptor),
        StaleNominations::Wait => preemption_in_progress_as_kube_scheduler(what_if, preemptor),
    };
    let preempted = in_progress.as_ref().map(|law| preempted_pods(what_if.snapshot(), law)).unwrap_or_default();
    if let Some(law) = &in_progress {
        // Terminating pods free no room if the preemptor may not use their nodes or has too few members.
        let is_possible = !domains.is_empty() && preemptor.members.len() >= preemptor.needed;
        match policy.stale_nominations {
            StaleNominations::Replan if placement_stands(what_if, preemptor, domains, &preempted) => {
                return Outcome::Wait(law.clone());
            }
            StaleNominations::Replan => {}
            StaleNominations::Wait if is_possible => return Outcome::Wait(law.clone()),
            StaleNominations::Wait => return Outcome::Unschedulable(None),
        }
    }
    let plan = match preemptor.id {
        PreemptorId::Pod(_) => pod::best(what_if, policy, preemptor, now, recorder).ok_or(NotPlaced::TooFew),
        PreemptorId::Group(_) | PreemptorId::Workload(_) => {
            group::best(what_if, policy, preemptor, domains, now, recorder)
        }
    };
    if let (Ok(plan), Some(law)) = (&plan, in_progress)
        && is_freed_by(what_if.snapshot(), plan, &preempted)
    {
        return Outcome::Wait(law);
    }
    if let Some(plan) = plan.as_ref().ok().filter(|_| R::RECORDS) {
        recorder.chosen(plan, |other| cascades::difference(other, plan));
        if !cascades::may_return(what_if.snapshot(), policy, plan) {
            mark_equal_costs(what_if, preemptor, plan, recorder, |victim_node, node| {
                stays_in_one_domain(plan, domains, victim_node, node)
            });
        }
    }
    match plan {
        Ok(plan) => Outcome::Preempt(plan),
        Err(NotPlaced::TooFew) => Outcome::Unschedulable(None),
        Err(NotPlaced::StepLimit) => Outcome::Unschedulable(Some(Law::SearchLimit)),
    }
}

/// Whether every victim of the plan is among these pods, which were preempted for the preemptor and still terminate.
fn is_freed_by(snapshot: &Snapshot, plan: &Plan, preempted: &[PodId]) -> bool {
    let victims = || plan.victims.iter().flat_map(|&unit| &snapshot.unit(unit).pods);
    victims().all(|pod| preempted.contains(pod))
}

/// Whether the whole placement is still in one domain if the pods on `from` are placed on `to` instead.
fn stays_in_one_domain(plan: &Plan, domains: &[Domain], from: NodeId, to: NodeId) -> bool {
    let others = plan.placement.iter().map(|&(_, node)| node).filter(|&node| node != from);
    let nodes: Vec<NodeId> = others.chain([to]).collect();
    domains.iter().any(|domain| nodes.iter().all(|node| domain.nodes.binary_search(node).is_ok()))
}

/// The placement without victims; of several domains the one for most members.
fn fits(what_if: &mut WhatIf<'_>, preemptor: &Preemptor, domains: &[Domain]) -> Result<Placement, NotPlaced> {
    match preemptor.id {
        PreemptorId::Pod(pod) => {
            pod::free_node(what_if, preemptor, pod).map(|node| vec![(pod, node)]).ok_or(NotPlaced::TooFew)
        }
        PreemptorId::Group(_) | PreemptorId::Workload(_) => {
            let mut best = Err(NotPlaced::TooFew);
            for domain in domains {
                let mark = what_if.mark();
                let placed = place_enough(what_if, preemptor, &domain.nodes, &[], &[]);
                what_if.back_to(mark);
                best = match (best, placed) {
                    (Ok(best), Ok(placed)) if placed.len() <= best.len() => Ok(best),
                    (_, Ok(placed)) | (Ok(placed), Err(_)) => Ok(placed),
                    (Err(NotPlaced::StepLimit), Err(_)) | (Err(_), Err(NotPlaced::StepLimit)) => {
                        Err(NotPlaced::StepLimit)
                    }
                    (Err(NotPlaced::TooFew), Err(NotPlaced::TooFew)) => Err(NotPlaced::TooFew),
                };
            }
            best
        }
    }
}

/// Reports what the outcome may depend on. A plan for one node depends on no other node, and a plan for one domain on no other domain.
fn report_decisive<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    preemptor: &Preemptor,
    domains: &[Domain],
    outcome: &Outcome,
    recorder: &mut R,
) {
    let Some(mut closed) = Closed::new::<R>(what_if, preemptor) else { return };
    let Some(nested) = recorder.nested_nodes() else { return };
    let snapshot = what_if.snapshot();
    let domains = match preemptor.id {
        PreemptorId::Pod(_) => &[],
        PreemptorId::Group(_) | PreemptorId::Workload(_) => {
            // A candidate anywhere in a domain uses up disruption budgets of the others.
            closed.open_nodes_of(snapshot, &recorder.candidates());
            domains
        }
    };
    let nodes: Vec<NodeId> = match (outcome, preemptor.id) {
        (Outcome::Preempt(plan), _) => {
            let placed = plan.placement.iter().map(|&(_, node)| node);
            placed.chain(decisive::nominated(snapshot, preemptor)).chain(nested).collect()
        }
        (Outcome::Schedule(placement), PreemptorId::Pod(pod)) => {
            // The pod gets its nominated node, or else the first by name: the nodes before it had no room.
            let (chosen, nominated) = (placement[0].1, snapshot.pod(pod).nominated);
            let before = closed.others(snapshot, preemptor).filter(|&node| node < chosen || Some(node) == nominated);
            before.filter(|&node| node != chosen && nominated != Some(chosen)).collect()
        }
        _ => closed.others(snapshot, preemptor).collect(),
    };
    let nodes = nodes.into_iter();
    let is_needed = |pod: &Pod| decisive::is_of_gang(snapshot, preemptor, pod);
    recorder.decisive(Decisive::with(snapshot, nodes, is_needed, domains, &closed));
}

//! The pipeline of a decision: fit, gate, candidates, domains, reprieve, choose.

use crate::choose::cheaper;
use crate::decision::{Cost, Decision, Outcome, Plan};
use crate::domains::{Domain, domains};
use crate::explanation::{Explanation, ExplanationRecorder, NoRecorder, Recorder};
use crate::fit::{self, Ask, Placement, Preemptor};
use crate::gate::gate;
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::{Law, disagreement, obstacle};
use crate::one_domain;
use crate::one_node::{self, Arithmetic};
use crate::place::place;
use crate::policy::kubernetes::Kubernetes;
use crate::policy::{Policy, koordinator, kueue, yunikorn};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;

/// Decides for one preemptor. Reads its arguments and nothing else, and leaves `snapshot` as it found it.
pub fn decide(snapshot: &mut Snapshot, policy: &Policy, preemptor: Preemptor, now: Timestamp) -> Decision {
    let ask = policy.ask(snapshot, preemptor);
    decide_recording(snapshot, policy, &ask, now, &mut NoRecorder)
}

/// Decides as [`decide`] does, and returns the reasons that the search found on its way.
pub fn decide_and_explain(
    snapshot: &mut Snapshot,
    policy: &Policy,
    preemptor: Preemptor,
    now: Timestamp,
) -> (Decision, Explanation) {
    let ask = policy.ask(snapshot, preemptor);
    let mut recorder = ExplanationRecorder::new(snapshot);
    let decision = decide_recording(snapshot, policy, &ask, now, &mut recorder);
    let explanation = match policy {
        Policy::Kueue(_) => recorder.finish(snapshot, &ask, &decision.outcome),
        _ => crate::explain::explain(snapshot, policy, preemptor, now, &decision.outcome),
    };
    (decision, explanation)
}

fn decide_recording<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Policy,
    ask: &Ask,
    now: Timestamp,
    recorder: &mut R,
) -> Decision {
    let preemptor = ask.preemptor;
    let of_gang = || match (policy, preemptor) {
        (Policy::Kubernetes(_), Preemptor::Pod(pod)) => obstacle::refuses_gang_of(snapshot, pod),
        _ => None,
    };
    if let Some(law) = obstacle::refuses(snapshot, ask).or_else(of_gang) {
        return Outcome::Unschedulable(Some(law)).into();
    }
    match (policy, preemptor) {
        (Policy::Kubernetes(policy), Preemptor::Pod(_) | Preemptor::Group(_)) => {
            take_all_then_reprieve(snapshot, policy, ask, now).into()
        }
        (Policy::YuniKorn, Preemptor::Pod(pod)) => yunikorn::decide(snapshot, ask, pod, now).into(),
        (Policy::Koordinator(policy), Preemptor::Pod(pod)) => {
            koordinator::decide(snapshot, policy, ask, pod, now).into()
        }
        (Policy::Kueue(policy), Preemptor::Workload(workload)) => {
            kueue::decide_recording(snapshot, policy, workload, now, recorder)
        }
        (Policy::Kueue(_), Preemptor::Pod(_)) => place_only(snapshot, ask).into(),
        (Policy::Kubernetes(_), Preemptor::Workload(_))
        | (Policy::YuniKorn | Policy::Koordinator(_), Preemptor::Group(_) | Preemptor::Workload(_))
        | (Policy::Kueue(_), Preemptor::Group(_)) => {
            unreachable!("a question is about a preemptor that its policy knows")
        }
    }
}

/// Who has to yield was decided with its workload: a pod takes a node that has room, or waits for one.
fn place_only(snapshot: &mut Snapshot, ask: &Ask) -> Outcome {
    let domains = domains(snapshot, ask);
    let placement = fits(&mut open(snapshot, ask), ask, &domains);
    placement.map_or(Outcome::Unschedulable(None), Outcome::Schedule)
}

fn take_all_then_reprieve(snapshot: &mut Snapshot, policy: &Kubernetes, ask: &Ask, now: Timestamp) -> Outcome {
    if let Some(law) = disagreement::refuses(snapshot, ask) {
        return Outcome::Unschedulable(Some(law));
    }
    let domains = domains(snapshot, ask);
    let mut what_if = open(snapshot, ask);
    let what_if = &mut what_if;
    if let Some(placement) = fits(what_if, ask, &domains) {
        return Outcome::Schedule(placement);
    }
    if let Some(law) = gate(what_if, ask) {
        return match law {
            // Nobody who leaves makes room where it may not land, or for a gang that is not there.
            Law::Underway { .. } if domains.is_empty() || ask.members.len() < ask.needed => {
                Outcome::Unschedulable(None)
            }
            Law::Underway { .. } => Outcome::Wait(law),
            _ => Outcome::Unschedulable(Some(law)),
        };
    }
    let plan = match ask.preemptor {
        Preemptor::Pod(pod) => best_node(what_if, ask, pod, now),
        Preemptor::Group(_) | Preemptor::Workload(_) => domains
            .iter()
            .filter_map(|domain| one_domain::plan(what_if, policy, ask, domain, now, None))
            .fold(None, cheaper),
    };
    plan.map_or(Outcome::Unschedulable(None), Outcome::Preempt)
}

/// The what-if in which the question is asked: a pod that grows in place is off its node, so that it is counted once.
pub(crate) fn open<'s>(snapshot: &'s mut Snapshot, ask: &Ask) -> WhatIf<'s> {
    let shapes = ask.shapes(snapshot);
    let mut what_if = WhatIf::new(snapshot, &shapes);
    if ask.resizes_on.is_some() {
        what_if.remove(ask.members[0]);
    }
    what_if
}

/// The placement with no victim, if there is one. Of several domains the one that takes most members.
fn fits(what_if: &mut WhatIf<'_>, ask: &Ask, domains: &[Domain]) -> Option<Placement> {
    match ask.preemptor {
        Preemptor::Pod(pod) => free_node(what_if, ask, pod).map(|node| vec![(pod, node)]),
        Preemptor::Group(_) | Preemptor::Workload(_) => {
            let mut best: Option<Placement> = None;
            for domain in domains {
                let mark = what_if.mark();
                let placement = place(what_if, ask, &domain.nodes, &[], &[]);
                what_if.back_to(mark);
                let more = best.as_ref().is_none_or(|best| placement.len() > best.len());
                if placement.len() >= ask.needed && more {
                    best = Some(placement);
                }
            }
            best
        }
    }
}

/// The node that it is nominated to, if it fits there; else the first by name where it does.
fn free_node(what_if: &mut WhatIf<'_>, ask: &Ask, pod: PodId) -> Option<NodeId> {
    let arithmetic = Arithmetic::new(what_if.snapshot(), pod);
    let nominated = what_if.snapshot().pod(pod).nominated;
    let all = what_if.snapshot().node_ids();
    nominated.into_iter().chain(all).find(|&node| {
        let has_room = arithmetic.as_ref().is_none_or(|arithmetic| arithmetic.fits(what_if.snapshot(), ask, node));
        has_room && fit::misfit(what_if, ask, pod, node).is_none()
    })
}

/// The plan for the node where landing costs least; on a tie the first by name.
fn best_node(what_if: &mut WhatIf<'_>, ask: &Ask, pod: PodId, now: Timestamp) -> Option<Plan> {
    let arithmetic = Arithmetic::new(what_if.snapshot(), pod).filter(|_| what_if.relations().is_empty());
    let mut best: Option<(Cost, NodeId)> = None;
    for node in what_if.snapshot().node_ids() {
        let snapshot = what_if.snapshot();
        let cost = match &arithmetic {
            Some(arithmetic) if snapshot.is_plain(node) => {
                let bound = best.map(|(cost, _)| cost).filter(|cost| cost.violations == 0).unwrap_or(Cost::MOST);
                let cost = arithmetic.cost(snapshot, ask, node, &bound);
                cost.filter(|_| ask.closed(snapshot, pod, node).is_none())
            }
            _ => one_node::plan(what_if, ask, pod, node, now, None, None).ok().map(|plan| plan.cost),
        };
        if let Some(cost) = cost
            && best.is_none_or(|(best, _)| cost < best)
        {
            best = Some((cost, node));
        }
    }
    best.map(|(_, node)| {
        one_node::plan(what_if, ask, pod, node, now, None, None).expect("it has a cost, so it has a plan")
    })
}

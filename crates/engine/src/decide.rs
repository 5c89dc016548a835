//! The pipeline of a decision: fit, gate, candidates, domains, reprieve, choose.

use crate::decision::{Cost, Decision, Outcome, Plan};
use crate::decisive::{self, Closed};
use crate::domains::{Domain, domains};
use crate::equal_cost::mark_equal_costs;
use crate::explanation::{Decisive, Explanation, ExplanationRecorder, NoRecorder, Recorder};
use crate::fit::{self, Ask, Placement, Preemptor};
use crate::gate::gate;
use crate::ids::{NodeId, PodId, Timestamp};
use crate::laws::{Law, disagreement, obstacle};
use crate::one_domain;
use crate::one_node::{self, Arithmetic};
use crate::place::place;
use crate::policy::kubernetes::Kubernetes;
use crate::policy::{Policy, koordinator, kueue, yunikorn};
use crate::snapshot::{Pod, Snapshot};
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
    let explanation = recorder.finish(snapshot, &ask, &decision.outcome);
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
        if R::RECORDS {
            decisive::report_gang(snapshot, ask, recorder);
        }
        return Outcome::Unschedulable(Some(law)).into();
    }
    match (policy, preemptor) {
        (Policy::Kubernetes(policy), Preemptor::Pod(_) | Preemptor::Group(_)) => {
            by_priority(snapshot, policy, ask, now, recorder).into()
        }
        (Policy::YuniKorn, Preemptor::Pod(pod)) => yunikorn::decide(snapshot, ask, pod, now, recorder).into(),
        (Policy::Koordinator(policy), Preemptor::Pod(pod)) => {
            koordinator::decide(snapshot, policy, ask, pod, now, recorder).into()
        }
        (Policy::Kueue(policy), Preemptor::Workload(workload)) => {
            kueue::decide_recording(snapshot, policy, workload, now, recorder)
        }
        (Policy::Kueue(_), Preemptor::Pod(_)) => place_only(snapshot, ask, recorder).into(),
        (Policy::Kubernetes(_), Preemptor::Workload(_))
        | (Policy::YuniKorn | Policy::Koordinator(_), Preemptor::Group(_) | Preemptor::Workload(_))
        | (Policy::Kueue(_), Preemptor::Group(_)) => {
            unreachable!("a question is about a preemptor that its policy knows")
        }
    }
}

/// Who has to yield was decided with its workload: a pod takes a node that has room, or waits for one.
fn place_only<R: Recorder>(snapshot: &mut Snapshot, ask: &Ask, recorder: &mut R) -> Outcome {
    let domains = domains(snapshot, ask);
    let mut what_if = open(snapshot, ask);
    let placement = fits(&mut what_if, ask, &domains);
    let outcome = placement.map_or(Outcome::Unschedulable(None), Outcome::Schedule);
    if R::RECORDS {
        report_decisive(&mut what_if, ask, &domains, &outcome, recorder);
    }
    outcome
}

fn by_priority<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Kubernetes,
    ask: &Ask,
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    if let Some(law) = disagreement::refuses(snapshot, ask) {
        if R::RECORDS {
            decisive::report_gang(snapshot, ask, recorder);
        }
        return Outcome::Unschedulable(Some(law));
    }
    let domains = domains(snapshot, ask);
    let mut what_if = open(snapshot, ask);
    let outcome = take_all_then_reprieve(&mut what_if, policy, ask, &domains, now, recorder);
    if R::RECORDS {
        report_decisive(&mut what_if, ask, &domains, &outcome, recorder);
    }
    outcome
}

/// Reports what the outcome may depend on. A plan for one node depends on no other node, one for a domain on no other domain.
fn report_decisive<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    ask: &Ask,
    domains: &[Domain],
    outcome: &Outcome,
    recorder: &mut R,
) {
    let Some(mut closed) = Closed::new(what_if, ask) else {
        return;
    };
    let snapshot = what_if.snapshot();
    let domains = match ask.preemptor {
        Preemptor::Pod(_) => &[],
        Preemptor::Group(_) | Preemptor::Workload(_) => {
            // A candidate anywhere in a domain uses up disruption budgets of the others.
            closed.open_nodes_of(snapshot, &recorder.candidates());
            domains
        }
    };
    let nodes: Vec<NodeId> = match (outcome, ask.preemptor) {
        (Outcome::Preempt(plan), _) => {
            let placed = plan.placement.iter().map(|&(_, node)| node);
            placed.chain(decisive::nominated(snapshot, ask)).collect()
        }
        (Outcome::Schedule(placement), Preemptor::Pod(pod)) => {
            // It takes the node that it is nominated to, or else the first by name: those before did not have room.
            let (landed, nominated) = (placement[0].1, snapshot.pod(pod).nominated);
            let before = closed.others(snapshot, ask).filter(|&node| node < landed || Some(node) == nominated);
            before.filter(|&node| node != landed && nominated != Some(landed)).collect()
        }
        _ => closed.others(snapshot, ask).collect(),
    };
    let nodes = nodes.into_iter();
    let is_needed = |pod: &Pod| decisive::is_of_gang(snapshot, ask, pod);
    recorder.decisive(Decisive::with(snapshot, nodes, is_needed, domains, &closed));
}

fn take_all_then_reprieve<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    ask: &Ask,
    domains: &[Domain],
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    if let Some(placement) = fits(what_if, ask, domains) {
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
        Preemptor::Pod(pod) => best_node(what_if, ask, pod, now, recorder),
        Preemptor::Group(_) | Preemptor::Workload(_) => best_domain(what_if, policy, ask, domains, now, recorder),
    };
    if let Some(plan) = plan.as_ref().filter(|_| R::RECORDS) {
        recorder.chosen(plan, |other| other.cost.difference(&plan.cost));
        mark_equal_costs(what_if, ask, plan, recorder, |_, _| true);
    }
    plan.map_or(Outcome::Unschedulable(None), Outcome::Preempt)
}

/// The victims that landing on each node would take, for every node where that is possible.
pub fn node_plans(snapshot: &mut Snapshot, policy: &Policy, pod: PodId, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let ask = Ask::new(snapshot, Preemptor::Pod(pod));
    if *policy == Policy::YuniKorn {
        return yunikorn::node_plans(snapshot, &ask, pod, now);
    }
    let mut what_if = open(snapshot, &ask);
    let nodes = what_if.snapshot().node_ids();
    let plan = |node| Some((node, one_node::plan(&mut what_if, &ask, node, now, &mut NoRecorder, None).ok()?));
    nodes.filter_map(plan).collect()
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
fn best_node<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    ask: &Ask,
    pod: PodId,
    now: Timestamp,
    recorder: &mut R,
) -> Option<Plan> {
    let arithmetic = Arithmetic::new(what_if.snapshot(), pod).filter(|_| what_if.relations().is_empty());
    let arithmetic = arithmetic.filter(|_| !R::RECORDS); // it gives a cost, and no reason
    let mut best: Option<(Cost, NodeId)> = None;
    for node in what_if.snapshot().node_ids() {
        let snapshot = what_if.snapshot();
        let cost = match &arithmetic {
            Some(arithmetic) if snapshot.is_plain(node) => {
                let bound = best.map(|(cost, _)| cost).filter(|cost| cost.violations == 0).unwrap_or(Cost::MOST);
                let cost = arithmetic.cost(snapshot, ask, node, &bound);
                cost.filter(|_| ask.closed(snapshot, pod, node).is_none())
            }
            _ => {
                let result = one_node::plan(what_if, ask, node, now, recorder, None);
                recorder.node(node, &result);
                result.ok().map(|plan| plan.cost)
            }
        };
        if let Some(cost) = cost
            && best.is_none_or(|(best, _)| cost < best)
        {
            best = Some((cost, node));
        }
    }
    let (_, node) = best?;
    let mut reasons = Vec::new();
    let plan = one_node::plan(what_if, ask, node, now, recorder, R::RECORDS.then_some(&mut reasons));
    recorder.victims(reasons);
    Some(plan.expect("it has a cost, so it has a plan"))
}

/// The plan for the domain where landing costs least; on a tie the first by name.
fn best_domain<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    ask: &Ask,
    domains: &[Domain],
    now: Timestamp,
    recorder: &mut R,
) -> Option<Plan> {
    let mut best: Option<Plan> = None;
    for domain in domains {
        let mut reasons = Vec::new();
        let wanted = R::RECORDS.then_some(&mut reasons);
        let result = one_domain::plan(what_if, policy, ask, domain, now, recorder, wanted);
        recorder.domain(domain, &result);
        if let Ok(plan) = result
            && best.as_ref().is_none_or(|best| plan.cost < best.cost)
        {
            recorder.victims(reasons);
            best = Some(plan);
        }
    }
    best
}

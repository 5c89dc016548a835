//! The Kubernetes policy: what kube-scheduler does for pods and groups, and what the workload-aware design asks beyond it.

mod group;
mod group_mismatch;
mod node_cost;
pub(crate) mod pod;

use crate::decision::Outcome;
use crate::decisive::{self, Closed};
use crate::domains::{Domain, domains};
use crate::equal_cost::mark_equal_costs;
use crate::explanation::{Decisive, Recorder};
use crate::fit::{Placement, Preemptor, PreemptorId};
use crate::gate::gate;
use crate::ids::{NodeId, Timestamp};
use crate::laws::Law;
use crate::place::place;
use crate::snapshot::{Pod, Snapshot};
use crate::what_if::WhatIf;

/// The settings of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// Whether a group first looks for the lowest priority such that taking nobody above it is enough. Without it the policy
    /// decides as kube-scheduler 1.37 does.
    pub priority_cut: bool,
    /// How far a group's preemption priority may lie above its scheduling priority; one that lies further is refused when the objects
    /// are loaded. `None` is no limit.
    pub max_preemption_priority_excess: Option<u32>,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self { priority_cut: true, max_preemption_priority_excess: None }
    }
}

/// Decides for a pod or a group.
pub(crate) fn decide<R: Recorder>(
    snapshot: &mut Snapshot,
    policy: &Kubernetes,
    ask: &Preemptor,
    now: Timestamp,
    recorder: &mut R,
) -> Outcome {
    if let Some(law) = group_mismatch::refuses(snapshot, ask) {
        if R::RECORDS {
            decisive::report_gang(snapshot, ask, recorder);
        }
        return Outcome::Unschedulable(Some(law));
    }
    let domains = domains(snapshot, ask);
    let mut what_if = ask.what_if(snapshot);
    let outcome = take_all_then_reprieve(&mut what_if, policy, ask, &domains, now, recorder);
    if R::RECORDS {
        report_decisive(&mut what_if, ask, &domains, &outcome, recorder);
    }
    outcome
}

/// Who has to yield was decided with its workload: a pod takes a node that has room, or waits for one.
pub(crate) fn place_only<R: Recorder>(snapshot: &mut Snapshot, ask: &Preemptor, recorder: &mut R) -> Outcome {
    let domains = domains(snapshot, ask);
    let mut what_if = ask.what_if(snapshot);
    let placement = fits(&mut what_if, ask, &domains);
    let outcome = placement.map_or(Outcome::Unschedulable(None), Outcome::Schedule);
    if R::RECORDS {
        report_decisive(&mut what_if, ask, &domains, &outcome, recorder);
    }
    outcome
}

fn take_all_then_reprieve<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    ask: &Preemptor,
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
            Law::PreemptionInProgress { .. } if domains.is_empty() || ask.members.len() < ask.needed => {
                Outcome::Unschedulable(None)
            }
            Law::PreemptionInProgress { .. } => Outcome::Wait(law),
            _ => Outcome::Unschedulable(Some(law)),
        };
    }
    let plan = match ask.id {
        PreemptorId::Pod(pod) => pod::best(what_if, ask, pod, now, recorder),
        PreemptorId::Group(_) | PreemptorId::Workload(_) => group::best(what_if, policy, ask, domains, now, recorder),
    };
    if let Some(plan) = plan.as_ref().filter(|_| R::RECORDS) {
        recorder.chosen(plan, |other| other.cost.difference(&plan.cost));
        mark_equal_costs(what_if, ask, plan, recorder, |_, _| true);
    }
    plan.map_or(Outcome::Unschedulable(None), Outcome::Preempt)
}

/// The placement with no victim, if there is one. Of several domains the one that takes most members.
fn fits(what_if: &mut WhatIf<'_>, ask: &Preemptor, domains: &[Domain]) -> Option<Placement> {
    match ask.id {
        PreemptorId::Pod(pod) => pod::free_node(what_if, ask, pod).map(|node| vec![(pod, node)]),
        PreemptorId::Group(_) | PreemptorId::Workload(_) => {
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

/// Reports what the outcome may depend on. A plan for one node depends on no other node, one for a domain on no other domain.
fn report_decisive<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    ask: &Preemptor,
    domains: &[Domain],
    outcome: &Outcome,
    recorder: &mut R,
) {
    let Some(mut closed) = Closed::new(what_if, ask) else { return };
    let snapshot = what_if.snapshot();
    let domains = match ask.id {
        PreemptorId::Pod(_) => &[],
        PreemptorId::Group(_) | PreemptorId::Workload(_) => {
            // A candidate anywhere in a domain uses up disruption budgets of the others.
            closed.open_nodes_of(snapshot, &recorder.candidates());
            domains
        }
    };
    let nodes: Vec<NodeId> = match (outcome, ask.id) {
        (Outcome::Preempt(plan), _) => {
            let placed = plan.placement.iter().map(|&(_, node)| node);
            placed.chain(decisive::nominated(snapshot, ask)).collect()
        }
        (Outcome::Schedule(placement), PreemptorId::Pod(pod)) => {
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

//! Why? Worked out on demand, from the question and its outcome: deciding keeps nothing for it.

use std::collections::BTreeMap;

use crate::candidates::candidates;
use crate::decide::open;
use crate::decision::{Outcome, Plan};
use crate::domains::{Domain, domains};
use crate::explanation::{
    DomainEntry, DomainVerdict, Explanation, NodeEntry, NodeRefusal, NodeVerdict, Spared, SparedUnit,
};
use crate::filters::Misfit;
use crate::fit::{self, Ask, Preemptor, Shortage};
use crate::ids::{NodeId, PodId, Priority, QueueId, ResourceId, ShapeId, Timestamp, UnitId};
use crate::laws::{self, Law, unknown_class};
use crate::policy::kubernetes::Kubernetes;
use crate::policy::{Policy, koordinator, yunikorn};
use crate::snapshot::Snapshot;
use crate::what_if::WhatIf;
use crate::{one_domain, one_node};

/// Explains an outcome of [`crate::decide()`] on the same snapshot, and leaves the snapshot as it found it.
pub(crate) fn explain(
    snapshot: &mut Snapshot,
    policy: &Policy,
    preemptor: Preemptor,
    now: Timestamp,
    outcome: &Outcome,
) -> Explanation {
    let plan = match outcome {
        Outcome::Preempt(plan) => Some(plan),
        Outcome::Unschedulable(None | Some(Law::NotUnderGuarantee { .. })) => None,
        Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(Some(_)) => return Explanation::default(),
    };
    let ask = Ask::new(snapshot, preemptor);
    let policy = match (policy, preemptor) {
        (Policy::Kubernetes(policy), _) => policy,
        (Policy::YuniKorn, Preemptor::Pod(pod)) => return yunikorn::explain(snapshot, &ask, pod, now, plan),
        (Policy::Koordinator(policy), Preemptor::Pod(pod)) => {
            let ask = ask.with_job(snapshot, pod);
            return koordinator::explain(snapshot, policy, &ask, pod, now, plan);
        }
        (Policy::YuniKorn | Policy::Kueue(_) | Policy::Koordinator(_), _) => return Explanation::default(),
    };
    let mut explanation = Explanation::default();
    let domains = domains(snapshot, &ask);
    let mut what_if = open(snapshot, &ask);
    let what_if = &mut what_if;
    match preemptor {
        Preemptor::Pod(pod) => explanation.explain_nodes(what_if, &ask, pod, plan, now),
        Preemptor::Group(_) | Preemptor::Workload(_) => {
            explanation.explain_domains(what_if, policy, &ask, domains, plan, now)
        }
    }
    explanation.explain_spared(what_if.snapshot(), &ask, plan, now);
    if let Some(plan) = plan {
        mark_equal_costs(what_if, &ask, plan, &mut explanation.spared, |_, _| true);
    }
    explanation
}

/// The victims that landing on each node would take, for every node where that is possible.
pub fn node_plans(snapshot: &mut Snapshot, policy: &Policy, pod: PodId, now: Timestamp) -> Vec<(NodeId, Plan)> {
    let ask = Ask::new(snapshot, Preemptor::Pod(pod));
    if *policy == Policy::YuniKorn {
        return yunikorn::node_plans(snapshot, &ask, pod, now);
    }
    let mut what_if = open(snapshot, &ask);
    let nodes = what_if.snapshot().node_ids();
    let plan = |node| Some((node, one_node::plan(&mut what_if, &ask, pod, node, now, None, None).ok()?));
    nodes.filter_map(plan).collect()
}

/// What makes one pod as good a victim as another: a unit of one pod, of equal priority and start, that asks for the same, counts in the
/// same queue and violates no budget.
type VictimKey = (ShapeId, Priority, Timestamp, Option<QueueId>);

fn victim_key(snapshot: &Snapshot, id: UnitId) -> Option<VictimKey> {
    let unit = snapshot.unit(id);
    let [pod] = unit.pods.as_slice() else {
        return None;
    };
    let pod = snapshot.pod(*pod);
    let plain = pod.budgets.is_empty() && pod.leaving.is_none() && pod.job.is_none() && !unit.grouped;
    plain.then_some((pod.shape, unit.priority, unit.start, pod.queue))
}

/// Finds the reprieved units that could be taken instead of a victim at the same cost: the preemptor's pods that are placed on the victim's
/// node fit on the unit's. `alike` says whether the policy itself has no reason to prefer one node to the other. Where pods mind each other
/// nothing is claimed.
pub(crate) fn mark_equal_costs(
    what_if: &mut WhatIf<'_>,
    ask: &Ask,
    plan: &Plan,
    spared: &mut [SparedUnit],
    alike: impl Fn(NodeId, NodeId) -> bool,
) {
    if !what_if.relations().is_empty() {
        return;
    }
    let mut victims: BTreeMap<VictimKey, UnitId> = BTreeMap::new();
    for &victim in &plan.victims {
        if let Some(key) = victim_key(what_if.snapshot(), victim) {
            victims.entry(key).or_insert(victim);
        }
    }
    for (key, victim) in victims {
        let Some(from) = home_of(what_if.snapshot(), victim) else {
            continue;
        };
        let mark = what_if.mark();
        for &other in plan.victims.iter().filter(|other| **other != victim) {
            what_if.remove_unit(other);
        }
        for &(pod, node) in plan.placement.iter().filter(|(_, node)| *node != from) {
            what_if.place(pod, node);
        }
        for SparedUnit { unit, spared, .. } in spared.iter_mut().filter(|entry| entry.spared == Spared::Reprieved) {
            let home = home_of(what_if.snapshot(), *unit).filter(|&home| alike(from, home));
            let Some(to) = home.filter(|_| victim_key(what_if.snapshot(), *unit) == Some(key)) else {
                continue;
            };
            if unknown_class::closes(what_if.snapshot(), ask, to).is_some() {
                continue;
            }
            let mark = what_if.mark();
            what_if.remove_unit(*unit);
            let mut moved = plan.placement.iter().filter(|(_, node)| *node == from);
            let fits = moved.all(|&(pod, _)| {
                let fits = fit::misfit(what_if, ask, pod, to).is_none();
                if fits {
                    what_if.place(pod, to);
                }
                fits
            });
            what_if.back_to(mark);
            if fits {
                *spared = Spared::EqualCost(victim);
            }
        }
        what_if.back_to(mark);
    }
}

fn home_of(snapshot: &Snapshot, unit: UnitId) -> Option<NodeId> {
    snapshot.unit(unit).pods.first().and_then(|&pod| snapshot.home(pod))
}

/// The resources that are short, too, on a node that a host port closes, with every candidate gone. (Ports are looked at first.)
fn shortages_beside_ports(
    what_if: &mut WhatIf<'_>,
    ask: &Ask,
    pod: PodId,
    node: NodeId,
    now: Timestamp,
) -> Vec<Shortage> {
    let mark = what_if.mark();
    for candidate in candidates(what_if.snapshot(), ask, std::iter::once(node), now) {
        let pods = what_if.snapshot().unit(candidate.unit).pods.clone();
        for pod in pods {
            if what_if.snapshot().home(pod) == Some(node) {
                what_if.remove(pod);
            }
        }
    }
    let shortages = every_shortage_if_any(what_if, ask, pod, node);
    what_if.back_to(mark);
    shortages
}

/// Every resource that is short on the node, whatever else refuses the pod there.
pub(crate) fn every_shortage_if_any(what_if: &mut WhatIf<'_>, ask: &Ask, pod: PodId, node: NodeId) -> Vec<Shortage> {
    let resources = Misfit::Resource { resource: ResourceId::PODS, short: 0, beyond: false };
    fit::every_shortage(what_if, ask, pod, node, resources)
}

impl Explanation {
    fn explain_nodes(&mut self, what_if: &mut WhatIf<'_>, ask: &Ask, pod: PodId, plan: Option<&Plan>, now: Timestamp) {
        for node in what_if.snapshot().node_ids() {
            let chosen = plan.is_some_and(|plan| plan.placement == [(pod, node)]);
            let reasons = chosen.then_some(&mut self.victims);
            let mut shortages = Vec::new();
            let verdict = match one_node::plan(what_if, ask, pod, node, now, reasons, Some(&mut shortages)) {
                Ok(_) if chosen => NodeVerdict::Chosen,
                Ok(other) => {
                    let difference = plan.map(|plan| other.cost.difference(&plan.cost));
                    NodeVerdict::Dearer(other, difference)
                }
                Err(refusal) => {
                    if let NodeRefusal::Misfit(Misfit::Ports) | NodeRefusal::NoCandidate(Misfit::Ports) = refusal {
                        shortages = shortages_beside_ports(what_if, ask, pod, node, now);
                    }
                    NodeVerdict::Refused(refusal, shortages)
                }
            };
            self.nodes.push(NodeEntry { node, verdict, decisive: true });
        }
    }

    fn explain_domains(
        &mut self,
        what_if: &mut WhatIf<'_>,
        policy: &Kubernetes,
        ask: &Ask,
        domains: Vec<Domain>,
        plan: Option<&Plan>,
        now: Timestamp,
    ) {
        for domain in domains {
            let first = plan.and_then(|plan| plan.placement.first());
            let chosen = first.is_some_and(|(_, node)| domain.nodes.contains(node));
            let reasons = chosen.then_some(&mut self.victims);
            let verdict = match one_domain::plan(what_if, policy, ask, &domain, now, reasons) {
                Some(_) if chosen => DomainVerdict::Chosen,
                Some(other) => {
                    let difference = plan.map(|plan| other.cost.difference(&plan.cost));
                    DomainVerdict::Dearer(other, difference)
                }
                None => DomainVerdict::Refused(one_domain::refusal(what_if, ask, &domain, now)),
            };
            self.domains.push(DomainEntry { domain, verdict, decisive: true });
        }
    }

    /// Every unit that a law spares, and those of the chosen place that were reprieved.
    fn explain_spared(&mut self, snapshot: &Snapshot, ask: &Ask, plan: Option<&Plan>, now: Timestamp) {
        let mut chosen = vec![false; snapshot.node_ids().len()];
        let nodes = self.nodes.iter().filter(|entry| entry.verdict == NodeVerdict::Chosen).map(|entry| &entry.node);
        let domains = self.domains.iter().filter(|entry| entry.verdict == DomainVerdict::Chosen);
        for node in nodes.chain(domains.flat_map(|entry| &entry.domain.nodes)) {
            chosen[node.index()] = true;
        }
        let in_reach = |unit: UnitId| {
            let mut homes = snapshot.unit(unit).pods.iter().filter_map(|&pod| snapshot.home(pod));
            homes.any(|node| chosen[node.index()])
        };
        let mut victims: Vec<UnitId> = plan.map(|plan| plan.victims.clone()).unwrap_or_default();
        victims.sort_unstable();
        let mut spared = Vec::new();
        for unit in snapshot.unit_ids() {
            if victims.binary_search(&unit).is_ok() || self.is_preemptor(snapshot, ask, unit) {
                continue;
            }
            let why = match laws::spares(snapshot, ask, unit, now) {
                Some(law) => Spared::Law(law),
                None if in_reach(unit) => Spared::Reprieved,
                None => continue,
            };
            spared.push(SparedUnit { unit, spared: why, decisive: true });
        }
        self.spared = spared;
    }

    fn is_preemptor(&self, snapshot: &Snapshot, ask: &Ask, unit: UnitId) -> bool {
        snapshot.unit(unit).pods.iter().any(|pod| ask.members.contains(pod))
    }
}

//! What landing on each node, or in each domain, means to the preemptor: chosen, at what higher or equal cost, or why not.

use std::collections::BTreeMap;

use reprieve_engine::NodeId;
use reprieve_engine::choose::{Cost, Difference, Plan};
use reprieve_engine::domains::Domain;
use reprieve_engine::explanation::{
    DomainEntry, DomainRefusal, DomainResult, NodeEntry, NodeFilterFailure, NodeRefusal, NodeResult, RefusedNode,
    TooFew,
};
use reprieve_engine::fit::Shortage;

use crate::budget_report::{Violations, violates};
use crate::decision::{PlaceResult, PlacementReport, PreemptorReport};
use crate::plural::count;
use crate::reasons::{self, ReasonText};
use crate::report_builder::ReportBuilder;
use reprieve_loader::time::time;

/// Puts places into words, compared with the chosen plan where there is one.
pub struct Places<'a> {
    pub naming: &'a ReportBuilder<'a>,
    pub chosen: Option<&'a Plan>,
    pub preemptor: &'a PreemptorReport,
}

impl Places<'_> {
    pub fn nodes(&self, entries: &[NodeEntry]) -> Vec<PlacementReport> {
        let name = |node: NodeId| self.naming.loaded.names.node(node);
        let chosen = entries.iter().find(|entry| entry.result == NodeResult::Chosen);
        let chosen_name = chosen.map_or("", |entry| name(entry.node));
        let tie = equal(entries.iter().filter_map(|entry| match &entry.result {
            NodeResult::HigherCost(_, difference) => *difference,
            NodeResult::Chosen | NodeResult::Infeasible(..) => None,
        }));
        let report = |&NodeEntry { node, result: ref verdict, decisive }: &NodeEntry| {
            let place = match verdict {
                NodeResult::Chosen => chosen_place(name(node), tie),
                NodeResult::HigherCost(plan, difference) => self.dearer(name(node), plan, *difference, chosen_name),
                NodeResult::Infeasible(RefusedNode { refusal, shortages }) => {
                    self.refused_node(name(node), refusal, shortages)
                }
            };
            PlacementReport { decisive, ..place }
        };
        entries.iter().map(report).collect()
    }

    pub fn domains(&self, entries: &[DomainEntry]) -> Vec<PlacementReport> {
        let names = &self.naming.loaded.names;
        let name = |domain: &Domain| domain.part.map_or("the cluster", |(topology, part)| names.domain(topology, part));
        let chosen = entries.iter().find(|entry| entry.result == DomainResult::Chosen);
        let chosen_name = chosen.map_or("", |entry| name(&entry.domain));
        let tie = equal(entries.iter().filter_map(|entry| match &entry.result {
            DomainResult::HigherCost(_, difference) => *difference,
            DomainResult::Chosen | DomainResult::Infeasible(_) => None,
        }));
        let report = |DomainEntry { domain, result: verdict, decisive }: &DomainEntry| {
            let place = match verdict {
                DomainResult::Chosen => chosen_place(name(domain), tie),
                DomainResult::HigherCost(plan, difference) => self.dearer(name(domain), plan, *difference, chosen_name),
                DomainResult::Infeasible(refusal) => self.refused_domain(name(domain), refusal),
            };
            PlacementReport { decisive: *decisive, ..place }
        };
        entries.iter().map(report).collect()
    }

    /// `chosen` is the name of the chosen place.
    fn dearer(&self, name: &str, plan: &Plan, difference: Option<Difference>, chosen: &str) -> PlacementReport {
        let loaded = self.naming.loaded;
        let pods = plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods);
        let mut victims: Vec<String> = pods.map(|&pod| self.naming.pod(pod)).collect();
        victims.sort_unstable();
        let violated = Violations::of(loaded, &plan.victims).reports().into_iter().map(|budget| budget.name);
        let against = match violates(&violated.collect::<Vec<_>>()) {
            none if none.is_empty() => none,
            violates => format!(", which {violates}"),
        };
        let Cost { top, pods, .. } = plan.cost;
        let takes = format!("would take {} of priority up to {}{against}", count(pods, "pod", "pods"), top.0);
        let text = match (difference, self.chosen) {
            (None, _) | (_, None) => takes,
            (Some(Difference::FirstByName), _) => format!("equal cost, first by name is {chosen}; {takes}"),
            (Some(Difference::Nominated), _) => {
                format!("equal cost, but {} is nominated to {chosen}; {takes}", self.preemptor.name)
            }
            (Some(Difference::NoRoom), _) => format!("{takes}; {chosen} has room, and only quota is short"),
            (Some(difference), Some(best)) => {
                format!("{takes}; higher cost than {chosen}: {}", higher(difference, &plan.cost, &best.cost))
            }
        };
        let is_equal = difference.is_some_and(Difference::is_equal_cost);
        let result = if is_equal { PlaceResult::EqualCost } else { PlaceResult::HigherCost };
        PlacementReport { victims, ..place(name, result, text) }
    }

    fn refused_node(&self, name: &str, refusal: &NodeRefusal, shortages: &[Shortage]) -> PlacementReport {
        let ReasonText { name: filter, text, .. } = reasons::refusal(refusal, shortages, &self.naming.loaded.names);
        let short = match refusal {
            NodeRefusal::FilterFailed(misfit) | NodeRefusal::NoCandidate(misfit) => {
                self.naming.short(misfit, shortages)
            }
            NodeRefusal::Law(_) => BTreeMap::new(),
        };
        PlacementReport { filter: Some(filter), short, ..place(name, PlaceResult::Infeasible, text) }
    }

    fn refused_domain(&self, name: &str, refusal: &DomainRefusal) -> PlacementReport {
        let names = &self.naming.loaded.names;
        let (TooFew { placed, unplaced, failures: misfits }, gone) = match refusal {
            DomainRefusal::NoCandidate(too_few) => (too_few, "nobody there may be taken, and"),
            DomainRefusal::TooFewPlaced(too_few) => (too_few, "with every candidate gone"),
        };
        let node = |NodeFilterFailure { node, failure: misfit, shortages }: &NodeFilterFailure| {
            (names.node(*node).to_owned(), reasons::misfit(misfit, shortages, names).text)
        };
        let who = unplaced.map(|pod| format!("; {} finds no place", self.naming.pod(pod))).unwrap_or_default();
        let text = format!("{gone} {placed} of the {} pods that it needs fit{who}", self.preemptor.needed);
        PlacementReport { nodes: misfits.iter().map(node).collect(), ..place(name, PlaceResult::Infeasible, text) }
    }
}

/// The first of these that means an equal cost.
fn equal(mut differences: impl Iterator<Item = Difference>) -> Option<Difference> {
    differences.find(|difference| difference.is_equal_cost())
}

/// `tie` says by what it is chosen where another place costs the same.
fn chosen_place(name: &str, tie: Option<Difference>) -> PlacementReport {
    let text = match tie {
        None => "costs least",
        Some(Difference::Nominated) => "costs least; equal cost, nominated there already",
        Some(_) => "costs least; equal cost, first by name",
    };
    place(name, PlaceResult::Chosen, text.to_owned())
}

fn place(name: &str, verdict: PlaceResult, text: String) -> PlacementReport {
    PlacementReport {
        name: name.to_owned(),
        verdict,
        filter: None,
        decisive: true,
        text,
        short: BTreeMap::new(),
        victims: Vec::new(),
        nodes: BTreeMap::new(),
    }
}

/// What is higher about a cost than about that of the chosen plan.
fn higher(difference: Difference, cost: &Cost, chosen: &Cost) -> String {
    // The sum of priorities without the 2^31 that each pod adds to it.
    let sum = |cost: &Cost| i128::from(cost.weight) - (cost.pods as i128) * (1 << 31);
    let start = |cost: &Cost| time(cost.oldest.0).map_or_else(|| "not yet".to_owned(), |start| start.to_string());
    match difference {
        Difference::Violations => {
            let pods = count(cost.violations, "pod counts", "pods count");
            format!("{pods} against a PodDisruptionBudget instead of {}", chosen.violations)
        }
        Difference::TopPriority => format!("highest priority {} instead of {}", cost.top.0, chosen.top.0),
        Difference::Weight if cost.pods == chosen.pods => {
            format!("sum of priorities {} instead of {}", sum(cost), sum(chosen))
        }
        Difference::Weight if cost.pods > chosen.pods => {
            format!("sum of the priorities of {} pods instead of {}", cost.pods, chosen.pods)
        }
        Difference::Weight => format!("sum of (priority + 2^31) {} instead of {}", cost.weight, chosen.weight),
        Difference::Pods => format!("{} instead of {}", count(cost.pods, "pod", "pods"), chosen.pods),
        Difference::Start => {
            let priority = cost.top.0;
            format!("earliest start of its victims of priority {priority} {} instead of {}", start(cost), start(chosen))
        }
        Difference::OptedOut => "a victim opted out of being preempted".to_owned(),
        Difference::Originator => "a victim is the first pod of its application".to_owned(),
        Difference::FirstByName | Difference::Nominated | Difference::NoRoom => String::new(),
    }
}

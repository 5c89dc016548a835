//! Reports on each node, or each domain, that the search evaluated: chosen, feasible at a higher or equal cost, or infeasible.

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

/// Builds the reports on places. A feasible place is compared with the chosen plan, if there is one.
pub struct Places<'a> {
    pub builder: &'a ReportBuilder<'a>,
    pub chosen: Option<&'a Plan>,
    pub preemptor: &'a PreemptorReport,
}

impl Places<'_> {
    pub fn nodes(&self, entries: &[NodeEntry]) -> Vec<PlacementReport> {
        let name = |node: NodeId| self.builder.loaded.names.node(node);
        let chosen = entries.iter().find(|entry| entry.result == NodeResult::Chosen);
        let chosen_name = chosen.map_or("", |entry| name(entry.node));
        let tie = equal(entries.iter().filter_map(|entry| match &entry.result {
            NodeResult::HigherCost(_, difference) => *difference,
            NodeResult::Chosen | NodeResult::Infeasible(..) => None,
        }));
        let report = |&NodeEntry { node, ref result, decisive }: &NodeEntry| {
            let place = match result {
                NodeResult::Chosen => chosen_place(name(node), tie),
                NodeResult::HigherCost(plan, difference) => self.not_chosen(name(node), plan, *difference, chosen_name),
                NodeResult::Infeasible(RefusedNode { refusal, shortages }) => {
                    self.refused_node(node, refusal, shortages)
                }
            };
            PlacementReport { decisive, ..place }
        };
        entries.iter().map(report).collect()
    }

    pub fn domains(&self, entries: &[DomainEntry]) -> Vec<PlacementReport> {
        let names = &self.builder.loaded.names;
        let name = |domain: &Domain| domain.part.map_or("the cluster", |(topology, part)| names.domain(topology, part));
        let chosen = entries.iter().find(|entry| entry.result == DomainResult::Chosen);
        let chosen_name = chosen.map_or("", |entry| name(&entry.domain));
        let tie = equal(entries.iter().filter_map(|entry| match &entry.result {
            DomainResult::HigherCost(_, difference) => *difference,
            DomainResult::Chosen | DomainResult::Infeasible(_) => None,
        }));
        let report = |DomainEntry { domain, result, decisive }: &DomainEntry| {
            let place = match result {
                DomainResult::Chosen => chosen_place(name(domain), tie),
                DomainResult::HigherCost(plan, difference) => {
                    self.not_chosen(name(domain), plan, *difference, chosen_name)
                }
                DomainResult::Infeasible(refusal) => self.refused_domain(name(domain), refusal),
            };
            PlacementReport { decisive: *decisive, ..place }
        };
        entries.iter().map(report).collect()
    }

    /// The report on a feasible place that is not chosen; `chosen` is the name of the chosen one.
    fn not_chosen(&self, name: &str, plan: &Plan, difference: Option<Difference>, chosen: &str) -> PlacementReport {
        let loaded = self.builder.loaded;
        let pods = plan.victims.iter().flat_map(|&unit| &loaded.snapshot.unit(unit).pods);
        let mut victims: Vec<String> = pods.map(|&pod| self.builder.pod(pod)).collect();
        victims.sort_unstable();
        let violated = Violations::of(loaded, &plan.victims).reports().into_iter().map(|budget| budget.name);
        let violation = match violates(&violated.collect::<Vec<_>>()) {
            none if none.is_empty() => none,
            violates => format!(", which {violates}"),
        };
        let Cost { top, pods, .. } = plan.cost;
        let second = match plan.second_order.as_ref().map_or(0, |second| second.pods) {
            0 => String::new(),
            pods => format!(", and returning victims {pods} more"),
        };
        let pods = count(pods, "pod", "pods");
        let evicts = format!("would evict {pods} of priority up to {}{violation}{second}", top.0);
        let text = match (difference, self.chosen) {
            (None, _) | (_, None) => evicts,
            (Some(Difference::FirstByName), _) => format!("equal cost, but {chosen} is first by name; {evicts}"),
            (Some(Difference::Nominated), _) => {
                format!("equal cost, but {} is nominated to {chosen}; {evicts}", self.preemptor.name)
            }
            (Some(Difference::NoRoom), _) => format!("{evicts}; {chosen} has room, only quota is short"),
            (Some(Difference::NotJudged), _) => {
                format!("{evicts}; not judged: what its returning victims would evict is not known")
            }
            (Some(difference), Some(best)) => {
                let higher = higher(difference, &plan.total_cost(), &best.total_cost());
                format!("{evicts}; higher cost than {chosen}: {higher}")
            }
        };
        let result = match difference {
            Some(Difference::NotJudged) => PlaceResult::NotJudged,
            Some(difference) if difference.is_equal_cost() => PlaceResult::EqualCost,
            Some(_) | None => PlaceResult::HigherCost,
        };
        PlacementReport { victims, ..place(name, result, text) }
    }

    fn refused_node(&self, node: NodeId, refusal: &NodeRefusal, shortages: &[Shortage]) -> PlacementReport {
        let names = &self.builder.loaded.names;
        let failure = match refusal {
            NodeRefusal::FilterFailed(failure) | NodeRefusal::NoCandidate(failure) => Some(failure),
            NodeRefusal::Law(_) => None,
        };
        let (reason, short) = match failure.and_then(|failure| self.builder.unknown_room(node, failure)) {
            Some(unknown) => (unknown, BTreeMap::new()),
            None => {
                let short = failure.map(|failure| self.builder.short(failure, shortages));
                (reasons::node_refusal(refusal, shortages, names), short.unwrap_or_default())
            }
        };
        let ReasonText { name: filter, text, .. } = reason;
        PlacementReport { filter: Some(filter), short, ..place(names.node(node), PlaceResult::Infeasible, text) }
    }

    fn refused_domain(&self, name: &str, refusal: &DomainRefusal) -> PlacementReport {
        let names = &self.builder.loaded.names;
        let (TooFew { placed, unplaced, failures }, even_so) = match refusal {
            DomainRefusal::NoCandidate(too_few) => (too_few, ", and no pod there may be evicted"),
            DomainRefusal::TooFewPlaced(too_few) => (too_few, " even without all candidates"),
            DomainRefusal::SearchLimit(too_few) => {
                (too_few, " without all candidates in the first try, and the search for others reached its step limit")
            }
        };
        let node = |NodeFilterFailure { node, failure, shortages }: &NodeFilterFailure| {
            let reason = self.builder.unknown_room(*node, failure);
            let reason = reason.unwrap_or_else(|| reasons::filter_failure(failure, shortages, names));
            (names.node(*node).to_owned(), reason.text)
        };
        let unplaced = unplaced.map(|pod| format!("; no node for {}", self.builder.pod(pod))).unwrap_or_default();
        let text = format!("{placed} of {} required pods fit{even_so}{unplaced}", self.preemptor.needed);
        PlacementReport { nodes: failures.iter().map(node).collect(), ..place(name, PlaceResult::Infeasible, text) }
    }
}

/// The first difference that means an equal cost, if there is one.
fn equal(mut differences: impl Iterator<Item = Difference>) -> Option<Difference> {
    differences.find(|difference| difference.is_equal_cost())
}

/// `tie` is what decided between places of equal cost, if another place costs the same.
fn chosen_place(name: &str, tie: Option<Difference>) -> PlacementReport {
    let text = match tie {
        None => "lowest cost",
        Some(Difference::Nominated) => "equal cost, already nominated",
        Some(_) => "equal cost, first by name",
    };
    place(name, PlaceResult::Chosen, text.to_owned())
}

fn place(name: &str, result: PlaceResult, text: String) -> PlacementReport {
    PlacementReport {
        name: name.to_owned(),
        result,
        filter: None,
        decisive: true,
        text,
        short: BTreeMap::new(),
        victims: Vec::new(),
        nodes: BTreeMap::new(),
    }
}

/// The first criterion by which a cost is higher than the cost of the chosen plan.
fn higher(difference: Difference, cost: &Cost, chosen: &Cost) -> String {
    // The sum of priorities without the 2^31 that each pod adds to it.
    let sum = |cost: &Cost| i128::from(cost.weight) - (cost.pods as i128) * (1 << 31);
    let start = |cost: &Cost| time(cost.oldest.0).map_or_else(|| "not started".to_owned(), |start| start.to_string());
    match difference {
        Difference::Violations => {
            let violations = count(cost.violations, "violation", "violations");
            format!("{violations} of a PodDisruptionBudget instead of {}", chosen.violations)
        }
        Difference::TopPriority => format!("highest priority {} instead of {}", cost.top.0, chosen.top.0),
        Difference::Weight if cost.pods == chosen.pods => {
            format!("sum of priorities {} instead of {}", sum(cost), sum(chosen))
        }
        Difference::Weight if cost.pods > chosen.pods => {
            format!("sum of priorities over {} pods instead of {}", cost.pods, chosen.pods)
        }
        Difference::Weight => format!("sum of (priority + 2^31) {} instead of {}", cost.weight, chosen.weight),
        Difference::Pods => format!("{} instead of {}", count(cost.pods, "pod", "pods"), chosen.pods),
        Difference::Start => {
            let priority = cost.top.0;
            format!("earliest start of a victim of priority {priority}: {} instead of {}", start(cost), start(chosen))
        }
        Difference::OptedOut => "a victim has opted out of preemption".to_owned(),
        Difference::Originator => "a victim is the first pod of its application".to_owned(),
        Difference::FirstByName | Difference::Nominated | Difference::NoRoom | Difference::NotJudged => String::new(),
    }
}

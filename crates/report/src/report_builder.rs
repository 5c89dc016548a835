//! Names for what the engine decided.

use std::collections::BTreeMap;

use reprieve_engine::choose::{Cost, Plan};
use reprieve_engine::explanation::{Spared, SparedUnit, VictimReason};
use reprieve_engine::filters::FilterFailure;
use reprieve_engine::fit::{Preemptor, PreemptorId, Shortage};
use reprieve_engine::laws::Law;
use reprieve_engine::{NodeId, PodId, QueueId, TextId, UnitId};

use crate::reasons::{self, ReasonText, reason_text};
use reprieve_api::quantity::format;
use reprieve_loader::Loaded;
use reprieve_loader::time::time;

use crate::decision::{CostReport, LawReport, PreemptorReport, SparedReport, UnitReport, VictimReport};

/// Puts names to what the engine decided.
pub struct ReportBuilder<'a> {
    pub(crate) loaded: &'a Loaded,
}

impl ReportBuilder<'_> {
    pub(crate) fn pod(&self, pod: PodId) -> String {
        self.loaded.names.pod(pod).to_string()
    }

    pub(crate) fn preemptor(&self, ask: &Preemptor) -> PreemptorReport {
        let (kind, name) = match ask.id {
            PreemptorId::Pod(pod) => ("Pod", self.pod(pod)),
            PreemptorId::Group(group) => ("PodGroup", self.loaded.names.group(group).to_string()),
            PreemptorId::Workload(workload) => ("Workload", self.loaded.names.workload(workload).to_string()),
        };
        let pods = ask.members.iter().map(|&pod| self.pod(pod)).collect();
        PreemptorReport { kind, name, priority: ask.priority.0, pods, needed: ask.needed }
    }

    pub(crate) fn nodes_of(&self, plan: &Plan) -> String {
        let mut nodes: Vec<NodeId> = plan.placement.iter().map(|&(_, node)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        match nodes.as_slice() {
            [node] => self.loaded.names.node(*node).to_owned(),
            nodes => format!("{} nodes", nodes.len()),
        }
    }

    /// A workload that is taken: on what ground, and by which way it was reached.
    pub(crate) fn law(&self, law: &Law) -> LawReport {
        let ReasonText { name, text, .. } = reasons::law(law, &self.loaded.names);
        let named = |&text: &TextId| self.loaded.names.text(text).to_owned();
        let report = LawReport { name, text, ..LawReport::default() };
        match law {
            Law::PreemptionInProgress { terminating: leaving, until, .. } => {
                let waits_for = leaving.iter().map(|&pod| self.pod(pod)).collect();
                LawReport { waits_for, until: Some(reasons::format_time(*until)), ..report }
            }
            Law::PreemptionDelay { until } => LawReport { until: Some(reasons::format_time(*until)), ..report },
            Law::SchedulingGates { gates, .. } => LawReport { gates: gates.iter().map(named).collect(), ..report },
            Law::Unsupported { field, .. } => LawReport { field: Some(named(field)), ..report },
            _ => report,
        }
    }

    pub(crate) fn unit(&self, id: UnitId) -> UnitReport {
        let snapshot = &self.loaded.snapshot;
        let unit = snapshot.unit(id);
        let group = unit.pods.first().and_then(|&pod| snapshot.pod(pod).group);
        let whole = group.filter(|&group| snapshot.group(group).mode == reprieve_engine::snapshot::DisruptionMode::All);
        let mut nodes: Vec<NodeId> = unit.pods.iter().filter_map(|&pod| snapshot.bound_node(pod)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        UnitReport {
            pods: unit.pods.iter().map(|&pod| self.pod(pod)).collect(),
            nodes: nodes.into_iter().map(|node| self.loaded.names.node(node).to_owned()).collect(),
            workload: unit.workload.map(|workload| self.loaded.names.workload(workload).to_string()),
            group: whole.map(|group| self.loaded.names.group(group).to_string()),
            queue: self.queue_of(id).map(|queue| self.loaded.names.queue(queue).to_owned()),
            priority: unit.priority.0,
            started: time(unit.start),
        }
    }

    pub(crate) fn queue_of(&self, id: UnitId) -> Option<QueueId> {
        let (snapshot, unit) = (&self.loaded.snapshot, self.loaded.snapshot.unit(id));
        match unit.workload {
            Some(workload) => snapshot.workload(workload).queue,
            None => unit.pods.first().and_then(|&pod| snapshot.pod(pod).queue),
        }
    }

    pub(crate) fn victim(&self, reason: &VictimReason) -> VictimReport {
        let names = &self.loaded.names;
        let (pod, node) = (self.pod(reason.pod), names.node(reason.node).to_owned());
        let ReasonText { name, text, .. } = reasons::misfit(&reason.failure, &reason.shortages, names);
        let text = format!("{pod} would not fit on {node}: {text}");
        VictimReport {
            unit: self.unit(reason.unit),
            pod,
            node,
            filter: name,
            text,
            short: self.short(&reason.failure, &reason.shortages),
            ..VictimReport::default()
        }
    }

    /// By resource that is short on a node: how much is missing.
    pub fn short(&self, misfit: &FilterFailure, shortages: &[Shortage]) -> BTreeMap<String, String> {
        if !matches!(misfit, FilterFailure::Resource { .. } | FilterFailure::Ports) {
            return BTreeMap::new();
        }
        let amount = |shortage: &Shortage| {
            let name = self.loaded.names.resource(shortage.resource);
            (name.to_owned(), format(name, shortage.amount))
        };
        shortages.iter().map(amount).collect()
    }

    pub(crate) fn spared(&self, entry: &SparedUnit) -> SparedReport {
        let &SparedUnit { unit, ref spared, decisive } = entry;
        let of_reprieved = "the preemptor fits without taking them";
        let ReasonText { name, text, of_many } = match spared {
            Spared::Law(Law::PreemptionDelay { until }) => reason_text(
                "PreemptionDelay",
                format!("the preemptor may preempt from {} on", reasons::format_time(*until)),
            ),
            Spared::Law(law) => reasons::law(law, &self.loaded.names),
            Spared::NotEnough => reason_text("NotEnough", "nobody is taken for a preemptor that would still not fit"),
            Spared::Reprieved => reason_text("Reprieved", "the preemptor fits without taking it").of_many(of_reprieved),
            Spared::NotReached => reason_text("NotReached", "the search ended before it looked at it")
                .of_many("the search ended before it looked at them"),
            Spared::EqualCost(victim) => reason_text("Reprieved", self.equal_cost(unit, *victim)).of_many(of_reprieved),
        };
        let equal_cost = matches!(spared, Spared::EqualCost(_));
        let reached = !matches!(spared, Spared::NotReached);
        SparedReport { unit: self.unit(unit), law: name, equal_cost, decisive, text, of_many, reached }
    }

    /// A unit that could be taken instead of this victim is spared.
    pub(crate) fn equal_cost(&self, spared: UnitId, victim: UnitId) -> String {
        let fits = "the preemptor fits without taking it";
        let unit = self.loaded.snapshot.unit(victim);
        match (unit.workload, unit.pods.first()) {
            (Some(workload), _) => {
                let victim = self.loaded.names.workload(workload);
                format!("{fits}; equal cost to {victim}, the order of uids decides")
            }
            (None, Some(&pod)) => format!("{fits}; equal cost to {}{}", self.pod(pod), self.first_node(spared, victim)),
            (None, None) => fits.to_owned(),
        }
    }

    /// Where the victim's node comes before that of the spared unit, this is what decides.
    pub(crate) fn first_node(&self, spared: UnitId, victim: UnitId) -> String {
        let snapshot = &self.loaded.snapshot;
        let node = |unit: UnitId| snapshot.unit(unit).pods.first().and_then(|&pod| snapshot.bound_node(pod));
        let names = node(victim).zip(node(spared)).map(|(one, two)| [one, two].map(|id| self.loaded.names.node(id)));
        match names {
            Some([chosen, other]) if chosen < other => format!(", first by name is {chosen}"),
            _ => String::new(),
        }
    }
}

pub(crate) fn cost(cost: &Cost) -> CostReport {
    CostReport {
        budget_violations: cost.violations,
        highest_priority: cost.top.0,
        priority_sum: cost.weight,
        pods: cost.pods,
        oldest_start: time(cost.oldest.0).map(|time| time.to_string()),
    }
}

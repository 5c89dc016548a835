//! Converts ids of the engine into the named parts of a report: preemptor, units, victims, spared units, laws, costs.

use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::choose::{Cost, Plan};
use reprieve_engine::explanation::{Spared, SparedUnit, VictimReason};
use reprieve_engine::filters::FilterFailure;
use reprieve_engine::fit::{Preemptor, PreemptorId, Shortage};
use reprieve_engine::laws::Law;
use reprieve_engine::snapshot::DisruptionMode;
use reprieve_engine::{GroupId, NodeId, PodId, QueueId, TextId, UnitId};

use crate::reasons::{self, ReasonText, reason_text};
use reprieve_api::quantity::format;
use reprieve_loader::Loaded;
use reprieve_loader::time::time;

use crate::decision::{
    CostReport, LawReport, PreemptorKind, PreemptorReport, SecondOrderReport, SparedReport, UnitReport, VictimReport,
};

const FITS_WITHOUT: &str = "the preemptor fits without evicting it";

/// Builds the parts of a report from the names of a loaded snapshot.
pub struct ReportBuilder<'a> {
    pub(crate) loaded: &'a Loaded,
}

impl ReportBuilder<'_> {
    pub(crate) fn pod(&self, pod: PodId) -> String {
        self.loaded.names.pod(pod).to_string()
    }

    pub(crate) fn preemptor(&self, preemptor: &Preemptor) -> PreemptorReport {
        let (kind, name) = match preemptor.id {
            PreemptorId::Pod(pod) => (PreemptorKind::Pod, self.pod(pod)),
            PreemptorId::Group(id) => match self.owner_of(id) {
                Some(owner) => (PreemptorKind::PodGroup, format!("gang (from {owner})")),
                None => (PreemptorKind::PodGroup, self.loaded.names.group(id).to_string()),
            },
            PreemptorId::Workload(id) => (PreemptorKind::Workload, self.loaded.names.workload(id).to_string()),
        };
        let pods = preemptor.members.iter().map(|&pod| self.pod(pod)).collect();
        PreemptorReport { kind, name, priority: preemptor.priority.0, pods, needed: preemptor.needed }
    }

    pub(crate) fn nodes_of(&self, plan: &Plan) -> String {
        let nodes: BTreeSet<NodeId> = plan.placement.iter().map(|&(_, node)| node).collect();
        match nodes.first() {
            Some(&node) if nodes.len() == 1 => self.loaded.names.node(node).to_owned(),
            _ => format!("{} nodes", nodes.len()),
        }
    }

    pub(crate) fn law(&self, law: &Law) -> LawReport {
        let ReasonText { name, text, .. } = reasons::law(law, &self.loaded.names);
        let named = |&text: &TextId| self.loaded.names.text(text).to_owned();
        let report = LawReport { name, text, ..LawReport::default() };
        match law {
            Law::PreemptionInProgress { terminating, until, .. } => {
                let waits_for = terminating.iter().map(|&pod| self.pod(pod)).collect();
                LawReport { waits_for, until: until.map(reasons::format_time), ..report }
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
        let whole = group.filter(|&group| snapshot.group(group).mode == DisruptionMode::All);
        let nodes: BTreeSet<NodeId> = unit.pods.iter().filter_map(|&pod| snapshot.bound_node(pod)).collect();
        UnitReport {
            pods: unit.pods.iter().map(|&pod| self.pod(pod)).collect(),
            nodes: nodes.into_iter().map(|node| self.loaded.names.node(node).to_owned()).collect(),
            workload: unit.workload.map(|workload| self.loaded.names.workload(workload).to_string()),
            group: whole.map(|group| self.loaded.names.group(group).to_string()),
            owner: whole.and_then(|group| self.owner_of(group)),
            queue: self.queue_of(id).map(|queue| self.loaded.names.queue(queue).to_owned()),
            priority: unit.priority.0,
            started: time(unit.start),
        }
    }

    /// The owner that forms a group (docs/rules/kubernetes-groups.md#ga8): `JobSet default/train`.
    fn owner_of(&self, group: GroupId) -> Option<String> {
        let name = self.loaded.names.group(group);
        let mut words = name.name.splitn(3, '/');
        let (kind, owner) = (words.next()?, words.next()?);
        let replica = words.next().map(|index| format!(" replica {index}")).unwrap_or_default();
        let is_owner = self.loaded.snapshot.group(group).from_owner;
        is_owner.then(|| format!("{kind} {}/{owner}{replica}", name.namespace))
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
        let ReasonText { name, text, .. } = reasons::filter_failure(&reason.failure, &reason.shortages, names);
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

    /// Why a node is refused whose room is not known, if resources are the reason. What such a node lacks is not known either: it offers
    /// nothing, so that no pod is placed there.
    pub(crate) fn unknown_room(&self, node: NodeId, failure: &FilterFailure) -> Option<ReasonText> {
        let is_about_room = matches!(failure, FilterFailure::Resource { .. });
        self.loaded.blocked.get(&node).filter(|_| is_about_room).map(reasons::unknown_room)
    }

    /// The resources that are short on a node, with the missing amount.
    pub fn short(&self, failure: &FilterFailure, shortages: &[Shortage]) -> BTreeMap<String, String> {
        if !matches!(failure, FilterFailure::Resource { .. } | FilterFailure::Ports) {
            return BTreeMap::new();
        }
        let amount = |shortage: &Shortage| {
            let name = self.loaded.names.resource(shortage.resource);
            (name.to_owned(), format(name, shortage.amount))
        };
        shortages.iter().map(amount).collect()
    }

    pub(crate) fn spared(&self, preemptor: PreemptorId, entry: &SparedUnit) -> SparedReport {
        let &SparedUnit { unit, ref spared, decisive } = entry;
        let many_reprieved = "the preemptor fits without evicting them";
        let ReasonText { name, text, of_many } = match spared {
            Spared::Law(law) => reasons::law(law, &self.loaded.names),
            Spared::NotEnough => {
                reason_text("NotEnough", "evicting it would not be enough: the preemptor would still not fit")
                    .of_many("evicting them would not be enough: the preemptor would still not fit")
            }
            Spared::Reprieved => reason_text("Reprieved", FITS_WITHOUT).of_many(many_reprieved),
            Spared::NotReached => reason_text("NotReached", "the search ended before this unit")
                .of_many("the search ended before these units"),
            Spared::EqualCost(victim) => {
                reason_text("Reprieved", self.equal_cost(preemptor, unit, *victim)).of_many(many_reprieved)
            }
        };
        let equal_cost = matches!(spared, Spared::EqualCost(_));
        let (reached, is_lawful) = (!matches!(spared, Spared::NotReached), matches!(spared, Spared::Law(_)));
        SparedReport { unit: self.unit(unit), law: name, equal_cost, decisive, text, of_many, reached, is_lawful }
    }

    /// Why a unit is spared that could be evicted instead of this victim at the same cost.
    fn equal_cost(&self, preemptor: PreemptorId, spared: UnitId, victim: UnitId) -> String {
        let unit = self.loaded.snapshot.unit(victim);
        match (unit.workload, unit.pods.first()) {
            (Some(workload), _) => {
                let victim = self.loaded.names.workload(workload);
                format!("{FITS_WITHOUT}; equal cost to {victim}, the order of uids decides")
            }
            (None, Some(&pod)) => {
                format!(
                    "{FITS_WITHOUT}; equal cost to {}{}",
                    self.pod(pod),
                    self.first_place(preemptor, spared, victim)
                )
            }
            (None, None) => FITS_WITHOUT.to_owned(),
        }
    }

    /// Of two units of equal cost the one in the domain that is first by name is evicted, or, within a domain, the one on the node that is.
    fn first_place(&self, preemptor: PreemptorId, spared: UnitId, victim: UnitId) -> String {
        let Loaded { snapshot, names, .. } = self.loaded;
        let node = |unit: UnitId| snapshot.unit(unit).pods.first().and_then(|&pod| snapshot.bound_node(pod));
        let Some((victim, spared)) = node(victim).zip(node(spared)) else { return String::new() };
        let topology = match preemptor {
            PreemptorId::Group(group) => snapshot.group(group).topology,
            PreemptorId::Pod(_) | PreemptorId::Workload(_) => None,
        };
        let domain = |node: NodeId| topology.and_then(|id| Some((id, snapshot.topology(id).domain[node.index()]?)));
        match (domain(victim), domain(spared)) {
            (Some((topology, first)), Some((_, second))) if first != second => {
                format!(", domain {} is first by name", names.domain(topology, first))
            }
            _ if names.node(victim) < names.node(spared) => format!(", {} is first by name", names.node(victim)),
            _ => String::new(),
        }
    }
}

pub(crate) fn cost(plan: &Plan) -> CostReport {
    let Cost { violations, top, weight, pods, oldest } = plan.cost;
    let second_order = plan.second_order.as_ref().filter(|second| second.pods > 0).map(|second| SecondOrderReport {
        budget_violations: second.violations,
        priority_sum: second.weight,
        pods: second.pods,
    });
    CostReport {
        budget_violations: violations,
        highest_priority: top.0,
        priority_sum: weight,
        pods,
        oldest_start: time(oldest.0).map(|time| time.to_string()),
        second_order,
    }
}

//! The reasons for a decision. The search reports each reason to a `Recorder` when it finds it; `NoRecorder` ignores all reports and is
//! compiled away, `ExplanationRecorder` collects them into an [`Explanation`].

use std::collections::BTreeSet;

use crate::decision::{Difference, Outcome, Plan};
use crate::domains::Domain;
use crate::filters::FilterFailure;
use crate::fit::{Placement, Preemptor, Shortage};
use crate::ids::{FlavorId, NodeId, PodId, QuotaResourceId, UnitId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

/// Why a decision is as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Every running unit that is neither a victim nor the preemptor.
    pub spared: Vec<SparedUnit>,
    /// For each victim, the reason why it could not be reprieved.
    pub victims: Vec<VictimReason>,
    /// For each victim of the chosen plan, what follows its eviction; empty if that was not decided.
    pub returns: Vec<ReturnEntry>,
    /// Whether a plan of a lower cost than the chosen one was not judged, because enough plans were judged before it.
    pub judging_ended: bool,
    /// For a pod: the result of each node that the search tried.
    pub nodes: Vec<NodeEntry>,
    /// For a group: the result of each domain that the search tried.
    pub domains: Vec<DomainEntry>,
    /// For a workload: each flavor that the search tried.
    pub flavors: Vec<FlavorAttempt>,
}

/// What follows the eviction of a victim. docs/rules/kubernetes-groups.md#g28
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnEntry {
    /// The victim.
    pub victim: UnitId,
    /// What follows.
    pub result: ReturnResult,
}

/// What follows the eviction of a victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnResult {
    /// Nothing creates it again.
    NotRecreated,
    /// It terminates already, so that the plan does not cause its return.
    Terminating,
    /// It returns, and another scheduler decides about it, or it has a requirement that no decision evaluates.
    NotDecided,
    /// It returns and fits on these nodes without preemption.
    Fits(Vec<NodeId>),
    /// It returns and fits on these nodes after the units are evicted.
    Evicts(Vec<NodeId>, Vec<UnitId>),
    /// It returns and stays pending.
    Waits,
}

/// A running unit that is not a victim. If every unit, node and domain that is not decisive is removed from the input, with all pods there,
/// then outcome, victims and placement stay the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparedUnit {
    /// The unit.
    pub unit: UnitId,
    /// The reason why the unit is not a victim.
    pub spared: Spared,
    /// Whether the decision may depend on the unit.
    pub decisive: bool,
}

/// The result of a node for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The node.
    pub node: NodeId,
    /// The result of the search.
    pub result: NodeResult,
    /// Whether the decision may depend on the node or on its pods.
    pub decisive: bool,
}

/// The result of a domain for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainEntry {
    /// The domain.
    pub domain: Domain,
    /// The result of the search.
    pub result: DomainResult,
    /// Whether the decision may depend on one of its nodes or on their pods.
    pub decisive: bool,
}

/// The reason why a unit is not a victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spared {
    /// A law spares the unit.
    Law(Law),
    /// The preemptor fits without this victim. docs/rules/kubernetes-pods.md#p15, docs/rules/kubernetes-groups.md#g9,
    /// docs/rules/yunikorn.md#y12, docs/rules/koordinator.md#q11, docs/rules/kueue.md#k18
    Reprieved,
    /// As [`Spared::Reprieved`], and the unit would have cost the same as this victim: only the order of names, or of the UIDs of
    /// workloads, decided.
    EqualCost(UnitId),
    /// The laws allow to take the unit, but no set of victims makes the preemptor fit. docs/rules/kueue.md#k17,
    /// docs/rules/kubernetes-groups.md#g8
    NotEnough,
    /// The search ended before it reached the unit.
    NotReached,
}

/// The result of one node or domain for the preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementResult<R> {
    /// The preemptor is placed there.
    Chosen,
    /// Feasible, at a higher cost or at the same cost later in the order of names. The difference from the chosen plan is `None` if no plan
    /// was chosen.
    HigherCost(Plan, Option<Difference>),
    /// Not feasible.
    Infeasible(R),
}

/// The result of a node for a pod.
pub type NodeResult = PlacementResult<RefusedNode>;

/// The result of a domain for a group.
pub type DomainResult = PlacementResult<DomainRefusal>;

impl<R: Clone> PlacementResult<R> {
    /// The result before a plan is chosen.
    fn of(result: &Result<Plan, R>) -> Self {
        match result {
            Ok(plan) => Self::HigherCost(plan.clone(), None),
            Err(refusal) => Self::Infeasible(refusal.clone()),
        }
    }

    /// The plan, before a plan is chosen.
    fn plan_mut(&mut self) -> Option<&mut Plan> {
        match self {
            Self::HigherCost(plan, _) => Some(plan),
            Self::Chosen | Self::Infeasible(_) => None,
        }
    }

    /// Updates the result after a plan is chosen, here or elsewhere.
    fn compare(&mut self, difference: impl Fn(&Plan) -> Difference, is_chosen: impl FnOnce(&Plan) -> bool) {
        if let Self::HigherCost(plan, differs) = self {
            *differs = Some(difference(plan));
            if is_chosen(plan) {
                *self = Self::Chosen;
            }
        }
    }
}

/// Why a pod cannot be placed on a node, even with preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRefusal {
    /// The pod does not fit, and no pod on the node may be taken.
    NoCandidate(FilterFailure),
    /// The pod does not fit even without all candidates.
    FilterFailed(FilterFailure),
    /// A law spares all pods on the node.
    Law(Law),
}

/// A refusal and, if an explanation is recorded, every resource that is short on the node or over the limit of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedNode {
    /// The reason.
    pub refusal: NodeRefusal,
    /// The resources that are short.
    pub shortages: Vec<Shortage>,
}

impl From<NodeRefusal> for RefusedNode {
    fn from(refusal: NodeRefusal) -> Self {
        Self { refusal, shortages: Vec::new() }
    }
}

/// Why a group cannot be placed in a domain, not even with preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainRefusal {
    /// Too few members fit, and no unit in the domain may be taken.
    NoCandidate(TooFew),
    /// Too few members fit even without all candidates.
    TooFewPlaced(TooFew),
    /// Whether enough members fit without all candidates is not known: the step budget of the search is spent.
    SearchLimit(TooFew),
}

/// The number of members that fit in a domain, and what the first other member lacks on each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TooFew {
    /// The number of members that fit.
    pub placed: usize,
    /// The first member that does not fit; `None` if there are too few members.
    pub unplaced: Option<PodId>,
    /// The reason for each node why it does not fit there.
    pub failures: Vec<NodeFilterFailure>,
}

/// Why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFilterFailure {
    /// The node.
    pub node: NodeId,
    /// The reason.
    pub failure: FilterFailure,
    /// Every resource that is short, if resources are the reason.
    pub shortages: Vec<Shortage>,
}

/// Why a unit could not be reprieved: the first pod of the preemptor that would no longer fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimReason {
    /// The unit.
    pub unit: UnitId,
    /// The pod that would not fit.
    pub pod: PodId,
    /// The node of that pod.
    pub node: NodeId,
    /// The filter that fails.
    pub failure: FilterFailure,
    /// Every resource that would be short, or over the limit of a queue, if that is the reason.
    pub shortages: Vec<Shortage>,
}

/// How a flavor can provide a resource, the worst first. The names are Kueue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlavorMode {
    /// The request exceeds all quota that could ever be available.
    NoFit,
    /// Preemption would be necessary, and the laws allow no victim.
    NoCandidates,
    /// A workload in the same queue would be preempted.
    Preempt,
    /// Only workloads in other queues would be preempted.
    Reclaim,
    /// The quota is free.
    Fit,
}

/// A flavor that the search tried for a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorAttempt {
    /// The index of the pod set.
    pub pod_set: usize,
    /// The flavor.
    pub flavor: FlavorId,
    /// The mode of its worst resource; `None` if the pods may not use the flavor.
    pub mode: Option<FlavorMode>,
    /// The borrowing level.
    pub level: usize,
    /// Whether the flavor was chosen.
    pub chosen: bool,
    /// Every resource of which too little is available, and the amount by which the request, with that of earlier pod sets, exceeds it.
    pub short: Vec<(QuotaResourceId, i64)>,
}

/// The part of the input that a decision may depend on. Everything else can be removed from the input without changing the decision; what
/// is marked as decisive may turn out not to matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decisive {
    /// By unit: whether the decision may depend on it.
    pub units: Vec<bool>,
    /// By node: whether the decision may depend on it. INVARIANT: a node with a decisive unit is decisive.
    pub nodes: Vec<bool>,
}

/// Receives each reason when it is found. A search that is repeated reports again; the last report about a unit counts. A search whose
/// result may be discarded reports to a clone, which replaces the recorder if the result is used.
pub(crate) trait Recorder: Clone {
    /// Whether reports are kept. Work that only an explanation needs depends on this constant.
    const RECORDS: bool;

    /// No law spares the unit. If it is no victim in the end, it was reprieved, or no set of victims was enough.
    fn candidate(&mut self, _unit: UnitId) {}

    /// The law spares the unit.
    fn spared(&mut self, _unit: UnitId, _law: Law) {}

    /// The unit is reprieved, and would have cost the same as the victim.
    fn equal_cost(&mut self, _unit: UnitId, _victim: UnitId) {}

    /// The reasons why the victims of the chosen plan could not be reprieved.
    fn victims(&mut self, _reasons: Vec<VictimReason>) {}

    /// The law, if the last report about the unit is one.
    fn law_of(&self, _unit: UnitId) -> Option<&Law> {
        None
    }

    /// The candidates reported so far.
    fn candidates(&self) -> Vec<UnitId> {
        Vec::new()
    }

    /// The result of a node for a pod.
    fn node(&mut self, _node: NodeId, _result: &Result<Plan, RefusedNode>) {}

    /// The result of a domain for a group.
    fn domain(&mut self, _domain: &Domain, _result: &Result<Plan, DomainRefusal>) {}

    /// The plan that is chosen among those reported for nodes or domains, and the difference of another plan from it.
    fn chosen(&mut self, _plan: &Plan, _difference: impl Fn(&Plan) -> Difference) {}

    /// A flavor that the search tried.
    fn flavor(&mut self, _attempt: FlavorAttempt) {}

    /// The part of the input that the decision may depend on; all of it if never reported.
    fn decisive(&mut self, _decisive: Decisive) {}

    /// What follows the evictions of the chosen plan, and whether a plan of a lower cost was not judged.
    fn returns(&mut self, _returns: Vec<ReturnEntry>, _judging_ended: bool) {}

    /// A reported plan with what its returning victims evict.
    fn judged(&mut self, _plan: &Plan) {}

    /// An empty recorder for a decision within this one.
    fn nested(&self, snapshot: &Snapshot) -> Self;

    /// Adds what a decision within this one, with this placement, depends on.
    fn depends_on_nested(&mut self, _nested: Self, _placement: &Placement) {}

    /// Marks the whole input as decisive.
    fn depends_on_everything(&mut self) {}

    /// The nodes that decisions within this one depend on; `None` if they depend on everything.
    fn nested_nodes(&self) -> Option<Vec<NodeId>> {
        Some(Vec::new())
    }
}

/// Ignores every report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRecorder;

impl Recorder for NoRecorder {
    const RECORDS: bool = false;

    fn nested(&self, _snapshot: &Snapshot) -> Self {
        Self
    }
}

/// Collects the reports of one decision.
#[derive(Clone, Debug)]
pub(crate) struct ExplanationRecorder {
    /// By unit: the last report about it.
    units: Vec<Option<UnitReport>>,
    /// Complete except for the units, which `finish` adds.
    explanation: Explanation,
    decisive: Option<Decisive>,
    /// The nodes that decisions within this one depend on; `None` if they depend on everything.
    nested: Option<BTreeSet<NodeId>>,
}

#[derive(Clone, Debug)]
enum UnitReport {
    Candidate,
    Law(Law),
    EqualCost(UnitId),
}

impl ExplanationRecorder {
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            units: vec![None; snapshot.n_units()],
            explanation: Explanation::default(),
            decisive: None,
            nested: Some(BTreeSet::new()),
        }
    }

    /// The explanation of the outcome of the recorded search.
    pub fn finish(self, snapshot: &Snapshot, preemptor: &Preemptor, outcome: &Outcome) -> Explanation {
        let Self { mut units, mut explanation, decisive, nested: _ } = self;
        let plan = match outcome {
            Outcome::Preempt(plan) => Some(plan),
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => None,
        };
        let mut is_spared = vec![true; units.len()];
        let victims = plan.into_iter().flat_map(|plan| plan.victims.iter().copied());
        for unit in victims.chain(preemptor.members.iter().filter_map(|&pod| snapshot.unit_of(pod))) {
            is_spared[unit.index()] = false;
        }
        for unit in snapshot.unit_ids().filter(|unit| is_spared[unit.index()]) {
            let spared = match units[unit.index()].take() {
                None => Spared::NotReached,
                Some(UnitReport::Law(law)) => Spared::Law(law),
                Some(UnitReport::EqualCost(victim)) => Spared::EqualCost(victim),
                Some(UnitReport::Candidate) => match outcome {
                    Outcome::Preempt(_) | Outcome::Schedule(_) | Outcome::Wait(_) => Spared::Reprieved,
                    Outcome::Unschedulable(_) => Spared::NotEnough,
                },
            };
            let decisive = decisive.as_ref().is_none_or(|decisive| decisive.units[unit.index()]);
            explanation.spared.push(SparedUnit { unit, spared, decisive });
        }
        if let Some(Decisive { nodes, .. }) = &decisive {
            for entry in &mut explanation.nodes {
                entry.decisive = nodes[entry.node.index()];
            }
            for entry in &mut explanation.domains {
                entry.decisive = entry.domain.nodes.iter().any(|node| nodes[node.index()]);
            }
        }
        explanation
    }
}

impl Recorder for ExplanationRecorder {
    const RECORDS: bool = true;

    fn candidate(&mut self, unit: UnitId) {
        self.units[unit.index()] = Some(UnitReport::Candidate);
    }

    fn spared(&mut self, unit: UnitId, law: Law) {
        self.units[unit.index()] = Some(UnitReport::Law(law));
    }

    fn equal_cost(&mut self, unit: UnitId, victim: UnitId) {
        self.units[unit.index()] = Some(UnitReport::EqualCost(victim));
    }

    fn victims(&mut self, reasons: Vec<VictimReason>) {
        self.explanation.victims = reasons;
    }

    fn law_of(&self, unit: UnitId) -> Option<&Law> {
        match &self.units[unit.index()] {
            Some(UnitReport::Law(law)) => Some(law),
            Some(UnitReport::Candidate | UnitReport::EqualCost(_)) | None => None,
        }
    }

    fn candidates(&self) -> Vec<UnitId> {
        let is_candidate = |(_, report): &(usize, &Option<UnitReport>)| {
            matches!(report, Some(UnitReport::Candidate | UnitReport::EqualCost(_)))
        };
        self.units.iter().enumerate().filter(is_candidate).map(|(unit, _)| UnitId::new(unit)).collect()
    }

    fn node(&mut self, node: NodeId, result: &Result<Plan, RefusedNode>) {
        self.explanation.nodes.push(NodeEntry { node, result: PlacementResult::of(result), decisive: true });
    }

    fn domain(&mut self, domain: &Domain, result: &Result<Plan, DomainRefusal>) {
        let (domain, result) = (domain.clone(), PlacementResult::of(result));
        self.explanation.domains.push(DomainEntry { domain, result, decisive: true });
    }

    fn chosen(&mut self, chosen: &Plan, difference: impl Fn(&Plan) -> Difference) {
        for NodeEntry { result, .. } in &mut self.explanation.nodes {
            result.compare(&difference, |plan| plan.placement == chosen.placement);
        }
        let first = chosen.placement.first().map(|&(_, node)| node);
        for DomainEntry { domain, result, .. } in &mut self.explanation.domains {
            result.compare(&difference, |_| first.is_some_and(|node| domain.nodes.contains(&node)));
        }
    }

    fn flavor(&mut self, attempt: FlavorAttempt) {
        self.explanation.flavors.push(attempt);
    }

    fn decisive(&mut self, decisive: Decisive) {
        self.decisive = Some(decisive);
    }

    fn returns(&mut self, returns: Vec<ReturnEntry>, judging_ended: bool) {
        (self.explanation.returns, self.explanation.judging_ended) = (returns, judging_ended);
    }

    fn judged(&mut self, judged: &Plan) {
        let nodes = self.explanation.nodes.iter_mut().map(|entry| entry.result.plan_mut());
        let domains = self.explanation.domains.iter_mut().map(|entry| entry.result.plan_mut());
        if let Some(plan) = nodes.chain(domains).flatten().find(|plan| plan.placement == judged.placement) {
            plan.second_order.clone_from(&judged.second_order);
        }
    }

    fn nested(&self, snapshot: &Snapshot) -> Self {
        Self::new(snapshot)
    }

    fn depends_on_nested(&mut self, nested: Self, placement: &Placement) {
        let placed = placement.iter().map(|&(_, node)| node);
        match (&mut self.nested, nested.decisive) {
            (Some(nodes), Some(decisive)) => {
                let of_nested = decisive.nodes.iter().enumerate().filter(|(_, is_decisive)| **is_decisive);
                nodes.extend(of_nested.map(|(node, _)| NodeId::new(node)).chain(placed));
            }
            (_, None) => self.nested = None,
            (None, Some(_)) => {}
        }
    }

    fn depends_on_everything(&mut self) {
        self.nested = None;
    }

    fn nested_nodes(&self) -> Option<Vec<NodeId>> {
        Some(self.nested.as_ref()?.iter().copied().collect())
    }
}

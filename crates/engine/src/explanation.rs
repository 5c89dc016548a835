//! Why a decision is as it is. The search reports each reason to a `Recorder` when it finds it; `NoRecorder` ignores all
//! reports and is compiled away, `ExplanationRecorder` collects them into an [`Explanation`].

use crate::decision::{Difference, Outcome, Plan};
use crate::domains::Domain;
use crate::filters::FilterFailure;
use crate::fit::{Preemptor, Shortage};
use crate::ids::{FlavorId, NodeId, PodId, QuotaResourceId, UnitId};
use crate::laws::Law;
use crate::snapshot::Snapshot;

/// Why a decision is as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Every running unit that is neither a victim nor the preemptor itself.
    pub spared: Vec<SparedUnit>,
    /// For each victim, why it could not be reprieved.
    pub victims: Vec<VictimReason>,
    /// For a pod: each node that was looked at, and what landing there would mean.
    pub nodes: Vec<NodeEntry>,
    /// For a group: each domain that was looked at, and what landing there would mean.
    pub domains: Vec<DomainEntry>,
    /// For a workload: each flavor that was looked at.
    pub flavors: Vec<FlavorAttempt>,
}

/// A running unit that is not taken. Removing from the input every unit, node and domain that is not decisive, with everything
/// that runs there, leaves outcome, victims and placement as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparedUnit {
    /// The unit.
    pub unit: UnitId,
    /// Why it is not taken.
    pub spared: Spared,
    /// Whether the decision may depend on it.
    pub decisive: bool,
}

/// A node that was looked at for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The node.
    pub node: NodeId,
    /// What landing there would mean.
    pub result: NodeResult,
    /// Whether the decision may depend on the node or on what runs there.
    pub decisive: bool,
}

/// A domain that was looked at for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainEntry {
    /// The domain.
    pub domain: Domain,
    /// What landing there would mean.
    pub result: DomainResult,
    /// Whether the decision may depend on one of its nodes or on what runs there.
    pub decisive: bool,
}

/// Why a unit is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spared {
    /// By a law.
    Law(Law),
    /// The preemptor fits without taking it.
    Reprieved,
    /// As [`Spared::Reprieved`], and taking it instead of this victim would have cost the same: only the order of names, or of
    /// the uids of workloads, decided.
    EqualCost(UnitId),
    /// It might be taken, but no set that might be taken makes the preemptor fit.
    NotEnough,
    /// The search ended before it looked at the unit.
    NotReached,
}

/// What landing in a place means for the preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementResult<R> {
    /// It lands there.
    Chosen,
    /// It could land there, at a higher cost, or at the same in a later place. The difference to the chosen plan is `None` where no
    /// plan was chosen.
    HigherCost(Plan, Option<Difference>),
    /// It cannot land there.
    Infeasible(R),
}

/// What landing on a node means for a pod.
pub type NodeResult = PlacementResult<RefusedNode>;

/// What landing in a domain means for a group.
pub type DomainResult = PlacementResult<DomainRefusal>;

impl<R: Clone> PlacementResult<R> {
    /// While no plan is chosen.
    fn of(result: &Result<Plan, R>) -> Self {
        match result {
            Ok(plan) => Self::HigherCost(plan.clone(), None),
            Err(refusal) => Self::Infeasible(refusal.clone()),
        }
    }

    /// Once a plan is chosen, here or elsewhere.
    fn compare(&mut self, difference: impl Fn(&Plan) -> Difference, is_chosen: impl FnOnce(&Plan) -> bool) {
        if let Self::HigherCost(plan, differs) = self {
            *differs = Some(difference(plan));
            if is_chosen(plan) {
                *self = Self::Chosen;
            }
        }
    }
}

/// Why a pod cannot land on a node, not even with preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRefusal {
    /// No pod there may be taken, and it does not fit as it is.
    NoCandidate(FilterFailure),
    /// It does not fit, whoever goes.
    FilterFailed(FilterFailure),
    /// A law forbids to take anything there.
    Law(Law),
}

/// A refusal, with every resource that is short in the state in which it was found, or over the limit of a queue, where that is why;
/// those only if it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedNode {
    /// Why.
    pub refusal: NodeRefusal,
    /// What is short.
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
    /// No unit there may be taken, and too few members fit as things are.
    NoCandidate(TooFew),
    /// With every candidate gone, too few members fit.
    TooFewPlaced(TooFew),
}

/// How many members fit in a domain, and what the first that does not lacks on each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TooFew {
    /// How many do.
    pub placed: usize,
    /// The first that does not; `None` where there are too few members.
    pub unplaced: Option<PodId>,
    /// Why it fits on none of the nodes.
    pub failures: Vec<NodeFilterFailure>,
}

/// Why a pod does not fit on a node, with every resource that is short where resources are why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFilterFailure {
    /// The node.
    pub node: NodeId,
    /// Why.
    pub failure: FilterFailure,
    /// Every resource that is short.
    pub shortages: Vec<Shortage>,
}

/// Why a unit could not be put back: the first pod of the preemptor that would no longer fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimReason {
    /// The unit.
    pub unit: UnitId,
    /// The pod that would not fit.
    pub pod: PodId,
    /// Where.
    pub node: NodeId,
    /// And why.
    pub failure: FilterFailure,
    /// Every resource that would be short, where resources are why; every resource over the limit, where a queue's limit is.
    pub shortages: Vec<Shortage>,
}

/// How a resource could be had in a flavor, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlavorMode {
    /// It is more than there could ever be.
    NoFit,
    /// Somebody would have to go, and nobody may be taken.
    NoCandidates,
    /// Somebody at home would have to go.
    Preempt,
    /// Only others would have to go.
    Reclaim,
    /// It is there.
    Fit,
}

/// A flavor that was looked at for a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorAttempt {
    /// Which pod set.
    pub pod_set: usize,
    /// The flavor.
    pub flavor: FlavorId,
    /// How its worst resource could be had; `None` where the pods may not use it.
    pub mode: Option<FlavorMode>,
    /// How far up the queue would borrow.
    pub level: usize,
    /// Whether it was taken.
    pub chosen: bool,
    /// Every resource that does not fit as things are, and by how much the request, with what earlier pod sets got, exceeds what is
    /// available.
    pub short: Vec<(QuotaResourceId, i64)>,
}

/// What of the input a decision may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decisive {
    /// By unit.
    pub units: Vec<bool>,
    /// By node. INVARIANT: a node on which a decisive unit runs is decisive.
    pub nodes: Vec<bool>,
}

/// Receives each reason at the moment it is found, and ignores what it has no use for. A search that is made several times reports
/// several times; the last report about a unit counts. A search whose result may be dropped reports to a clone, which replaces the
/// recorder if the result is kept.
pub(crate) trait Recorder: Clone {
    /// Whether reports are kept. Work that only an explanation needs is done under this condition.
    const RECORDS: bool;

    /// No law spares the unit: it may be taken. If it is no victim in the end, it was reprieved, or no set of victims was enough.
    fn candidate(&mut self, _unit: UnitId) {}

    /// The law spares the unit.
    fn spared(&mut self, _unit: UnitId, _law: Law) {}

    /// The unit is reprieved, and taking it instead of the victim would have cost the same.
    fn equal_cost(&mut self, _unit: UnitId, _victim: UnitId) {}

    /// Why each victim of the chosen plan could not be reprieved.
    fn victims(&mut self, _reasons: Vec<VictimReason>) {}

    /// The candidates that were reported so far.
    fn candidates(&self) -> Vec<UnitId> {
        Vec::new()
    }

    /// What landing on a node means for a pod.
    fn node(&mut self, _node: NodeId, _result: &Result<Plan, RefusedNode>) {}

    /// What landing in a domain means for a group.
    fn domain(&mut self, _domain: &Domain, _result: &Result<Plan, DomainRefusal>) {}

    /// The plan that is chosen among those reported by nodes or domains, and in what another plan differs from it.
    fn chosen(&mut self, _plan: &Plan, _difference: impl Fn(&Plan) -> Difference) {}

    /// A flavor that was looked at.
    fn flavor(&mut self, _tried: FlavorAttempt) {}

    /// What the decision may depend on; everything where this is never reported.
    fn decisive(&mut self, _decisive: Decisive) {}
}

/// Ignores every report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRecorder;

impl Recorder for NoRecorder {
    const RECORDS: bool = false;
}

/// Collects the reports of one decision.
#[derive(Clone, Debug)]
pub(crate) struct ExplanationRecorder {
    /// By unit: the last report about it.
    units: Vec<Option<UnitReport>>,
    /// As far as it is known; its units are filled in at the end.
    explanation: Explanation,
    decisive: Option<Decisive>,
}

#[derive(Clone, Debug)]
enum UnitReport {
    Candidate,
    Law(Law),
    EqualCost(UnitId),
}

impl ExplanationRecorder {
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { units: vec![None; snapshot.n_units()], explanation: Explanation::default(), decisive: None }
    }

    /// The explanation of the outcome that was decided while this recorder listened.
    pub fn finish(self, snapshot: &Snapshot, ask: &Preemptor, outcome: &Outcome) -> Explanation {
        let Self { mut units, mut explanation, decisive } = self;
        let plan = match outcome {
            Outcome::Preempt(plan) => Some(plan),
            Outcome::Schedule(_) | Outcome::Wait(_) | Outcome::Unschedulable(_) => None,
        };
        let mut is_spared = vec![true; units.len()];
        let victims = plan.into_iter().flat_map(|plan| plan.victims.iter().copied());
        for unit in victims.chain(ask.members.iter().filter_map(|&pod| snapshot.unit_of(pod))) {
            is_spared[unit.index()] = false;
        }
        for unit in snapshot.unit_ids().filter(|unit| is_spared[unit.index()]) {
            let spared = match units[unit.index()].take() {
                None => Spared::NotReached,
                Some(UnitReport::Law(law)) => Spared::Law(law),
                Some(UnitReport::EqualCost(victim)) => Spared::EqualCost(victim),
                Some(UnitReport::Candidate) => match outcome {
                    Outcome::Preempt(_) | Outcome::Schedule(_) => Spared::Reprieved,
                    Outcome::Wait(law) => Spared::Law(law.clone()),
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
        let (domain, verdict) = (domain.clone(), PlacementResult::of(result));
        self.explanation.domains.push(DomainEntry { domain, result: verdict, decisive: true });
    }

    fn chosen(&mut self, chosen: &Plan, difference: impl Fn(&Plan) -> Difference) {
        for NodeEntry { result: verdict, .. } in &mut self.explanation.nodes {
            verdict.compare(&difference, |plan| plan.placement == chosen.placement);
        }
        let first = chosen.placement.first().map(|&(_, node)| node);
        for DomainEntry { domain, result: verdict, .. } in &mut self.explanation.domains {
            verdict.compare(&difference, |_| first.is_some_and(|node| domain.nodes.contains(&node)));
        }
    }

    fn flavor(&mut self, tried: FlavorAttempt) {
        self.explanation.flavors.push(tried);
    }

    fn decisive(&mut self, decisive: Decisive) {
        self.decisive = Some(decisive);
    }
}

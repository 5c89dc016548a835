//! docs/rules/kubernetes-groups.md#g8 to docs/rules/kubernetes-groups.md#g10, docs/rules/kubernetes-groups.md#g17: a group in one domain.
//! The whole group is placed without all candidates; then as many candidates as possible are reprieved.

use super::cascades::{self, RankedPlan};
use super::{Cascades, Kubernetes};
use crate::candidates::{Candidate, candidates, node_law};
use crate::decision::{EvictionReason, Plan};
use crate::domains::Domain;
use crate::explanation::{DomainRefusal, NodeFilterFailure, Recorder, TooFew};
use crate::fit::{Placement, Preemptor};
use crate::ids::{NodeId, PodId, Priority, Timestamp, UnitId};
use crate::laws::Law;
use crate::place::{NotPlaced, place, place_enough};
use crate::reprieve::{ReprieveTrial, VictimReasons};
use crate::what_if::WhatIf;

impl NodeFilterFailure {
    /// The reason why the pod does not fit on each of these nodes in the what-if; nodes where it fits are left out.
    pub(crate) fn on_each(what_if: &mut WhatIf<'_>, preemptor: &Preemptor, pod: PodId, nodes: &[NodeId]) -> Vec<Self> {
        let failure_on = |&node: &NodeId| {
            let failure = preemptor.filter_failure(what_if, pod, node)?;
            let shortages = failure.may_hide_shortages().then(|| preemptor.every_shortage(what_if, pod, node));
            Some(Self { node, failure, shortages: shortages.unwrap_or_default() })
        };
        nodes.iter().filter_map(failure_on).collect()
    }
}

/// The cheapest plan over all domains; of equal costs the first domain by name. Without a plan, whether a search was not finished.
pub(super) fn best<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    preemptor: &Preemptor,
    domains: &[Domain],
    now: Timestamp,
    recorder: &mut R,
) -> Result<Plan, NotPlaced> {
    let mut none = NotPlaced::TooFew;
    let (mut plans, mut reasons_by_domain) = (Vec::new(), Vec::new());
    for (rank, domain) in domains.iter().enumerate() {
        let mut reasons = Vec::new();
        let recorded = R::RECORDS.then_some(&mut reasons);
        let result = plan(what_if, policy, preemptor, domain, now, recorder, recorded);
        recorder.domain(domain, &result);
        match result {
            Ok(plan) => plans.push(RankedPlan { plan, rank }),
            Err(DomainRefusal::NoCandidate(_) | DomainRefusal::TooFewPlaced(_)) => {}
            Err(DomainRefusal::SearchLimit(_)) => none = NotPlaced::StepLimit,
        }
        reasons_by_domain.push(reasons);
    }
    plans.sort_by_key(|ranked| (ranked.plan.cost, ranked.rank));
    let mut plans = plans.into_iter();
    let first = plans.next().ok_or(none)?;
    let RankedPlan { plan, rank } = match policy.cascades {
        Cascades::Ignore => first,
        Cascades::Include => cascades::lowest(what_if, policy, now, first, |_, _| plans.collect(), recorder),
    };
    recorder.victims(reasons_by_domain.swap_remove(rank));
    Ok(plan)
}

/// The plan for this domain, or why there is none. `reasons` receives the reason for each victim.
///
/// 1. Remove all candidates and place the group.
/// 2. Reprieve candidates that violate budgets, with that placement.
/// 3. Find the lowest priority such that taking no candidate above it is enough, and place the group again.
/// 4. Reprieve candidates.
/// 5. Prefer the nodes that the most important victims free, if that is cheaper.
fn plan<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    preemptor: &Preemptor,
    domain: &Domain,
    now: Timestamp,
    recorder: &mut R,
    reasons: VictimReasons<'_>,
) -> Result<Plan, DomainRefusal> {
    // docs/rules/toleration.md#t3: on these nodes no pod is a candidate, but their free room may be used.
    let law_on = |&node: &NodeId| Some((node, node_law(what_if.snapshot(), preemptor, node, recorder)?));
    let closed: Vec<(NodeId, Law)> = domain.nodes.iter().filter_map(law_on).collect();
    let nodes = domain.nodes.iter().copied();
    let mut removed = candidates(what_if.snapshot(), preemptor, nodes, &closed, now, recorder);
    let mut search = Search { what_if, preemptor, nodes: &domain.nodes };
    if removed.is_empty() {
        return Err(DomainRefusal::NoCandidate(search.too_few::<R>(&removed, domain)));
    }
    let mut placement = match search.placement(&removed, &[]) {
        Ok(placement) => placement,
        Err(NotPlaced::TooFew) => return Err(DomainRefusal::TooFewPlaced(search.too_few::<R>(&removed, domain))),
        Err(NotPlaced::StepLimit) => return Err(DomainRefusal::SearchLimit(search.too_few::<R>(&removed, domain))),
    };
    if policy.priority_cut {
        let spared = search.spared_by_budget(&removed, &placement);
        removed.retain(|candidate| !spared.contains(candidate));
        if let Some((cut, replaced)) = search.cut(&removed) {
            removed.retain(|candidate| search.priority(candidate) <= cut);
            placement = replaced;
        }
    }
    let plan = search.reprieved_plan(&removed, placement, None);
    let plan = search.improved_plan(&removed, plan);
    Ok(match reasons {
        None => plan,
        Some(reasons) => search.reprieved_plan(&removed, plan.placement, Some(reasons)),
    })
}

fn remove(what_if: &mut WhatIf<'_>, removed: &[Candidate]) {
    for candidate in removed {
        what_if.remove_unit(candidate.unit);
    }
}

/// The search in one domain. Every method restores the what-if.
struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    preemptor: &'a Preemptor,
    nodes: &'a [NodeId],
}

impl<'s> Search<'_, 's, '_> {
    fn priority(&self, candidate: &Candidate) -> Priority {
        self.what_if.snapshot().unit(candidate.unit).priority
    }

    /// The placement without the `removed` candidates, if enough members can be placed. Units in `paid` are victims in any case and cost
    /// nothing.
    fn placement(&mut self, removed: &[Candidate], paid: &[UnitId]) -> Result<Placement, NotPlaced> {
        let mark = self.what_if.mark();
        remove(self.what_if, removed);
        let placement = place_enough(self.what_if, self.preemptor, self.nodes, removed, paid);
        self.what_if.back_to(mark);
        placement
    }

    /// The number of members that fit, and what the first other member lacks on each node; only if it is recorded.
    fn too_few<R: Recorder>(&mut self, removed: &[Candidate], domain: &Domain) -> TooFew {
        if !R::RECORDS {
            return TooFew::default();
        }
        let mark = self.what_if.mark();
        remove(self.what_if, removed);
        let placement = place(self.what_if, self.preemptor, self.nodes, removed, &[]);
        let is_placed = |pod: &PodId| placement.iter().any(|(placed, _)| placed == pod);
        let unplaced = self.preemptor.members.iter().copied().find(|pod| !is_placed(pod));
        let on_each = |pod| NodeFilterFailure::on_each(self.what_if, self.preemptor, pod, &domain.nodes);
        let failures = unplaced.map(on_each).unwrap_or_default();
        self.what_if.back_to(mark);
        TooFew { placed: placement.len(), unplaced, failures }
    }

    /// The candidates that violate a budget and can stay with this placement.
    fn spared_by_budget(&mut self, removed: &[Candidate], placement: &Placement) -> Vec<Candidate> {
        let violating: Vec<Candidate> = removed.iter().copied().filter(|candidate| candidate.violations > 0).collect();
        if violating.is_empty() {
            return Vec::new();
        }
        let mark = self.what_if.mark();
        let mut trial = self.trial(removed, placement, None);
        let spared = violating.into_iter().filter(|candidate| trial.put_back(candidate.unit)).collect();
        self.what_if.back_to(mark);
        spared
    }

    /// The lowest sufficient priority and its placement; `None` if it is the highest of all.
    fn cut(&mut self, removed: &[Candidate]) -> Option<(Priority, Placement)> {
        let mut levels: Vec<Priority> = removed.iter().map(|candidate| self.priority(candidate)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.pop(); // the highest is known to be enough
        let mut found = None;
        let (mut low, mut high) = (0, levels.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let below: Vec<Candidate> =
                removed.iter().copied().filter(|candidate| self.priority(candidate) <= levels[middle]).collect();
            match self.placement(&below, &[]) {
                Ok(placement) => (found, high) = (Some((levels[middle], placement)), middle),
                Err(NotPlaced::TooFew | NotPlaced::StepLimit) => low = middle + 1,
            }
        }
        found
    }

    /// The plan with this placement, after reprieving.
    fn reprieved_plan(&mut self, removed: &[Candidate], placement: Placement, reasons: VictimReasons<'_>) -> Plan {
        let mark = self.what_if.mark();
        let victims = self.trial(removed, &placement, reasons).reprieve(removed);
        self.what_if.back_to(mark);
        Plan::new(self.what_if.snapshot(), placement, victims, |_| EvictionReason::LowerPriority)
    }

    fn trial<'t>(
        &'t mut self,
        removed: &[Candidate],
        placement: &'t Placement,
        reasons: VictimReasons<'t>,
    ) -> ReprieveTrial<'t, 's> {
        remove(self.what_if, removed);
        for &(pod, node) in placement {
            self.what_if.place(pod, node);
        }
        ReprieveTrial::new(self.what_if, self.preemptor, placement, reasons)
    }

    /// The most important victims are needed in any case, so placing members on the nodes that they free may be cheaper; repeated while it is.
    fn improved_plan(&mut self, removed: &[Candidate], mut plan: Plan) -> Plan {
        loop {
            let snapshot = self.what_if.snapshot();
            let is_top = |unit: &UnitId| snapshot.unit(*unit).priority == plan.cost.top;
            let paid: Vec<UnitId> = plan.victims.iter().copied().filter(is_top).collect();
            if paid.len() == plan.victims.len() && paid.iter().all(|&unit| snapshot.unit(unit).pods.len() == 1) {
                return plan; // the placement already uses all that these victims free
            }
            match self.placement(removed, &paid) {
                Ok(placement) if placement.len() >= plan.placement.len() && placement != plan.placement => {
                    let other = self.reprieved_plan(removed, placement, None);
                    if other.cost >= plan.cost {
                        return plan;
                    }
                    plan = other;
                }
                Ok(_) | Err(_) => return plan,
            }
        }
    }
}

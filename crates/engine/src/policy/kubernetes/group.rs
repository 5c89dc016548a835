//! A group in one domain: the whole group is placed with all candidates gone, and then as many of them as possible come back.
//! (Rules 8 to 10 and 17 of the groups.)

use super::Kubernetes;
use crate::candidates::{Candidate, candidates, closed};
use crate::decision::Plan;
use crate::domains::Domain;
use crate::explanation::{DomainRefusal, NodeFilterFailure, Recorder, TooFew};
use crate::fit::{self, Placement, Preemptor};
use crate::ids::{NodeId, PodId, Priority, Timestamp, UnitId};
use crate::place::place;
use crate::reprieve::{ReprieveTrial, VictimReasons};
use crate::what_if::WhatIf;

impl NodeFilterFailure {
    /// Why the pod fits on none of these nodes as things are in the what-if; a node where it does fit is left out.
    pub(crate) fn on_each(what_if: &mut WhatIf<'_>, ask: &Preemptor, pod: PodId, nodes: &[NodeId]) -> Vec<Self> {
        let on = |&node: &NodeId| {
            let misfit = fit::filter_failure(what_if, ask, pod, node)?;
            let shortages = fit::shortages_where_refused(what_if, ask, pod, node, misfit);
            Some(Self { node, failure: misfit, shortages })
        };
        nodes.iter().filter_map(on).collect()
    }
}

/// The plan for the domain where landing costs least; on a tie the first by name.
pub(super) fn best<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    ask: &Preemptor,
    domains: &[Domain],
    now: Timestamp,
    recorder: &mut R,
) -> Option<Plan> {
    let mut best: Option<Plan> = None;
    for domain in domains {
        let mut reasons = Vec::new();
        let wanted = R::RECORDS.then_some(&mut reasons);
        let result = plan(what_if, policy, ask, domain, now, recorder, wanted);
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

/// The plan for landing in this domain, or why there is none. `reasons` gets why each victim is one.
///
/// 1. Everybody goes and the group is placed. 2. Budget violations stay where that placement lets them. 3. The lowest priority is
///    found such that taking nobody above it is enough, and the group is placed anew. 4. Who can come back does. 5. What the most
///    important victims leave free is used first, if that is cheaper.
fn plan<R: Recorder>(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    ask: &Preemptor,
    domain: &Domain,
    now: Timestamp,
    recorder: &mut R,
    reasons: VictimReasons<'_>,
) -> Result<Plan, DomainRefusal> {
    let is_open = |node: &NodeId| closed(what_if.snapshot(), ask, *node, recorder).is_none();
    let nodes: Vec<NodeId> = domain.nodes.iter().copied().filter(is_open).collect();
    let mut gone = candidates(what_if.snapshot(), ask, nodes.iter().copied(), now, recorder);
    let mut search = Search { what_if, ask, nodes };
    if gone.is_empty() {
        return Err(DomainRefusal::NoCandidate(search.too_few::<R>(&gone, domain)));
    }
    let Some(mut placement) = search.placement(&gone, &[]) else {
        return Err(DomainRefusal::TooFewPlaced(search.too_few::<R>(&gone, domain)));
    };
    if policy.priority_cut {
        let spared = search.spared_by_budget(&gone, &placement);
        gone.retain(|candidate| !spared.contains(candidate));
        if let Some((cut, anew)) = search.cut(&gone) {
            gone.retain(|candidate| search.priority(candidate) <= cut);
            placement = anew;
        }
    }
    let plan = search.settled(&gone, placement, None);
    let plan = search.improved(&gone, plan);
    Ok(match reasons {
        None => plan,
        Some(reasons) => search.settled(&gone, plan.placement, Some(reasons)),
    })
}

fn remove(what_if: &mut WhatIf<'_>, gone: &[Candidate]) {
    for candidate in gone {
        what_if.remove_unit(candidate.unit);
    }
}

/// Every step leaves the what-if as it found it.
struct Search<'w, 's, 'a> {
    what_if: &'w mut WhatIf<'s>,
    ask: &'a Preemptor,
    nodes: Vec<NodeId>,
}

impl<'s> Search<'_, 's, '_> {
    fn priority(&self, candidate: &Candidate) -> Priority {
        self.what_if.snapshot().unit(candidate.unit).priority
    }

    /// The placement with these gone, if enough members find a place. Units that are `paid` for cost nothing.
    fn placement(&mut self, gone: &[Candidate], paid: &[UnitId]) -> Option<Placement> {
        let mark = self.what_if.mark();
        remove(self.what_if, gone);
        let placement = place(self.what_if, self.ask, &self.nodes, gone, paid);
        self.what_if.back_to(mark);
        (placement.len() >= self.ask.needed).then_some(placement)
    }

    /// How many members fit with these gone, and what the first that does not lacks on each node; only if it is recorded.
    fn too_few<R: Recorder>(&mut self, gone: &[Candidate], domain: &Domain) -> TooFew {
        if !R::RECORDS {
            return TooFew::default();
        }
        let mark = self.what_if.mark();
        remove(self.what_if, gone);
        let placement = place(self.what_if, self.ask, &self.nodes, gone, &[]);
        let is_placed = |pod: &PodId| placement.iter().any(|(placed, _)| placed == pod);
        let unplaced = self.ask.members.iter().copied().find(|pod| !is_placed(pod));
        let on_each = |pod| NodeFilterFailure::on_each(self.what_if, self.ask, pod, &domain.nodes);
        let misfits = unplaced.map(on_each).unwrap_or_default();
        self.what_if.back_to(mark);
        TooFew { placed: placement.len(), unplaced, failures: misfits }
    }

    /// The budget violations that the placement lets stay.
    fn spared_by_budget(&mut self, gone: &[Candidate], placement: &Placement) -> Vec<Candidate> {
        let violating: Vec<Candidate> = gone.iter().copied().filter(|candidate| candidate.violations > 0).collect();
        if violating.is_empty() {
            return Vec::new();
        }
        let mark = self.what_if.mark();
        let mut trial = self.trial(gone, placement, None);
        let spared = violating.into_iter().filter(|candidate| trial.put_back(candidate.unit)).collect();
        self.what_if.back_to(mark);
        spared
    }

    /// The lowest priority with which the group is feasible, and the placement with it; `None` where it is the highest of all.
    fn cut(&mut self, gone: &[Candidate]) -> Option<(Priority, Placement)> {
        let mut levels: Vec<Priority> = gone.iter().map(|candidate| self.priority(candidate)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.pop(); // the highest is known to do
        let mut found = None;
        let (mut low, mut high) = (0, levels.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let below: Vec<Candidate> =
                gone.iter().copied().filter(|candidate| self.priority(candidate) <= levels[middle]).collect();
            match self.placement(&below, &[]) {
                Some(placement) => (found, high) = (Some((levels[middle], placement)), middle),
                None => low = middle + 1,
            }
        }
        found
    }

    /// The plan with this placement: who can be put back is.
    fn settled(&mut self, gone: &[Candidate], placement: Placement, reasons: VictimReasons<'_>) -> Plan {
        let mark = self.what_if.mark();
        let victims = self.trial(gone, &placement, reasons).reprieve(gone);
        self.what_if.back_to(mark);
        Plan::new(self.what_if.snapshot(), placement, victims)
    }

    fn trial<'t>(
        &'t mut self,
        gone: &[Candidate],
        placement: &'t Placement,
        reasons: VictimReasons<'t>,
    ) -> ReprieveTrial<'t, 's> {
        remove(self.what_if, gone);
        for &(pod, node) in placement {
            self.what_if.place(pod, node);
        }
        ReprieveTrial::new(self.what_if, self.ask, placement, reasons)
    }

    /// The most important victims must go in any case, so what they leave free comes first; repeated while that is cheaper.
    fn improved(&mut self, gone: &[Candidate], mut plan: Plan) -> Plan {
        loop {
            let snapshot = self.what_if.snapshot();
            let is_top = |unit: &UnitId| snapshot.unit(*unit).priority == plan.cost.top;
            let paid: Vec<UnitId> = plan.victims.iter().copied().filter(is_top).collect();
            if paid.len() == plan.victims.len() && paid.iter().all(|&unit| snapshot.unit(unit).pods.len() == 1) {
                return plan; // they leave nothing that the placement does not use already
            }
            match self.placement(gone, &paid) {
                Some(placement) if placement.len() >= plan.placement.len() && placement != plan.placement => {
                    let other = self.settled(gone, placement, None);
                    if other.cost >= plan.cost {
                        return plan;
                    }
                    plan = other;
                }
                Some(_) | None => return plan,
            }
        }
    }
}

//! A group in one domain: the whole group is placed with all candidates gone, and then as many of them as possible come back.
//! (Rules 8 to 10 and 17 of the groups.)

use crate::candidates::{Candidate, candidates};
use crate::choose::Plan;
use crate::domains::Domain;
use crate::filters::Misfit;
use crate::fit::{self, Ask, Placement};
use crate::ids::{NodeId, PodId, Priority, Timestamp};
use crate::laws::unknown_class;
use crate::place::place;
use crate::policy::kubernetes::Kubernetes;
use crate::reprieve::{Reasons, Trial};
use crate::what_if::WhatIf;

/// Why a group cannot be placed in a domain, not even with preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainRefusal {
    /// No unit there may be taken.
    NoCandidate,
    /// With every candidate gone, too few members fit.
    TooFew {
        /// How many do.
        placed: usize,
        /// The first that does not; `None` where there are too few members.
        unplaced: Option<PodId>,
        /// Why it fits on none of the nodes.
        misfits: Vec<(NodeId, Misfit)>,
    },
}

/// The plan for landing in this domain.
pub(crate) fn plan(
    what_if: &mut WhatIf<'_>,
    policy: &Kubernetes,
    ask: &Ask,
    domain: &Domain,
    now: Timestamp,
    reasons: Reasons<'_>,
) -> Result<Plan, DomainRefusal> {
    let snapshot = what_if.snapshot();
    let is_open = |node: &NodeId| unknown_class::closes(snapshot, ask, *node).is_none();
    let nodes: Vec<NodeId> = domain.nodes.iter().copied().filter(is_open).collect();
    let candidates = candidates(snapshot, ask, nodes.iter().copied(), now);
    if candidates.is_empty() {
        return Err(DomainRefusal::NoCandidate);
    }
    let mark = what_if.mark();
    let search = Search { ask, nodes: &nodes };
    let found = search.with_all_gone(what_if, &candidates).map(|placement| {
        if policy.priority_cut {
            search.cut_and_reprieve(what_if, candidates, placement, reasons)
        } else {
            let victims = Trial::new(what_if, ask, &placement, reasons).reprieve(&candidates);
            (placement, victims)
        }
    });
    what_if.back_to(mark);
    let (placement, victims) = found?;
    Ok(Plan::new(what_if.snapshot(), placement, victims))
}

struct Search<'a> {
    ask: &'a Ask,
    nodes: &'a [NodeId],
}

impl Search<'_> {
    /// Takes the candidates away and places the group. On success the placement is made in the what-if.
    fn with_all_gone(&self, what_if: &mut WhatIf<'_>, gone: &[Candidate]) -> Result<Placement, DomainRefusal> {
        let mark = what_if.mark();
        for candidate in gone {
            for pod in what_if.snapshot().unit(candidate.unit).pods.clone() {
                what_if.remove(pod);
            }
        }
        let placement = place(what_if, self.ask, self.nodes, gone);
        if placement.len() >= self.ask.needed {
            return Ok(placement);
        }
        let refusal = self.too_few(what_if, &placement);
        what_if.back_to(mark);
        Err(refusal)
    }

    /// Names the first member that finds no place, and what every node lacks for it.
    fn too_few(&self, what_if: &mut WhatIf<'_>, placement: &Placement) -> DomainRefusal {
        let is_placed = |pod: &PodId| placement.iter().any(|(placed, _)| placed == pod);
        let unplaced = self.ask.members.iter().copied().find(|pod| !is_placed(pod));
        let mut misfits = Vec::new();
        if let Some(pod) = unplaced {
            for &node in self.nodes {
                misfits.extend(fit::misfit(what_if, self.ask, pod, node).map(|misfit| (node, misfit)));
            }
        }
        DomainRefusal::TooFew { placed: placement.len(), unplaced, misfits }
    }

    /// 1. Reprieve budget violations where the first placement lets them. 2. Find the lowest priority such that taking nobody above
    /// it is enough; those above it stay. 3. Place the group anew. 4. Reprieve the rest.
    fn cut_and_reprieve(
        &self,
        what_if: &mut WhatIf<'_>,
        candidates: Vec<Candidate>,
        placement: Placement,
        reasons: Reasons<'_>,
    ) -> (Placement, Vec<Candidate>) {
        let violating: Vec<Candidate> =
            candidates.iter().copied().filter(|candidate| candidate.violations > 0).collect();
        let mut trial = Trial::new(what_if, self.ask, &placement, None);
        let spared: Vec<Candidate> = violating.into_iter().filter(|candidate| trial.put_back(candidate.unit)).collect();
        let mut rest = candidates;
        rest.retain(|candidate| !spared.contains(candidate));
        let (cut, placement) = self.cut(what_if, &rest, placement);
        let priority = |candidate: &Candidate| what_if.snapshot().unit(candidate.unit).priority;
        rest.retain(|candidate| cut.is_none_or(|cut| priority(candidate) <= cut));
        let victims = Trial::new(what_if, self.ask, &placement, reasons).reprieve(&rest);
        (placement, victims)
    }

    /// The lowest priority with which the group is feasible, unless that is the highest of all, and the placement with it, which
    /// is made in the what-if.
    fn cut(
        &self,
        what_if: &mut WhatIf<'_>,
        candidates: &[Candidate],
        placement: Placement,
    ) -> (Option<Priority>, Placement) {
        let snapshot = what_if.snapshot();
        let mut levels: Vec<Priority> =
            candidates.iter().map(|candidate| snapshot.unit(candidate.unit).priority).collect();
        levels.sort_unstable();
        levels.dedup();
        let levels = &levels[..levels.len().saturating_sub(1)]; // the highest is known to do
        let (mut low, mut high) = (0, levels.len());
        let mut found = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let probe = self.probe(what_if, candidates, &placement, levels[middle]);
            match probe {
                Some(placement) => (found, high) = (Some((levels[middle], placement)), middle),
                None => low = middle + 1,
            }
        }
        match found {
            None => (None, placement),
            Some((cut, better)) => {
                self.step_back(what_if, candidates, &placement, cut);
                for &(pod, node) in &better {
                    what_if.place(pod, node);
                }
                (Some(cut), better)
            }
        }
    }

    /// The placement with nobody above `cut` taken, if it is enough. The what-if stays as it was.
    fn probe(
        &self,
        what_if: &mut WhatIf<'_>,
        candidates: &[Candidate],
        placement: &Placement,
        cut: Priority,
    ) -> Option<Placement> {
        let mark = what_if.mark();
        let gone = self.step_back(what_if, candidates, placement, cut);
        let found = place(what_if, self.ask, self.nodes, &gone);
        what_if.back_to(mark);
        (found.len() >= self.ask.needed).then_some(found)
    }

    /// Takes the placement back and puts everybody above `cut` back; returns who is still gone.
    fn step_back(
        &self,
        what_if: &mut WhatIf<'_>,
        candidates: &[Candidate],
        placement: &Placement,
        cut: Priority,
    ) -> Vec<Candidate> {
        for &(pod, _) in placement {
            what_if.remove(pod);
        }
        let snapshot = what_if.snapshot();
        let (gone, stays): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().partition(|candidate| snapshot.unit(candidate.unit).priority <= cut);
        for candidate in &stays {
            for pod in what_if.snapshot().unit(candidate.unit).pods.clone() {
                let home = what_if.snapshot().home(pod).expect("a candidate is bound");
                what_if.place(pod, home);
            }
        }
        gone
    }
}

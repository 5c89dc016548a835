//! Preemption without fair sharing: candidates are taken in order until the requests fit, with borrowing or without, and given back
//! where they are not needed. (Rules 13 to 18 of the flat cohorts and of the trees.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::explanation::Recorder;
use crate::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::policy::kueue::candidates::QueueCandidates;
use crate::policy::kueue::eligibility::Claim;
use crate::policy::kueue::order::Order;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{PreemptionReason, Search, give_back};
use crate::workloads::{BorrowWithinCohort, ReclaimWithinCohort};

/// How the candidates of a queue stand to the preemptor; those of one kind are taken before those of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateClass {
    /// The preemptor stays within the quota of the subtree that they share less its branch.
    Advantage,
    /// It would borrow.
    Other,
    /// At home.
    Own,
}

pub(super) fn victims<R: Recorder>(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    requests: &[(FlavorResourceId, i64)],
    recorder: &mut R,
) -> Option<Vec<(WorkloadId, PreemptionReason)>> {
    let lanes = candidate_queues(search, quota, requests);
    if lanes.is_empty() {
        search.report_spared_in_tree(quota, |_| Claim::Reclaim, recorder);
        return None;
    }
    let never = search.rules().borrow == BorrowWithinCohort::Never;
    let elsewhere = lanes.iter().any(|(kind, _)| *kind != CandidateClass::Own);
    let advantage = lanes.iter().any(|(kind, _)| *kind == CandidateClass::Advantage);
    let full = search.contested.iter().any(|&pair| quota.used(search.queue, pair) >= quota.nominal(search.queue, pair));
    let passes: &[bool] = if !elsewhere || never && full {
        &[true]
    } else if never && !advantage {
        &[false, true]
    } else {
        &[true, false]
    };
    let before = recorder.clone();
    passes.iter().enumerate().find_map(|(at, &may_borrow)| {
        let mut reasons = before.clone();
        let pass = TakePass { search, queues: &lanes, requests, may_borrow };
        let victims = pass.run(quota, &mut reasons);
        if at == 0 || victims.is_some() {
            *recorder = reasons;
        }
        victims
    })
}

/// One walk over the candidates.
struct TakePass<'p, 'a> {
    search: &'p Search<'a>,
    queues: &'p [(CandidateClass, QueueCandidates<'a>)],
    requests: &'p [(FlavorResourceId, i64)],
    may_borrow: bool,
}

/// The next candidate of a lane; the least is taken first. Evicted ones come before all others, and then those who are preferred;
/// within those, who holds what was lent, then who is low enough, then at home.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NextCandidate {
    not_evicted: bool,
    not_preferred: bool,
    class: CandidateClass,
    order: Order,
    queue: usize,
    index: usize,
}

impl TakePass<'_, '_> {
    fn run<R: Recorder>(
        &self,
        quota: &mut QuotaUsage<'_>,
        recorder: &mut R,
    ) -> Option<Vec<(WorkloadId, PreemptionReason)>> {
        let (search, requests) = (self.search, self.requests);
        let claim = |queue: QueueId| {
            let lane = self.queues.iter().find(|(_, lane)| lane.queue == queue);
            lane.map_or(Claim::Reclaim, |(kind, _)| self.claim(*kind))
        };
        search.report_spared_in_tree(quota, claim, recorder);
        let first = |lane: usize| self.next(lane, self.queues[lane].1.first).map(Reverse);
        let mut nexts: BinaryHeap<Reverse<NextCandidate>> = (0..self.queues.len()).filter_map(first).collect();
        let mut taken: Vec<(WorkloadId, PreemptionReason)> = Vec::new();
        while let Some(Reverse(NextCandidate { class: kind, queue: lane, index: at, .. })) = nexts.pop() {
            let (claim, candidates) = (self.claim(kind), &self.queues[lane].1);
            if kind != CandidateClass::Own && search.queue_law(quota, candidates.queue, claim).is_some() {
                search.report_spared(quota, candidates.rest(at), claim, recorder);
                continue; // nor will the queue borrow again for the workloads behind this one
            }
            let workload = candidates.at(at);
            let ground = search.reason(candidates.queue, search.snapshot.workload(workload), claim);
            debug_assert_eq!(search.eligibility(quota, workload, claim), Ok(ground));
            search.report_candidate(workload, recorder);
            quota.take(workload);
            taken.push((workload, ground));
            if search.fits(quota, &taken, requests, self.may_borrow) {
                let fits = |quota: &QuotaUsage<'_>, gone: &[_]| search.fits(quota, gone, requests, self.may_borrow);
                let victims = give_back(quota, taken, fits);
                quota.put_back_all(&victims);
                return Some(victims);
            }
            nexts.extend(self.next(lane, at + 1).map(Reverse));
        }
        quota.put_back_all(&taken);
        None
    }

    /// The first of a lane, at this place or behind it, that this pass may take.
    fn next(&self, lane: usize, from: usize) -> Option<NextCandidate> {
        let (kind, candidates) = &self.queues[lane];
        let only_low = self.claim(*kind) == Claim::Borrowing;
        if only_low && self.search.rules().borrow == BorrowWithinCohort::Never {
            return None;
        }
        let mut at = candidates.next(self.search, from)?;
        let is_low = |at| self.search.borrowing_law(self.search.snapshot.workload(candidates.at(at))).is_none();
        while only_low && !is_low(at) {
            at = candidates.next(self.search, at + 1)?;
        }
        let order = self.search.order(candidates.at(at));
        Some(NextCandidate {
            not_evicted: order.0,
            not_preferred: order.1,
            class: *kind,
            order,
            queue: lane,
            index: at,
        })
    }

    /// How candidates of a kind are claimed in this pass.
    fn claim(&self, kind: CandidateClass) -> Claim {
        match (kind, self.may_borrow) {
            (CandidateClass::Advantage | CandidateClass::Own, _) => Claim::Reclaim,
            (CandidateClass::Other, true) => Claim::Borrowing,
            (CandidateClass::Other, false) => Claim::WithoutBorrowing,
        }
    }
}

/// The queues that have candidates: the own, then, climbing from it to the root, under each ancestor those that are not under the one
/// before.
fn candidate_queues<'a>(
    search: &Search<'_>,
    quota: &QuotaUsage<'a>,
    requests: &[(FlavorResourceId, i64)],
) -> Vec<(CandidateClass, QueueCandidates<'a>)> {
    let own = QueueCandidates::new(search, quota, search.queue);
    let mut lanes: Vec<(CandidateClass, QueueCandidates<'a>)> =
        own.into_iter().map(|lane| (CandidateClass::Own, lane)).collect();
    if search.rules().reclaim == ReclaimWithinCohort::Never {
        return lanes;
    }
    let fits = |id: QueueId, rest: &[(FlavorResourceId, i64)]| {
        rest.iter().all(|&(pair, amount)| quota.used(id, pair) + amount <= quota.nominal(id, pair))
    };
    let mut rest = requests.to_vec();
    let mut advantage = fits(search.queue, &rest);
    let mut done = search.queue;
    for ancestor in quota.tree.path(search.queue).skip(1) {
        for (pair, amount) in &mut rest {
            *amount -= quota.free_local_quota(done, *pair);
        }
        let kind = if advantage { CandidateClass::Advantage } else { CandidateClass::Other };
        let mut open = vec![ancestor];
        while let Some(id) = open.pop() {
            for &child in quota
                .children(id)
                .iter()
                .filter(|&&child| child != done && !quota.is_within_nominal(child, search.contested))
            {
                lanes.extend(QueueCandidates::new(search, quota, child).map(|lane| (kind, lane)));
                open.push(child);
            }
        }
        advantage |= fits(ancestor, &rest);
        done = ancestor;
    }
    lanes
}

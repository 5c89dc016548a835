//! docs/rules/kueue.md#k13 to docs/rules/kueue.md#k18, docs/rules/kueue-cohorts.md#c13 to docs/rules/kueue-cohorts.md#c18: preemption
//! without fair sharing. Candidates are taken in order until the requests fit, with borrowing or without, and given back if they are not
//! needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::explanation::Recorder;
use crate::ids::QueueId;
use crate::policy::kueue::candidates::QueueCandidates;
use crate::policy::kueue::eligibility::Claim;
use crate::policy::kueue::order::Order;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{Request, Search, Victim, reprieve_unneeded};
use crate::workloads::{BorrowWithinCohort, ReclaimWithinCohort};

/// The relation of a candidate's queue to the preemptor. Candidates of a class are taken before those of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateClass {
    /// The preemptor stays within the nominal quota of its branch below the cohort that both share.
    Advantage,
    /// The preemptor would borrow.
    Other,
    /// The preemptor's own queue.
    Own,
}

pub(super) fn victims<R: Recorder>(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    requests: &[Request],
    recorder: &mut R,
) -> Option<Vec<Victim>> {
    let queues = candidate_queues(search, quota, requests);
    if queues.is_empty() {
        search.report_spared_in_tree(quota, |_| Claim::Reclaim, recorder);
        return None;
    }
    let never = search.rules().borrow == BorrowWithinCohort::Never;
    let elsewhere = queues.iter().any(|(class, _)| *class != CandidateClass::Own);
    let within_nominal = queues.iter().any(|(class, _)| *class == CandidateClass::Advantage);
    let full = search.contested.iter().any(|&pair| quota.used(search.queue, pair) >= quota.nominal(search.queue, pair));
    let passes: &[bool] = if !elsewhere || never && full {
        &[true]
    } else if never && !within_nominal {
        &[false, true]
    } else {
        &[true, false]
    };
    let before = recorder.clone();
    passes.iter().find_map(|&may_borrow| {
        let mut reasons = before.clone();
        let take = TakePass { search, queues: &queues, requests, may_borrow };
        let victims = take.run(quota, &mut reasons);
        // If no pass finds victims, the reasons are those of the pass that allows the preemptor more: to borrow.
        if may_borrow || victims.is_some() {
            *recorder = reasons;
        }
        victims
    })
}

/// One pass over the candidates.
struct TakePass<'p, 'a> {
    search: &'p Search<'a>,
    queues: &'p [(CandidateClass, QueueCandidates<'a>)],
    requests: &'p [Request],
    may_borrow: bool,
}

/// The next candidate of a queue; the least is taken first: evicted workloads, then preferred ones, then by class, then by order.
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
    fn run<R: Recorder>(&self, quota: &mut QuotaUsage<'_>, recorder: &mut R) -> Option<Vec<Victim>> {
        let (search, requests) = (self.search, self.requests);
        let claim = |queue: QueueId| {
            let candidates = self.queues.iter().find(|(_, candidates)| candidates.queue == queue);
            candidates.map_or(Claim::Reclaim, |(class, _)| self.claim(*class))
        };
        search.report_spared_in_tree(quota, &claim, recorder);
        let first = |queue: usize| self.next(queue, self.queues[queue].1.first).map(Reverse);
        let mut nexts: BinaryHeap<Reverse<NextCandidate>> = (0..self.queues.len()).filter_map(first).collect();
        let mut taken: Vec<Victim> = Vec::new();
        while let Some(Reverse(NextCandidate { class, queue, index, .. })) = nexts.pop() {
            let (own_claim, candidates) = (self.claim(class), &self.queues[queue].1);
            if class != CandidateClass::Own && search.queue_law(quota, candidates.queue, own_claim).is_some() {
                search.report_spared(quota, candidates.rest(index), own_claim, recorder);
                continue; // taking workloads never makes the queue borrow again
            }
            let workload = candidates.workload(index);
            let reason = search.reason(candidates.queue, search.snapshot.workload(workload), own_claim);
            debug_assert_eq!(search.eligibility(quota, workload, own_claim), Ok(reason));
            search.report_candidate(workload, recorder);
            quota.take(workload);
            taken.push((workload, reason));
            if search.fits(quota, &taken, requests, self.may_borrow) {
                let fits = |quota: &QuotaUsage<'_>, taken: &[_]| search.fits(quota, taken, requests, self.may_borrow);
                let n_taken = taken.len();
                let victims = reprieve_unneeded(quota, taken, fits);
                if victims.len() < n_taken {
                    search.report_again(quota, claim, recorder);
                }
                quota.put_back_all(&victims);
                return Some(victims);
            }
            nexts.extend(self.next(queue, index + 1).map(Reverse));
        }
        quota.put_back_all(&taken);
        None
    }

    /// The first candidate of a queue, from this index on, that this pass may take.
    fn next(&self, queue: usize, from: usize) -> Option<NextCandidate> {
        let (class, candidates) = &self.queues[queue];
        let only_low = self.claim(*class) == Claim::Borrowing;
        if only_low && self.search.rules().borrow == BorrowWithinCohort::Never {
            return None;
        }
        let mut index = candidates.next(self.search, from)?;
        let is_low =
            |index| self.search.borrowing_law(self.search.snapshot.workload(candidates.workload(index))).is_none();
        while only_low && !is_low(index) {
            index = candidates.next(self.search, index + 1)?;
        }
        let order = self.search.order(candidates.workload(index));
        Some(NextCandidate { not_evicted: order.0, not_preferred: order.1, class: *class, order, queue, index })
    }

    /// The claim on candidates of a class in this pass.
    fn claim(&self, class: CandidateClass) -> Claim {
        match (class, self.may_borrow) {
            (CandidateClass::Advantage | CandidateClass::Own, _) => Claim::Reclaim,
            (CandidateClass::Other, true) => Claim::Borrowing,
            (CandidateClass::Other, false) => Claim::WithoutBorrowing,
        }
    }
}

/// The queues with candidates: the preemptor's own, then, from its parent to the root, the queues below each ancestor that are not below
/// the previous one.
fn candidate_queues<'a>(
    search: &Search<'_>,
    quota: &QuotaUsage<'a>,
    requests: &[Request],
) -> Vec<(CandidateClass, QueueCandidates<'a>)> {
    let own = QueueCandidates::new(search, quota, search.queue);
    let mut queues: Vec<(CandidateClass, QueueCandidates<'a>)> =
        own.into_iter().map(|candidates| (CandidateClass::Own, candidates)).collect();
    if search.rules().reclaim == ReclaimWithinCohort::Never {
        return queues;
    }
    let fits = |id: QueueId, rest: &[Request]| {
        rest.iter().all(|&(pair, amount)| quota.used(id, pair) + amount <= quota.nominal(id, pair))
    };
    let mut rest = requests.to_vec();
    let mut within_nominal = fits(search.queue, &rest);
    let mut previous = search.queue;
    for ancestor in quota.tree.path(search.queue).skip(1) {
        for (pair, amount) in &mut rest {
            *amount -= quota.free_local_quota(previous, *pair);
        }
        let class = if within_nominal { CandidateClass::Advantage } else { CandidateClass::Other };
        let mut open = vec![ancestor];
        while let Some(id) = open.pop() {
            for &child in quota
                .children(id)
                .iter()
                .filter(|&&child| child != previous && !quota.is_within_nominal(child, search.contested))
            {
                queues.extend(QueueCandidates::new(search, quota, child).map(|candidates| (class, candidates)));
                open.push(child);
            }
        }
        within_nominal |= fits(ancestor, &rest);
        previous = ancestor;
    }
    queues
}

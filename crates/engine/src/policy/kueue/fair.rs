//! docs/rules/kueue-cohorts.md#c19 to docs/rules/kueue-cohorts.md#c31: preemption under fair sharing. A tournament of shares down the tree
//! selects the next candidate, and a strategy that compares the shares of both branches allows the preemption or not. Shares are fractions
//! and compared exactly.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::explanation::Recorder;
use crate::fraction::Fraction;
use crate::ids::{QueueId, ShareMilli, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::candidates::QueueCandidates;
use crate::policy::kueue::eligibility::Claim;
use crate::policy::kueue::order::Order;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{FairSharing, PreemptionReason, Request, Search, Strategy, Victim, reprieve_unneeded};

/// docs/rules/kueue-cohorts.md#c19: the borrowed part of the lendable quota of the dominant resource, divided by the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share {
    /// Whether the queue borrows and has weight 0: its share is above all finite shares, and two such shares compare as if the weights were
    /// equal.
    is_infinite: bool,
    fraction: Fraction,
}

impl Share {
    pub const NONE: Self = Self { is_infinite: false, fraction: Fraction::ZERO };

    /// The share for explanations; no decision reads it.
    pub fn thousandths(self) -> ShareMilli {
        const BILLION: i128 = 1_000_000_000;
        let Fraction { numerator, denominator } = self.fraction;
        if self.is_infinite {
            ShareMilli::Infinite
        } else {
            ShareMilli::Finite(numerator * 1_000 * BILLION / denominator)
        }
    }
}

pub(super) fn victims<R: Recorder>(
    search: &Search<'_>,
    quota: &mut QuotaUsage<'_>,
    strategies: &FairSharing,
    requests: &[Request],
    recorder: &mut R,
) -> Option<Vec<Victim>> {
    quota.charge(search.queue, requests, 1);
    let mut tournament = Tournament { search, requests, taken: Vec::new(), recorder };
    let found = tournament.run(quota, strategies);
    let taken = std::mem::take(&mut tournament.taken);
    quota.charge(search.queue, requests, -1);
    if !found {
        quota.put_back_all(&taken);
        return None;
    }
    let n_taken = taken.len();
    let victims = reprieve_unneeded(quota, taken, |quota, taken| search.fits(quota, taken, requests, true));
    quota.put_back_all(&victims);
    let is_stable = victims.len() == n_taken || tournament.shares_allow_all(quota, strategies, &victims);
    if is_stable && victims.len() < n_taken {
        tournament.report_again(quota, strategies, &victims);
    }
    is_stable.then_some(victims)
}

/// The participants of the tournament.
struct Bracket<'a> {
    candidates: Vec<QueueCandidates<'a>>,
    /// By cohort: its child cohorts that participate.
    cohorts: BTreeMap<QueueId, Vec<QueueId>>,
    /// By cohort: its queues with their next candidates.
    queues: BTreeMap<QueueId, BinaryHeap<Entrant>>,
}

/// A queue with its share and its next candidate; the greatest is next.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entrant {
    share: Share,
    order: Reverse<Order>,
    queue: usize,
    index: usize,
}

struct Tournament<'t, 'a, R> {
    search: &'t Search<'a>,
    requests: &'t [Request],
    taken: Vec<Victim>,
    recorder: &'t mut R,
}

impl<R: Recorder> Tournament<'_, '_, R> {
    fn run(&mut self, quota: &mut QuotaUsage<'_>, strategies: &FairSharing) -> bool {
        let mut bracket = self.bracket(quota);
        let is_in_play = |queue: QueueId| bracket.candidates.iter().any(|candidates| candidates.queue == queue);
        let claim = |queue: QueueId| if is_in_play(queue) { Claim::FairReclaim } else { Claim::Reclaim };
        self.search.report_spared_in_tree(quota, claim, self.recorder);
        let Some(failed) = self.first_round(quota, &mut bracket, strategies.first) else { return true };
        for Entrant { queue, index, .. } in bracket.queues.values().flatten() {
            let rest = bracket.candidates[*queue].rest(*index);
            self.search.report_spared(quota, rest, Claim::FairReclaim, self.recorder);
        }
        let Some(second) = strategies.second else { return false };
        bracket.queues.clear();
        for (queue_index, index) in failed {
            if !self.enter(quota, &mut bracket, queue_index, index) {
                let workload = bracket.candidates[queue_index].workload(index);
                self.search.report_spared(quota, &[workload], Claim::FairReclaim, self.recorder);
            }
        }
        self.second_round(quota, &mut bracket, second)
    }

    /// The preemptor's own queue, and the queues that use more than their nominal quota of a contested pair.
    fn bracket<'q>(&self, quota: &QuotaUsage<'q>) -> Bracket<'q> {
        let search = self.search;
        let root = quota.tree.root(search.queue);
        let mut bracket = Bracket { candidates: Vec::new(), cohorts: BTreeMap::new(), queues: BTreeMap::new() };
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            for &child in quota.children(id) {
                if quota.rules.queues[child.index()].is_cohort {
                    if self.is_own(quota, child) || quota.is_borrowing(child) {
                        bracket.cohorts.entry(id).or_default().push(child);
                        open.push(child);
                    }
                } else if child == search.queue || !quota.is_within_nominal(child, search.contested) {
                    let Some(candidates) = QueueCandidates::new(search, quota, child) else { continue };
                    let (index, first) = (bracket.candidates.len(), candidates.first);
                    bracket.candidates.push(candidates);
                    self.enter(quota, &mut bracket, index, first);
                }
            }
        }
        bracket
    }

    fn is_own(&self, quota: &QuotaUsage<'_>, id: QueueId) -> bool {
        quota.tree.path(self.search.queue).any(|own| own == id)
    }

    /// Enters a queue with the candidate at this index, if the queue borrows or is the preemptor's. Returns whether it did.
    fn enter(&self, quota: &QuotaUsage<'_>, bracket: &mut Bracket<'_>, queue_index: usize, index: usize) -> bool {
        let queue = bracket.candidates[queue_index].queue;
        let enters = quota.is_borrowing(queue) || queue == self.search.queue;
        if let Some(cohort) = quota.tree.get(queue).parent.filter(|_| enters) {
            let order = Reverse(self.search.order(bracket.candidates[queue_index].workload(index)));
            let entrant = Entrant { share: share(quota, queue), order, queue: queue_index, index };
            bracket.queues.entry(cohort).or_default().push(entrant);
        }
        enters
    }

    /// `None` when the requests fit; else, by queue, the first candidate that the strategy refused.
    fn first_round(
        &mut self,
        quota: &mut QuotaUsage<'_>,
        bracket: &mut Bracket<'_>,
        strategy: Strategy,
    ) -> Option<BTreeMap<usize, usize>> {
        let mut failed = BTreeMap::new();
        // This is decided before any preemption: a queue that must first preempt its own workloads to be within its nominal quota has no
        // claim on others.
        let claim = if quota.is_within_nominal(self.search.queue, self.search.contested) {
            Claim::FairReclaim
        } else {
            Claim::FairShare(strategy)
        };
        while let Some((queue_index, index)) = self.next(quota, bracket) {
            let target = bracket.candidates[queue_index].queue;
            let mut next = Some(index);
            while let Some(index) = next {
                let workload = bracket.candidates[queue_index].workload(index);
                next = bracket.candidates[queue_index].next(self.search, index + 1);
                let compares = target != self.search.queue && claim != Claim::FairReclaim;
                if compares && !self.shares_allow(quota, workload, strategy) {
                    failed.entry(queue_index).or_insert(index);
                    continue;
                }
                if self.take(quota, workload, claim) {
                    return None;
                }
                break;
            }
            if let Some(index) = next
                && !self.enter(quota, bracket, queue_index, index)
            {
                self.search.report_spared(
                    quota,
                    bracket.candidates[queue_index].rest(index),
                    Claim::FairReclaim,
                    self.recorder,
                );
            }
        }
        Some(failed)
    }

    /// Each queue has one candidate: the first that the first strategy refused.
    fn second_round(&mut self, quota: &mut QuotaUsage<'_>, bracket: &mut Bracket<'_>, strategy: Strategy) -> bool {
        while let Some((queue_index, index)) = self.next(quota, bracket) {
            let workload = bracket.candidates[queue_index].workload(index);
            let allowed = self.shares_allow(quota, workload, strategy);
            if allowed && self.take(quota, workload, Claim::FairShare(strategy)) {
                return true;
            }
        }
        false
    }

    /// Whether the strategies would still allow every preemption by share without the workloads that were given back. A victim in the own
    /// queue lowers the preemptor's share; if it stays after all, the share is larger, and the other victims could preempt in turn, without
    /// end.
    fn shares_allow_all(&self, quota: &mut QuotaUsage<'_>, strategies: &FairSharing, victims: &[Victim]) -> bool {
        let search = self.search;
        quota.charge(search.queue, self.requests, 1);
        let mut allowed = true;
        for &(workload, reason) in victims {
            if reason == PreemptionReason::InCohortFairSharing {
                let mut strategies = [Some(strategies.first), strategies.second].into_iter().flatten();
                allowed &= strategies.any(|strategy| compare_shares(quota, search.queue, workload, strategy).allows());
            }
            quota.take(workload);
        }
        quota.put_back_all(victims);
        quota.charge(search.queue, self.requests, -1);
        allowed
    }

    /// Reports again what the laws say about shares and quota with these victims and no others.
    fn report_again(&mut self, quota: &mut QuotaUsage<'_>, strategies: &FairSharing, victims: &[Victim]) {
        if !R::RECORDS {
            return;
        }
        let search = self.search;
        let is_claim = quota.is_within_nominal(search.queue, search.contested);
        quota.charge(search.queue, self.requests, 1);
        victims.iter().for_each(|&(workload, _)| quota.take(workload));
        for strategy in [Some(strategies.first), strategies.second].into_iter().flatten() {
            let claim = if is_claim { Claim::FairReclaim } else { Claim::FairShare(strategy) };
            search.report_again(quota, |_| claim, self.recorder);
        }
        quota.put_back_all(victims);
        quota.charge(search.queue, self.requests, -1);
    }

    /// Whether the strategy allows to take a workload; reports the shares if it does not.
    fn shares_allow(&mut self, quota: &mut QuotaUsage<'_>, workload: WorkloadId, strategy: Strategy) -> bool {
        let compared = compare_shares(quota, self.search.queue, workload, strategy);
        if R::RECORDS
            && let Some(law) = compared.law()
        {
            self.recorder.spared(self.search.unit(workload), law);
        }
        compared.allows()
    }

    /// Takes a workload, and returns whether the requests fit now.
    fn take(&mut self, quota: &mut QuotaUsage<'_>, workload: WorkloadId, claim: Claim) -> bool {
        let candidate = quota.snapshot.workload(workload);
        let reason = self.search.reason(candidate.queue.expect("a candidate is in a queue"), candidate, claim);
        debug_assert_eq!(self.search.eligibility(quota, workload, claim), Ok(reason));
        self.search.report_candidate(workload, self.recorder);
        quota.take(workload);
        self.taken.push((workload, reason));
        quota.charge(self.search.queue, self.requests, -1);
        let fits = self.search.fits(quota, &self.taken, self.requests, true);
        quota.charge(self.search.queue, self.requests, 1);
        fits
    }

    /// docs/rules/kueue-cohorts.md#c23: removes and returns the next candidate: from the root, always the child with the largest share.
    /// Branches without candidates, and branches that neither borrow nor contain the preemptor, are skipped.
    fn next(&self, quota: &QuotaUsage<'_>, bracket: &mut Bracket<'_>) -> Option<(usize, usize)> {
        let root = quota.tree.root(self.search.queue);
        let cohort = self.descend(quota, bracket, root)?;
        let found = bracket.queues.get_mut(&cohort)?.pop()?;
        Some((found.queue, found.index))
    }

    /// The cohort with the next queue.
    fn descend(&self, quota: &QuotaUsage<'_>, bracket: &Bracket<'_>, id: QueueId) -> Option<QueueId> {
        let children = bracket.cohorts.get(&id).into_iter().flatten().copied();
        let in_play = children.filter(|&child| quota.is_borrowing(child) || self.is_own(quota, child));
        let mut cohorts: Vec<_> = in_play.map(|child| (Reverse(share(quota, child)), child)).collect();
        cohorts.sort_unstable();
        let best_queue = bracket.queues.get(&id).and_then(BinaryHeap::peek).map(|contender| contender.share);
        for (Reverse(share), cohort) in cohorts {
            if best_queue.is_some_and(|queue_share| queue_share > share) {
                break;
            }
            if let Some(found) = self.descend(quota, bracket, cohort) {
                return Some(found);
            }
        }
        best_queue.map(|_| id)
    }
}

/// The shares of the preemptor's and of the candidate's branch, and the strategy that compares them.
pub(super) struct Compared {
    own: Share,
    /// The candidate's branch.
    queue: QueueId,
    theirs: Share,
    strategy: Strategy,
}

impl Compared {
    pub fn allows(&self) -> bool {
        match self.strategy {
            Strategy::LessThanInitialShare => self.own < self.theirs,
            Strategy::LessThanOrEqualToFinalShare => self.own <= self.theirs,
        }
    }

    /// The law, if the strategy does not allow the preemption.
    pub fn law(&self) -> Option<Law> {
        let (own, theirs) = (self.own.thousandths(), self.theirs.thousandths());
        let is_final = self.strategy == Strategy::LessThanOrEqualToFinalShare;
        (!self.allows()).then_some(Law::FairShare { own, queue: self.queue, theirs, is_final })
    }
}

/// docs/rules/kueue-cohorts.md#c26: compares the shares of the branches of the preemptor's queue, to which its request is charged, and of a
/// candidate's queue below their lowest shared cohort.
pub(super) fn compare_shares(
    quota: &mut QuotaUsage<'_>,
    preemptor: QueueId,
    workload: WorkloadId,
    strategy: Strategy,
) -> Compared {
    let target = quota.snapshot.workload(workload).queue.expect("a candidate is in a queue");
    let (branch, queue) = branches(quota, preemptor, target);
    let own = share(quota, branch);
    let theirs = match strategy {
        Strategy::LessThanInitialShare => share(quota, queue),
        Strategy::LessThanOrEqualToFinalShare => {
            quota.take(workload);
            let last = share(quota, queue);
            quota.put_back(workload);
            last
        }
    };
    Compared { own, queue, theirs, strategy }
}

/// The branches of two queues below the lowest cohort that they share.
fn branches(quota: &QuotaUsage<'_>, queue: QueueId, other: QueueId) -> (QueueId, QueueId) {
    let path: Vec<QueueId> = quota.tree.path(queue).collect();
    let other_path: Vec<QueueId> = quota.tree.path(other).collect();
    let shared = path.iter().rev().zip(other_path.iter().rev()).take_while(|(a, b)| a == b).count();
    (path[path.len() - 1 - shared], other_path[other_path.len() - 1 - shared])
}

/// docs/rules/kueue-cohorts.md#c19, docs/rules/kueue-cohorts.md#c20
pub(super) fn share(quota: &QuotaUsage<'_>, id: QueueId) -> Share {
    let Some(parent) = quota.tree.get(id).parent else { return Share::NONE };
    let fractions = quota.rules.flavor_resources_of.iter().map(|pairs| Fraction {
        numerator: pairs.iter().map(|&pair| i128::from(quota.borrowed(id, pair))).sum(),
        denominator: pairs.iter().map(|&pair| i128::from(quota.potential(parent, pair))).sum(),
    });
    // A resource without lendable quota makes no share.
    let largest = fractions.filter(|share| share.numerator > 0 && share.denominator > 0).max();
    let Some(Fraction { numerator, denominator }) = largest else { return Share::NONE };
    let (weight, is_infinite) = match i128::from(quota.rules.queues[id.index()].weight) {
        0 => (1, true),
        weight => (weight, false),
    };
    Share { is_infinite, fraction: Fraction { numerator, denominator: denominator.saturating_mul(weight) } }
}

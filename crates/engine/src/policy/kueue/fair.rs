//! Preemption under fair sharing: a tournament of shares down the tree says whose workload is next; a strategy compares the shares
//! of both sides and allows it, or not. (Rules 19 to 30 of the cohort trees.) Shares are fractions, compared exactly.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::explanation::Recorder;
use crate::fraction::Fraction;
use crate::ids::{FlavorResourceId, QueueId, ShareMilli, WorkloadId};
use crate::laws::Law;
use crate::policy::kueue::candidates::QueueCandidates;
use crate::policy::kueue::eligibility::Claim;
use crate::policy::kueue::order::Order;
use crate::policy::kueue::quota_usage::QuotaUsage;
use crate::policy::kueue::{FairSharing, PreemptionReason, Search, Strategy, give_back};

/// How much of what can be lent a queue has borrowed of the dominant resource, by its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share {
    /// Whether the queue borrows and has no weight: its share is above all others; two of them compare as if they had the same weight.
    is_infinite: bool,
    fraction: Fraction,
}

impl Share {
    pub const NONE: Self = Self { is_infinite: false, fraction: Fraction::ZERO };

    /// For people: no decision reads it.
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
    requests: &[(FlavorResourceId, i64)],
    recorder: &mut R,
) -> Option<Vec<(WorkloadId, PreemptionReason)>> {
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
    let victims = give_back(quota, taken, |quota, gone| search.fits(quota, gone, requests, true));
    quota.put_back_all(&victims);
    let stands = victims.len() == n_taken || tournament.shares_allow_all(quota, strategies, &victims);
    stands.then_some(victims)
}

/// Where the tournament is held.
struct Bracket<'a> {
    candidates: Vec<QueueCandidates<'a>>,
    /// By cohort: the cohorts in it that are in play.
    cohorts: BTreeMap<QueueId, Vec<QueueId>>,
    /// By cohort: the queues in it that have candidates.
    queues: BTreeMap<QueueId, BinaryHeap<Entrant>>,
}

/// A queue by its share and its next candidate; the greatest is next.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entrant {
    share: Share,
    order: Reverse<Order>,
    queue: usize,
    index: usize,
}

struct Tournament<'t, 'a, R> {
    search: &'t Search<'a>,
    requests: &'t [(FlavorResourceId, i64)],
    taken: Vec<(WorkloadId, PreemptionReason)>,
    recorder: &'t mut R,
}

impl<R: Recorder> Tournament<'_, '_, R> {
    fn run(&mut self, quota: &mut QuotaUsage<'_>, strategies: &FairSharing) -> bool {
        let mut field = self.bracket(quota);
        let is_in_play = |queue: QueueId| field.candidates.iter().any(|lane| lane.queue == queue);
        let claim = |queue: QueueId| if is_in_play(queue) { Claim::FairReclaim } else { Claim::Reclaim };
        self.search.report_spared_in_tree(quota, claim, self.recorder);
        let Some(failed) = self.first_round(quota, &mut field, strategies.first) else { return true };
        for Entrant { queue: lane, index: at, .. } in field.queues.values().flatten() {
            self.search.report_spared(quota, field.candidates[*lane].rest(*at), Claim::FairReclaim, self.recorder);
        }
        let Some(second) = strategies.second else { return false };
        field.queues.clear();
        for (lane, at) in failed {
            if !self.enter(quota, &mut field, lane, at) {
                let workload = field.candidates[lane].at(at);
                self.search.report_spared(quota, &[workload], Claim::FairReclaim, self.recorder);
            }
        }
        self.second_round(quota, &mut field, second)
    }

    /// The preemptor's own queue, and those that use more than their own of something contested.
    fn bracket<'q>(&self, quota: &QuotaUsage<'q>) -> Bracket<'q> {
        let search = self.search;
        let root = quota.tree.root(search.queue);
        let mut field = Bracket { candidates: Vec::new(), cohorts: BTreeMap::new(), queues: BTreeMap::new() };
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            for &child in quota.children(id) {
                if is_cohort(quota, child) {
                    if self.is_own(quota, child) || quota.is_borrowing(child) {
                        field.cohorts.entry(id).or_default().push(child);
                        open.push(child);
                    }
                } else if child == search.queue || !quota.is_within_nominal(child, search.contested) {
                    let Some(lane) = QueueCandidates::new(search, quota, child) else { continue };
                    let (at, first) = (field.candidates.len(), lane.first);
                    field.candidates.push(lane);
                    self.enter(quota, &mut field, at, first);
                }
            }
        }
        field
    }

    fn is_own(&self, quota: &QuotaUsage<'_>, id: QueueId) -> bool {
        quota.tree.path(self.search.queue).any(|own| own == id)
    }

    /// A queue takes part with its candidate at this place, unless it borrows nothing and is not the preemptor's. Returns whether it does.
    fn enter(&self, quota: &QuotaUsage<'_>, field: &mut Bracket<'_>, lane: usize, at: usize) -> bool {
        let queue = field.candidates[lane].queue;
        let enters = quota.is_borrowing(queue) || queue == self.search.queue;
        if let Some(cohort) = quota.tree.get(queue).parent.filter(|_| enters) {
            let order = Reverse(self.search.order(field.candidates[lane].at(at)));
            field.queues.entry(cohort).or_default().push(Entrant {
                share: share(quota, queue),
                order,
                queue: lane,
                index: at,
            });
        }
        enters
    }

    /// `None` when the requests fit; else by queue, that is its lane, the first who failed the strategy.
    fn first_round(
        &mut self,
        quota: &mut QuotaUsage<'_>,
        field: &mut Bracket<'_>,
        strategy: Strategy,
    ) -> Option<BTreeMap<usize, usize>> {
        let mut failed = BTreeMap::new();
        // Before anybody is taken: whoever must first preempt at home in order to be within its own has no claim on others.
        let claim = if quota.is_within_nominal(self.search.queue, self.search.contested) {
            Claim::FairReclaim
        } else {
            Claim::FairShare(strategy)
        };
        while let Some((lane, at)) = self.next(quota, field) {
            let target = field.candidates[lane].queue;
            let mut next = Some(at);
            while let Some(at) = next {
                let workload = field.candidates[lane].at(at);
                next = field.candidates[lane].next(self.search, at + 1);
                let compares = target != self.search.queue && claim != Claim::FairReclaim;
                if compares && !self.shares_allow(quota, workload, strategy) {
                    failed.entry(lane).or_insert(at);
                    continue;
                }
                if self.take(quota, workload, claim) {
                    return None;
                }
                break;
            }
            if let Some(at) = next
                && !self.enter(quota, field, lane, at)
            {
                self.search.report_spared(quota, field.candidates[lane].rest(at), Claim::FairReclaim, self.recorder);
            }
        }
        Some(failed)
    }

    /// Every queue has one candidate.
    fn second_round(&mut self, quota: &mut QuotaUsage<'_>, field: &mut Bracket<'_>, strategy: Strategy) -> bool {
        while let Some((lane, at)) = self.next(quota, field) {
            let workload = field.candidates[lane].at(at);
            let allowed = self.shares_allow(quota, workload, strategy);
            if allowed && self.take(quota, workload, Claim::FairShare(strategy)) {
                return true;
            }
        }
        false
    }

    /// Whether everybody who goes by share would go even if those who were given back had never been taken. Whoever goes at home lowers
    /// the preemptor's share; when it stays after all, the share is larger, and who went for it could take its place back in
    /// the same way, for ever.
    fn shares_allow_all(
        &self,
        quota: &mut QuotaUsage<'_>,
        strategies: &FairSharing,
        victims: &[(WorkloadId, PreemptionReason)],
    ) -> bool {
        let search = self.search;
        quota.charge(search.queue, self.requests, 1);
        let mut stands = true;
        for &(workload, ground) in victims {
            if ground == PreemptionReason::InCohortFairSharing {
                let mut strategies = [Some(strategies.first), strategies.second].into_iter().flatten();
                stands &= strategies.any(|one| compare_shares(quota, search.queue, workload, one).allows());
            }
            quota.take(workload);
        }
        quota.put_back_all(victims);
        quota.charge(search.queue, self.requests, -1);
        stands
    }

    /// Whether the strategy allows to take a workload; if it does not, reports the shares.
    fn shares_allow(&mut self, quota: &mut QuotaUsage<'_>, workload: WorkloadId, strategy: Strategy) -> bool {
        let compared = compare_shares(quota, self.search.queue, workload, strategy);
        if R::RECORDS
            && let Some(law) = compared.law()
        {
            self.recorder.spared(self.search.unit(workload), law);
        }
        compared.allows()
    }

    /// Takes a workload; whether the requests fit now.
    fn take(&mut self, quota: &mut QuotaUsage<'_>, workload: WorkloadId, claim: Claim) -> bool {
        let candidate = quota.snapshot.workload(workload);
        let ground = self.search.reason(candidate.queue.expect("a candidate is in a queue"), candidate, claim);
        debug_assert_eq!(self.search.eligibility(quota, workload, claim), Ok(ground));
        self.search.report_candidate(workload, self.recorder);
        quota.take(workload);
        self.taken.push((workload, ground));
        quota.charge(self.search.queue, self.requests, -1);
        let fits = self.search.fits(quota, &self.taken, self.requests, true);
        quota.charge(self.search.queue, self.requests, 1);
        fits
    }

    /// From the root down to the child with the largest share; branches without candidates, and those that borrow nothing and are not
    /// the preemptor's, are left out. Who is found leaves the field. (Rule 23.)
    fn next(&self, quota: &QuotaUsage<'_>, field: &mut Bracket<'_>) -> Option<(usize, usize)> {
        let root = quota.tree.root(self.search.queue);
        let cohort = self.descend(quota, field, root)?;
        let found = field.queues.get_mut(&cohort)?.pop()?;
        Some((found.queue, found.index))
    }

    /// The cohort whose first queue is next.
    fn descend(&self, quota: &QuotaUsage<'_>, field: &Bracket<'_>, id: QueueId) -> Option<QueueId> {
        let children = field.cohorts.get(&id).into_iter().flatten().copied();
        let in_play = children.filter(|&child| quota.is_borrowing(child) || self.is_own(quota, child));
        let mut cohorts: Vec<(Reverse<Share>, QueueId)> =
            in_play.map(|child| (Reverse(share(quota, child)), child)).collect();
        cohorts.sort_unstable();
        let best_queue = field.queues.get(&id).and_then(BinaryHeap::peek).map(|contender| contender.share);
        for (Reverse(share), cohort) in cohorts {
            if best_queue.is_some_and(|queue_share| queue_share > share) {
                break;
            }
            if let Some(found) = self.descend(quota, field, cohort) {
                return Some(found);
            }
        }
        best_queue.map(|_| id)
    }
}

/// The shares of two sides, which allow a preemption or do not.
pub(super) struct Compared {
    own: Share,
    /// The branch of the workload's side.
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

    /// The law, where they do not allow it.
    pub fn law(&self) -> Option<Law> {
        let (own, theirs) = (self.own.thousandths(), self.theirs.thousandths());
        let is_final = self.strategy == Strategy::LessThanOrEqualToFinalShare;
        (!self.allows()).then_some(Law::FairShare { own, queue: self.queue, theirs, is_final })
    }
}

/// Compares the shares of the two branches below the lowest cohort that the preemptor's queue, which its request is charged to, and a
/// workload's queue share. (Rule 26.)
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

fn is_cohort(quota: &QuotaUsage<'_>, id: QueueId) -> bool {
    quota.rules.queues[id.index()].is_cohort
}

/// The branches of two queues below the lowest cohort that they share.
fn branches(quota: &QuotaUsage<'_>, one: QueueId, other: QueueId) -> (QueueId, QueueId) {
    let path: Vec<QueueId> = quota.tree.path(one).collect();
    let other_path: Vec<QueueId> = quota.tree.path(other).collect();
    let shared = path.iter().rev().zip(other_path.iter().rev()).take_while(|(a, b)| a == b).count();
    (path[path.len() - 1 - shared], other_path[other_path.len() - 1 - shared])
}

/// (Rules 19 and 20.)
pub(super) fn share(quota: &QuotaUsage<'_>, id: QueueId) -> Share {
    let Some(parent) = quota.tree.get(id).parent else { return Share::NONE };
    let fractions = quota.rules.flavor_resources_of.iter().map(|pairs| Fraction {
        numerator: pairs.iter().map(|&pair| i128::from(quota.borrowed(id, pair))).sum(),
        denominator: pairs.iter().map(|&pair| i128::from(quota.potential(parent, pair))).sum(),
    });
    // What nobody can lend makes no share.
    let largest = fractions.filter(|share| share.numerator > 0 && share.denominator > 0).max();
    let Some(Fraction { numerator, denominator }) = largest else { return Share::NONE };
    let (weight, is_infinite) = match i128::from(quota.rules.queues[id.index()].weight) {
        0 => (1, true),
        weight => (weight, false),
    };
    Share { is_infinite, fraction: Fraction { numerator, denominator: denominator * weight } }
}

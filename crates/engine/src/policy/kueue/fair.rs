//! Preemption under fair sharing: a tournament of shares down the tree says whose workload is next; a strategy compares the shares
//! of both sides and allows it, or not. (Rules 19 to 30 of the cohort trees.) Shares are fractions, compared exactly.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::ids::{CellId, QueueId, QuotaResourceId, WorkloadId};
use crate::policy::kueue::quota::Quota;
use crate::policy::kueue::standing::Thousandths;
use crate::policy::kueue::{FairSharing, Ground, Search, Strategy, give_back};
use crate::workloads::Reclaim;

/// How much of what can be lent a queue has borrowed, by its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// What is borrowed of the dominant resource, over what can be lent of it.
    borrowed: i128,
    lendable: i128,
    weight: i128,
    /// Whether anything is borrowed, even of what nobody can lend, which makes no share.
    is_borrowing: bool,
}

impl Share {
    pub const NONE: Self = Self { borrowed: 0, lendable: 1, weight: 1, is_borrowing: false };

    /// For people: no decision reads it.
    pub fn thousandths(self) -> Thousandths {
        const BILLION: i128 = 1_000_000_000;
        match (self.borrowed, self.weight) {
            (0, _) => Thousandths::Finite(0),
            (_, 0) => Thousandths::Infinite,
            (borrowed, weight) => Thousandths::Finite(borrowed * 1_000 * BILLION / (self.lendable * weight)),
        }
    }

    /// Without weight, whoever borrows has an infinite share; two of them compare as if they had the same weight.
    pub fn cmp(self, other: Self) -> Ordering {
        let infinite = |share: Self| share.weight == 0 && share.borrowed > 0;
        match (infinite(self), infinite(other)) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (true, true) => compare((self.borrowed, self.lendable), (other.borrowed, other.lendable)),
            (false, false) => {
                let fraction = |share: Self| match share.borrowed {
                    0 => (0, 1),
                    borrowed => (borrowed, share.lendable * share.weight),
                };
                compare(fraction(self), fraction(other))
            }
        }
    }
}

/// Compares `a/b` with `c/d` for non-negative numerators and positive denominators without multiplying large numbers: whole parts
/// first, then the remainders the other way round.
pub(super) fn compare((mut a, mut b): (i128, i128), (mut c, mut d): (i128, i128)) -> Ordering {
    loop {
        let (whole, other) = (a / b, c / d);
        if whole != other {
            return whole.cmp(&other);
        }
        (a, c) = (a % b, c % d);
        match (a, c) {
            (0, 0) => return Ordering::Equal,
            (0, _) => return Ordering::Less,
            (_, 0) => return Ordering::Greater,
            _ => (a, b, c, d) = (d, c, b, a), // a/b < c/d exactly when d/c < b/a
        }
    }
}

pub(super) fn victims(
    search: &Search<'_>,
    quota: &mut Quota<'_>,
    strategies: &FairSharing,
    requests: &[(CellId, i64)],
    contested: &[CellId],
) -> Option<Vec<(WorkloadId, Ground)>> {
    quota.charge(search.queue, requests, 1);
    let mut tournament = Tournament { search, requests, contested, taken: Vec::new() };
    let found = tournament.run(quota, strategies);
    let taken = std::mem::take(&mut tournament.taken);
    quota.charge(search.queue, requests, -1);
    if !found {
        for (workload, _) in taken {
            quota.put_back(workload);
        }
        return None;
    }
    let n_taken = taken.len();
    let victims = give_back(quota, taken, |quota, gone| search.fits(quota, gone, requests, true));
    for (workload, _) in &victims {
        quota.put_back(*workload);
    }
    let stands = victims.len() == n_taken || tournament.stands(quota, strategies, &victims);
    stands.then_some(victims)
}

/// By queue: its candidates, the next one last.
type Field = BTreeMap<QueueId, Vec<WorkloadId>>;

struct Tournament<'t, 'a> {
    search: &'t Search<'a>,
    requests: &'t [(CellId, i64)],
    contested: &'t [CellId],
    taken: Vec<(WorkloadId, Ground)>,
}

impl Tournament<'_, '_> {
    fn run(&mut self, quota: &mut Quota<'_>, strategies: &FairSharing) -> bool {
        let field = self.field(quota);
        let Some(mut failed) = self.first_round(quota, field, strategies.first) else {
            return true;
        };
        let Some(second) = strategies.second else {
            return false;
        };
        for workloads in failed.values_mut() {
            workloads.sort_by_cached_key(|&workload| std::cmp::Reverse(self.search.order(workload)));
        }
        self.second_round(quota, failed, second)
    }

    /// The preemptor's own queue, and those that use more than their own of something contested.
    fn field(&self, quota: &Quota<'_>) -> Field {
        let search = self.search;
        let root = quota.tree.path(search.queue).last().unwrap_or(search.queue);
        let mut field = Field::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            open.extend(quota.children(id));
            let own = id == search.queue;
            let borrows = self.contested.iter().any(|&cell| quota.used(id, cell) > quota.quota(id, cell));
            let reclaims = quota.rules.queues[search.queue.index()].reclaim != Reclaim::Never;
            let in_play = own || borrows && reclaims;
            if !in_play {
                continue;
            }
            let may_take = |&workload: &WorkloadId| {
                let lawful = if own { search.may_take_at_home(workload) } else { search.may_reclaim(workload) };
                lawful && search.holds(workload, self.contested)
            };
            let mut workloads: Vec<WorkloadId> = quota.workloads_of(id).iter().copied().filter(may_take).collect();
            workloads.sort_by_cached_key(|&workload| std::cmp::Reverse(search.order(workload)));
            if !workloads.is_empty() {
                field.insert(id, workloads);
            }
        }
        field
    }

    /// `None` when the requests fit; else those who failed the strategy.
    fn first_round(&mut self, quota: &mut Quota<'_>, mut field: Field, strategy: Strategy) -> Option<Field> {
        let mut failed = Field::new();
        // Before anybody is taken: whoever must first preempt at home in order to be within its own has no claim on others.
        let within = quota.within(self.search.queue, self.contested);
        while let Some(target) = self.next_target(quota, &field) {
            let home = target == self.search.queue;
            while let Some(workload) = field.get_mut(&target).and_then(Vec::pop) {
                let ground = if home {
                    Ground::InClusterQueue
                } else if within {
                    Ground::InCohortReclamation
                } else if self.allows(quota, target, Some(workload), strategy) {
                    Ground::InCohortFairSharing
                } else {
                    failed.entry(target).or_default().push(workload);
                    continue;
                };
                if self.take(quota, workload, ground) {
                    return None;
                }
                break;
            }
            field.retain(|_, workloads| !workloads.is_empty());
        }
        Some(failed)
    }

    fn second_round(&mut self, quota: &mut Quota<'_>, mut field: Field, strategy: Strategy) -> bool {
        while let Some(target) = self.next_target(quota, &field) {
            let workload = field.remove(&target).and_then(|mut workloads| workloads.pop());
            if let Some(workload) = workload
                && self.allows(
                    quota,
                    target,
                    Some(workload).filter(|_| strategy == Strategy::LessThanOrEqualToFinalShare),
                    strategy,
                )
                && self.take(quota, workload, Ground::InCohortFairSharing)
            {
                return true;
            }
        }
        false
    }

    /// Whether everybody who goes by share would go even if those who were given back had never been taken. Whoever goes at home lowers
    /// the preemptor's share; when it stays after all, the share is larger, and who went for it could take its place back in
    /// the same way, for ever.
    fn stands(&self, quota: &mut Quota<'_>, strategies: &FairSharing, victims: &[(WorkloadId, Ground)]) -> bool {
        let search = self.search;
        quota.charge(search.queue, self.requests, 1);
        let mut stands = true;
        for &(workload, ground) in victims {
            let target = search.snapshot.workload(workload).queue.filter(|_| ground == Ground::InCohortFairSharing);
            stands &= target.is_none_or(|target| {
                let allows = |strategy, quota: &mut Quota<'_>| self.allows(quota, target, Some(workload), strategy);
                allows(strategies.first, quota) || strategies.second.is_some_and(|second| allows(second, quota))
            });
            quota.take(workload);
        }
        for (workload, _) in victims {
            quota.put_back(*workload);
        }
        quota.charge(search.queue, self.requests, -1);
        stands
    }

    /// Takes a workload; whether the requests fit now.
    fn take(&mut self, quota: &mut Quota<'_>, workload: WorkloadId, ground: Ground) -> bool {
        quota.take(workload);
        self.taken.push((workload, ground));
        quota.charge(self.search.queue, self.requests, -1);
        let fits = self.search.fits(quota, &self.taken, self.requests, true);
        quota.charge(self.search.queue, self.requests, 1);
        fits
    }

    /// Compares the shares of the two branches below the lowest cohort that preemptor and target share.
    fn allows(&self, quota: &mut Quota<'_>, target: QueueId, workload: Option<WorkloadId>, strategy: Strategy) -> bool {
        let (own, other) = branches(quota, self.search.queue, target);
        let preemptor = share(quota, own);
        match strategy {
            Strategy::LessThanInitialShare => preemptor.cmp(share(quota, other)) == Ordering::Less,
            Strategy::LessThanOrEqualToFinalShare => {
                let after = workload.map(|workload| {
                    quota.take(workload);
                    let after = share(quota, other);
                    quota.put_back(workload);
                    after
                });
                after.is_some_and(|after| preemptor.cmp(after) != Ordering::Greater)
            }
        }
    }

    /// From the root down to the child with the largest share; branches without candidates, and those that borrow nothing and are not
    /// the preemptor's, are left out. (Rule 23.)
    fn next_target(&self, quota: &Quota<'_>, field: &Field) -> Option<QueueId> {
        let root = quota.tree.path(self.search.queue).last().unwrap_or(self.search.queue);
        self.descend(quota, field, root)
    }

    fn descend(&self, quota: &Quota<'_>, field: &Field, id: QueueId) -> Option<QueueId> {
        let own: Vec<QueueId> = quota.tree.path(self.search.queue).collect();
        let mut cohorts: Vec<(Share, QueueId)> = Vec::new();
        let mut queues: Vec<(Share, QueueId)> = Vec::new();
        for &child in quota.children(id) {
            let share = share(quota, child);
            if !share.is_borrowing && !own.contains(&child) {
                continue;
            }
            if is_cohort(quota, child) {
                cohorts.push((share, child));
            } else if field.contains_key(&child) {
                queues.push((share, child));
            }
        }
        let next = |queue: QueueId| field[&queue].last().map(|&workload| self.search.order(workload));
        queues.sort_by(|(share, one), (other_share, other)| {
            other_share.cmp(*share).then_with(|| next(*one).cmp(&next(*other)))
        });
        cohorts.sort_by(|(share, one), (other_share, other)| other_share.cmp(*share).then(one.cmp(other)));
        let best_queue = queues.first().copied();
        for (share, cohort) in cohorts {
            if let Some((queue_share, queue)) = best_queue
                && queue_share.cmp(share) == Ordering::Greater
            {
                return Some(queue);
            }
            if let Some(found) = self.descend(quota, field, cohort) {
                return Some(found);
            }
        }
        best_queue.map(|(_, queue)| queue)
    }
}

fn is_cohort(quota: &Quota<'_>, id: QueueId) -> bool {
    quota.rules.queues[id.index()].is_cohort
}

/// The branches of two queues below the lowest cohort that they share.
fn branches(quota: &Quota<'_>, one: QueueId, other: QueueId) -> (QueueId, QueueId) {
    let path: Vec<QueueId> = quota.tree.path(one).collect();
    let other_path: Vec<QueueId> = quota.tree.path(other).collect();
    let shared = path.iter().rev().zip(other_path.iter().rev()).take_while(|(a, b)| a == b).count();
    (path[path.len() - 1 - shared], other_path[other_path.len() - 1 - shared])
}

/// (Rules 19 and 20.)
pub(super) fn share(quota: &Quota<'_>, id: QueueId) -> Share {
    let Some(parent) = quota.tree.get(id).parent else {
        return Share::NONE;
    };
    let weight = i128::from(quota.rules.queues[id.index()].weight);
    let mut borrowed: BTreeMap<QuotaResourceId, i128> = BTreeMap::new();
    let mut lendable: BTreeMap<QuotaResourceId, i128> = BTreeMap::new();
    for at in 0..quota.rules.resource_of.len() {
        let cell = CellId::new(at);
        let resource = quota.rules.resource_of[at];
        let over = (quota.used(id, cell) - quota.quota(id, cell)).max(0);
        *borrowed.entry(resource).or_default() += i128::from(over);
        *lendable.entry(resource).or_default() += i128::from(quota.potential(parent, cell));
    }
    let is_borrowing = borrowed.values().any(|borrowed| *borrowed > 0);
    let mut largest = Share { weight, is_borrowing, ..Share::NONE };
    for (resource, borrowed) in borrowed {
        let lendable = lendable[&resource];
        if borrowed > 0 && lendable > 0 {
            let share = Share { borrowed, lendable, ..largest };
            if compare((share.borrowed, share.lendable), (largest.borrowed, largest.lendable)) == Ordering::Greater {
                largest = share;
            }
        }
    }
    largest
}
